"""Promise: `gs.xarray.reduce` gives what xarray's own methods give, without reading the variable."""

import numpy as np
import pytest
import xarray as xr
from xarray_stores import opened

import gridstone as gs

FUNCTIONS = ("sum", "mean", "min", "max", "std", "var", "count")


@pytest.fixture
def uri(tmp_path):
    random = np.random.default_rng(5)
    values = random.normal(size=(7, 5, 6))
    values[random.random(values.shape) < 0.2] = np.nan
    values[:, 2, 3] = np.nan
    dataset = xr.Dataset(
        {
            "v": (("t", "y", "x"), values, {"units": "K"}),
            "narrow": (("t", "x"), random.random((7, 6), np.float32)),
            "whole": (("t", "x"), random.integers(0, 9, (7, 6), dtype=np.int16)),
            "is": ("t", random.random(7) < 0.5),
            "packed": ("t", [1.5, np.nan, 3, 4, 5, 6, 7]),
        },
        {
            "t": np.arange(7) * 1.5,
            "x": list("abcdef"),
            "day": ("t", np.arange(7)),
            "cell": (("y", "x"), np.ones((5, 6))),
        },
    )
    gs.to_gridstone(dataset, tmp_path / "d.gs", encoding={"packed": {"dtype": "i2", "_FillValue": -1}})
    return tmp_path / "d.gs"


@pytest.mark.parametrize("func", FUNCTIONS)
@pytest.mark.parametrize("dim", ["t", ["t", "x"], None])
def test_reductions_are_those_of_xarray(uri, func, dim):
    with opened(uri, cache=False) as found:
        for name in ("v", "narrow", "whole"):
            for skipna in (None, False):
                lazy = found[name]
                expected = getattr(lazy, func)(dim, **({} if func == "count" else {"skipna": skipna}), keep_attrs=True)
                made = gs.xarray.reduce(lazy, func, dim, skipna=skipna if func != "count" else None)
                xr.testing.assert_allclose(expected, made, rtol=1e-5 if name == "narrow" else 1e-12)
                assert (
                    made.attrs == expected.attrs
                    and made.name == expected.name
                    and made.dtype.kind == expected.dtype.kind
                )


@pytest.mark.parametrize("func", ["any", "all"])
def test_truths(uri, func):
    with opened(uri, cache=False) as found:
        xr.testing.assert_equal(getattr(found["is"], func)("t"), gs.xarray.reduce(found["is"], func, "t"))


def test_parts_of_variables(uri):
    with opened(uri, cache=False) as found:
        for part in (
            found.v.isel(y=2), found.v.isel(t=slice(1, 5), x=-1), found.v.sel(x=slice("b", "d")),
            found.v[2:, :, 1:][1:, 0], found.v.isel(t=slice(1, None)).isel(y=slice(0, 3)),
        ):  # fmt: skip
            xr.testing.assert_allclose(part.mean("t", keep_attrs=True), gs.xarray.reduce(part, "mean", dim="t"))


def test_a_dataset(uri):
    with opened(uri, cache=False) as found:
        chosen = found[["v", "narrow"]]
        made = gs.xarray.reduce(chosen, "max", "y")
        xr.testing.assert_identical(made["v"], chosen["v"].max("y", keep_attrs=True))
        assert list(made.data_vars) == ["v"]


@pytest.mark.parametrize("func", ["mean", "min", "max", "sum"])
def test_all_dimensions_at_once_come_from_statistics_of_tiles(tmp_path, func, monkeypatch):
    """Where no cell of the box is NaN, none is read but those of tiles that it cuts; else values are looked through."""
    random = np.random.default_rng(7)
    values = random.normal(size=(20, 12)).astype(np.float32)
    counts = random.integers(-9, 9, (20, 12))
    holes = np.where(random.random((20, 12)) < 0.2, np.float32("nan"), values)
    given = xr.Dataset({name: (("t", "x"), one) for name, one in (("v", values), ("n", counts), ("holes", holes))})
    gs.to_gridstone(given, tmp_path / "d.gs", encoding={name: {"chunks": (4, 4)} for name in given})
    asked: list[str] = []
    for name in ("reduce", "aggregate"):
        method = getattr(gs.Array, name)
        monkeypatch.setattr(gs.Array, name, lambda *a, n=name, m=method, **k: asked.append(n) or m(*a, **k))
    with opened(tmp_path / "d.gs", cache=False) as found:
        for part in ({}, {"t": slice(4, 12)}, {"t": slice(3, 17), "x": 5}, {"t": slice(1, 2), "x": slice(0, 3)}):
            for name in given:
                expected = getattr(given[name].isel(part), func)()
                made = gs.xarray.reduce(found[name].isel(part), func)
                xr.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)
                assert made.dtype == expected.dtype and made.shape == (), (name, part)
        asked.clear()
        gs.xarray.reduce(found.v, func)
        assert asked == ["aggregate"]


def test_nothing_of_the_variable_is_read(uri):
    with opened(uri) as found:
        gs.xarray.reduce(found.v, "mean", "t")
        assert not found.v.variable._in_memory


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda found: found.v.load(), "in memory"),
        (lambda found: found.v * 2, "in memory"),
        (lambda found: found.v.chunk({"t": 2}), "graph of Dask"),
        (lambda found: found.v.isel(t=[1, 4]), "lists of positions"),
        (lambda found: found.v.isel(t=slice(None, None, 2)), "with steps"),
        (lambda found: found.packed, "computed"),
        (lambda found: found.x, "in memory"),
    ],
)
def test_what_the_engine_does_not_reduce_is_refused(uri, change, words):
    with opened(uri) as found, pytest.raises(gs.UnsupportedError, match=words):
        gs.xarray.reduce(change(found), "sum", list(change(found).dims)[:1])


@pytest.mark.parametrize(("func", "dim"), [("median", "t"), ("sum", "q")])
def test_what_there_is_not(uri, func, dim):
    with opened(uri) as found, pytest.raises(gs.InputError):
        gs.xarray.reduce(found.v, func, dim)


@pytest.mark.parametrize("dim", ["y", "x", None])
def test_times_with_gaps(tmp_path, dim):
    times = np.array([["2000-01-01", "NaT", "2000-01-05"], ["NaT"] * 3, ["2001-01-01"] * 3], "M8[ns]")
    spans = times - np.datetime64("2000-01-01", "ns")
    given = xr.Dataset(
        {"t": (("y", "x"), times), "d": (("y", "x"), spans), "f": (("y", "x"), [[1.0, np.nan, 2.0]] * 3)}
    )
    gs.to_gridstone(given, tmp_path / "d.gs")
    with opened(tmp_path / "d.gs", cache=False, decode_timedelta=True) as found:
        for name in "tdf":
            xr.testing.assert_identical(given[name].count(dim), gs.xarray.reduce(found[name], "count", dim))
            # A count leaves out what is missing, whatever is asked of the others.
            xr.testing.assert_identical(
                given[name].count(dim), gs.xarray.reduce(found[name], "count", dim, skipna=False)
            )
            for func in ("mean", "min", "max", "sum"):
                if (name, func) == ("t", "sum"):
                    continue
                for skipna in (None, False):
                    expected = getattr(given[name], func)(dim, skipna=skipna)
                    made = gs.xarray.reduce(found[name], func, dim, skipna=skipna)
                    xr.testing.assert_equal(expected, made)
                    assert made.dtype.kind == expected.dtype.kind
        first = gs.xarray.reduce(found["t"], "min", dim, skipna=True).values
        assert np.array_equal(first, given["t"].fillna(times[2, 0]).min(dim).where(given["t"].count(dim) > 0), True)


def test_a_reduction_has_not_the_packing_of_its_variable(tmp_path):
    given = xr.Dataset({"v": ("x", np.arange(1000.0))})
    given.v.encoding = {"dtype": np.dtype("int16"), "scale_factor": 1.0, "_FillValue": np.int16(-1)}
    gs.to_gridstone(given, tmp_path / "d.gs")
    with opened(tmp_path / "d.gs", cache=False) as found:
        total = gs.xarray.reduce(found, "sum", "x")
        assert total.v.encoding == {} == given.v.sum().encoding
        gs.to_gridstone(total, tmp_path / "e.gs")
    with opened(tmp_path / "e.gs", mask_and_scale=False) as shown:
        assert shown.v == 499_500


@pytest.mark.parametrize("func", ["sum", "mean", "max", "count", "all"])
def test_complex_numbers_are_left_to_xarray(tmp_path, func):
    gs.to_gridstone(xr.Dataset({"v": ("x", [1j, 2.0])}), tmp_path / "d.gs")
    with opened(tmp_path / "d.gs", cache=False) as found, pytest.raises(gs.UnsupportedError, match=r"'v'.*complex"):
        gs.xarray.reduce(found.v, func, "x")
