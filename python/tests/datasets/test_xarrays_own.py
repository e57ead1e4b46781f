"""Promise: xarray's own tests of backends pass, but for those that demand less than a store holds.

They are made for one version of xarray; with another one they are skipped.
"""

import contextlib

import pytest
import xarray as xr
from xarray_stores import ENGINE

import gridstone as gs

VERSION = "2026.9.0"
if xr.__version__ != VERSION:
    pytest.skip(f"these are the tests of xarray {VERSION}, installed is {xr.__version__}", allow_module_level=True)

from xarray.tests import conftest as theirs  # noqa: E402
from xarray.tests.test_backends import CFEncodedBase as _CFEncodedBase  # noqa: E402
from xarray.tests.test_backends_datatree import NetCDFIOBase as _NetCDFIOBase  # noqa: E402

use_dask = theirs.use_dask
simple_datatree = theirs.simple_datatree
create_test_datatree = theirs.create_test_datatree


@pytest.fixture(params=["s", "ms", "us", "ns"])
def time_unit(request):
    return request.param


class _Stored:
    def create_store(self):
        raise NotImplementedError

    def save(self, dataset, path, **options):
        return gs.to_gridstone(dataset, path, **{"mode": "w", **options})

    @contextlib.contextmanager
    def open(self, path, **options):
        with xr.open_dataset(path, engine=ENGINE, **options) as found:
            yield found


def _left_out(reason):
    """A test that is not run, with the reason."""

    @pytest.mark.skip(reason=reason)
    def test(self):
        pass

    return test


class TestEncoded(_Stored, _CFEncodedBase):
    """`DatasetIOBase` and, on top of it, `CFEncodedBase`."""

    file_format = "NETCDF4"  # Which holds all numbers, as a store does.

    test_write_store = _left_out("it writes through AbstractWritableDataStore; to_gridstone writes here")
    test_roundtrip_stringdtype_nulls = _left_out("it wants nulls to become empty texts; here they stay nulls")
    test_roundtrip_coordinates_with_space = _left_out(
        "it wants a coordinate with a space in its name to become a data variable; here it stays a coordinate"
    )
    test_roundtrip_string_with_fill_value_nchar = _left_out(
        "it wants texts with a fill value to be refused; here they are stored, missing ones as nulls"
    )

    def test_coordinate_variables_after_dataset_roundtrip(self):
        """Theirs wants coordinates that CF attributes name to become data variables; here they stay coordinates."""
        original = self._create_cf_dataset()
        with self.roundtrip(original, open_kwargs={"decode_coords": "all"}) as actual:
            xr.testing.assert_identical(actual, original)
        with self.roundtrip(original) as actual:
            xr.testing.assert_equal(actual, original)


class TestTrees(_NetCDFIOBase):
    engine = ENGINE

    @pytest.fixture(autouse=True)
    def writes(self, monkeypatch):
        """`DataTree.to_netcdf` refuses every engine that it does not know."""

        def to_netcdf(tree, path, *, engine=None, encoding=None, compute=True):
            return gs.to_gridstone(tree, path, mode="w", encoding=encoding, compute=compute)

        monkeypatch.setattr(xr.DataTree, "to_netcdf", to_netcdf)

    test_no_redundant_dimensions = _left_out("it opens what was written with netCDF4; the next test does it here")
    test_roundtrip_via_memoryview = _left_out("a store is a folder, which no buffer holds")
    test_to_memoryview_compute_false = _left_out("a store is a folder, which no buffer holds")

    def test_no_redundant_coordinates(self, tmp_path):
        tree = xr.DataTree.from_dict(
            {"/": xr.Dataset(coords={"x": [1, 2]}), "/child": xr.Dataset({"foo": ("x", [4, 5])})}
        )
        gs.to_gridstone(tree, tmp_path / "t.gs")
        assert [entry.path for entry in gs.group(tmp_path / "t.gs").walk()] == ["/child", "/child/foo", "/x"]
