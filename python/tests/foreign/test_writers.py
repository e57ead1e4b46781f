"""Files that other programs write, attached: equal to what those read of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs

VALUES = np.arange(23 * 14, dtype="i4").reshape(23, 14) * 3


def _tree(folder: Path, name: str, **options: Any) -> gs.Group:
    made = gs.attach(folder / "x.gs", folder / name, **options)
    assert isinstance(made, gs.Group)
    return made


def _array(tree: gs.Group, path: str) -> gs.Array:
    found = tree[path]
    assert isinstance(found, gs.Array)
    return found


def _equal(found: Any, expected: Any) -> bool:
    found, expected = np.ma.getdata(found), np.asarray(expected)
    if expected.dtype.kind in "SO" or found.dtype.kind in "SO":
        return [_plain(one) for one in found.ravel()] == [_plain(one) for one in expected.ravel()]
    return bool(found.shape == expected.shape and found.tobytes() == expected.astype(found.dtype).tobytes())


def _plain(one: Any) -> Any:
    if isinstance(one, np.ndarray):
        return one.tolist()
    return (one.encode() if isinstance(one, str) else bytes(one)).rstrip(b"\0")


PYTABLES = [
    *({"complib": lib, "complevel": 5} for lib in ("zlib", "bzip2", "blosc", "blosc:zstd", "blosc2", "blosc2:lz4")),
    {"complib": "zlib", "complevel": 1, "shuffle": False, "fletcher32": True},
    {"complib": "blosc:lz4", "complevel": 9, "shuffle": False, "bitshuffle": True},
    {"complib": "blosc2:zstd", "complevel": 3, "fletcher32": True},
    {"fletcher32": True},
    {},
]


@pytest.mark.parametrize("options", PYTABLES, ids=str)
def test_pytables(tmp_path: Path, options: dict[str, Any]) -> None:
    tables = pytest.importorskip("tables")

    class Inner(tables.IsDescription):  # type: ignore[misc, name-defined]
        x = tables.Float32Col()
        y = tables.UInt8Col(shape=(3,))

    class Row(tables.IsDescription):  # type: ignore[misc, name-defined]
        number = tables.Int32Col()
        wide = tables.Float64Col(shape=(2, 2))
        text = tables.StringCol(7)
        truth = tables.BoolCol()
        time = tables.Time64Col()
        inner = Inner()

    expected: dict[str, Any] = {}
    with tables.open_file(str(tmp_path / "x.h5"), "w", filters=tables.Filters(**options)) as file:
        table = file.create_table("/", "rows", Row, chunkshape=17)
        for place in range(100):
            row = table.row
            row["number"], row["wide"], row["text"] = place, [[place, 1], [2, 3]], b"t%d" % place
            row["truth"], row["time"], row["inner/x"], row["inner/y"] = place % 3 == 0, place / 7, place / 2, [1, 2, 3]
            row.append()
        table.flush()
        file.create_carray("/group", "carray", obj=VALUES, chunkshape=(5, 4), createparents=True)
        earray = file.create_earray("/group", "earray", tables.Float32Atom(), (0, 14), chunkshape=(6, 14))
        earray.append(VALUES.astype("f4"))
        earray.append(VALUES[:5].astype("f4"))
        lists = file.create_vlarray("/group", "vlarray", tables.Int16Atom(), filters=tables.Filters())
        for place in range(9):
            lists.append(np.arange(place, dtype="i2"))
        file.create_array("/", "array", VALUES > 30)
        expected = {"carray": VALUES, "earray": earray.read(), "rows": table.read()}
    tree = _tree(tmp_path, "x.h5", decode=False)
    assert _equal(_array(tree, "group/carray")[...], expected["carray"])
    assert _equal(_array(tree, "group/earray")[...], expected["earray"])
    assert [one.tolist() for one in _array(tree, "group/vlarray")[...]] == [list(range(n)) for n in range(9)]
    assert _equal(_array(tree, "array")[...], VALUES > 30)
    rows, table_rows = _array(tree, "rows").read(), expected["rows"]
    assert "time" not in [
        attr.name for attr in _array(tree, "rows").schema.attrs
    ]  # Its class of types means seconds to PyTables alone.
    for name in ("number", "wide", "text", "truth"):
        assert _equal(rows[name], table_rows[name]), name
    for name in ("x", "y"):
        assert _equal(rows[f"inner.{name}"], table_rows["inner"][name]), name
    told = _array(tree, "group/carray").sources.column("filters").to_pylist()
    assert ("by hdf5plugin" in told[0]) == str(options.get("complib")).startswith("blosc2")


NETCDF = [
    *({"compression": name} for name in ("zlib", "szip", "zstd", "bzip2", "blosc_lz4", "blosc_zstd")),
    {"compression": "zlib", "significant_digits": 3, "quantize_mode": "GranularBitRound"},
    {"compression": "zstd", "significant_digits": 7, "quantize_mode": "BitRound"},
    {"compression": "szip", "fletcher32": True},
    {"endian": "big", "compression": "zlib", "shuffle": True},
]


@pytest.mark.parametrize("options", NETCDF, ids=str)
def test_netcdf4(tmp_path: Path, options: dict[str, Any]) -> None:
    netcdf = pytest.importorskip("netCDF4")
    lacking = {"szip": "__has_szip_support__", "zstd": "__has_zstandard_support__", "bzip2": "__has_bzip2_support__"}
    needs = lacking.get(options.get("compression", ""), "__has_blosc_support__")
    if options["compression"] != "zlib" and not getattr(netcdf, needs, False):
        pytest.skip(f"netCDF4 was built without {options['compression']}")
    with netcdf.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("t", None)
        file.createDimension("x", 14)
        file.createVariable("t", "f8", ("t",))[:] = np.arange(23) / 2
        numbers = file.createVariable("v", "f4", ("t", "x"), chunksizes=(12, 14), fill_value=-1, **options)
        numbers[:] = VALUES // 40 / 7
        numbers.units = "m"
        words = file.createVariable("word", str, ("x",))
        words[:] = np.asarray([f"word {n}" for n in range(14)], dtype=object)
    with netcdf.Dataset(tmp_path / "x.nc") as file:
        file.set_auto_mask(False)
        expected = file["v"][...]
    tree = _tree(tmp_path, "x.nc")
    assert _equal(_array(tree, "v")[...], expected)
    assert _array(tree, "v").dims == ("t", "x")
    assert _array(tree, "word")[...].tolist() == [f"word {n}" for n in range(14)]
    told = _array(tree, "v").sources.column("filters").to_pylist()[0]
    assert ("szip by h5py" in told) == (options["compression"] == "szip")
