"""Reductions of dense arrays along axes are NumPy's, of values and of types."""

import itertools
import math
import random
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import gridstone as gs
from gridstone.arrays.reduction import blocks

_NAMES = ["sum", "mean", "min", "max", "any", "all", "std", "var"]
_AXES = [None, *(c for n in (1, 2, 3) for c in itertools.combinations(range(3), n))]


def _array(folder: Path, seed: int) -> tuple[gs.Array, Any]:
    """A dense array of a few fragments, and what it holds."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 12, 3))
    dtype = str(rng.choice(["int8", "uint16", "int64", "float32", "float64", "bool"]))
    dims = [gs.Dim(f"d{k}", (0, n - 1), tile=int(rng.integers(1, n + 1))) for k, n in enumerate(shape)]
    nullable = bool(rng.random() < 0.3)
    order = str(rng.choice(["row", "col"]))
    schema = gs.Schema(dims, [gs.Attr("v", dtype, nullable=nullable)], cell_order=order)
    context = gs.Context(memory_budget=str(rng.choice(["8MiB", "1GiB"])), threads=int(rng.integers(1, 3)))
    array = gs.create(folder / f"r{seed}.gs", schema, context=context)
    values: Any = rng.integers(0, 2, shape) if dtype == "bool" else rng.integers(-100, 100, shape)
    values = values.astype(dtype)
    # numpy.ma masks what is NaN, which is a value here.
    if dtype.startswith("float") and not nullable and rng.random() < 0.3:
        values[rng.random(shape) < 0.05] = np.nan
    if nullable:
        values = np.ma.MaskedArray(values, mask=rng.random(shape) < 0.3)
    array.write(values)
    if rng.random() < 0.5:
        box = tuple(slice(int(rng.integers(0, n)), n) for n in shape)
        values[box] = 0
        array.loc[box] = values[box]
    return array, values


def _same(found: Any, expected: Any, told: str) -> None:
    assert np.shape(found) == np.shape(expected), told
    found, expected = np.ma.asanyarray(found), np.ma.asanyarray(expected)
    assert np.array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(expected)), told
    a, b = np.ma.filled(found, 0), np.ma.filled(expected, 0)
    assert np.allclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True), f"{told}: {found} {expected}"


@given(seed=st.integers(0, 2**32), axis=st.sampled_from(_AXES), name=st.sampled_from(_NAMES), keepdims=st.booleans())
def test_reductions_are_those_of_numpy(
    tmp_path_factory: pytest.TempPathFactory, seed: int, axis: Any, name: str, keepdims: bool
) -> None:
    array, values = _array(tmp_path_factory.mktemp("r"), seed)
    expected = getattr(np.ma if np.ma.isMaskedArray(values) else np, name)(values, axis=axis, keepdims=keepdims)
    _same(getattr(array["v"], name)(axis=axis, keepdims=keepdims), expected, name)
    _same(getattr(array, name)(axis=axis, keepdims=keepdims), expected, name)
    if not np.ma.isMaskedArray(values):
        assert np.asarray(getattr(array, name)(axis=axis)).dtype == np.asarray(expected).dtype, name


@given(seed=st.integers(0, 2**32), axis=st.sampled_from(_AXES), name=st.sampled_from(["sum", "mean", "any", "all"]))
def test_only_the_cells_that_where_names_count(
    tmp_path_factory: pytest.TempPathFactory, seed: int, axis: Any, name: str
) -> None:
    array, values = _array(tmp_path_factory.mktemp("w"), seed)
    flags = np.random.default_rng(seed).random(values.shape) < 0.5
    plain = np.ma.MaskedArray(np.ma.getdata(values), mask=np.ma.getmaskarray(values) | ~flags)
    expected = getattr(plain, name)(axis=axis)
    if not array.schema.attrs[0].nullable:
        nothing = {"any": False, "all": True, "mean": np.nan}
        expected = np.ma.filled(expected, nothing.get(name, 0))
    found = getattr(array, name)(axis=axis, where=flags)
    _same(found, expected, name)
    if values.dtype != bool:
        counted = plain.copy()
        counted.mask = np.ma.getmaskarray(values) | ~(np.ma.getdata(values) > 3)
        assert int(np.ma.filled(counted.sum(), 0)) == int(np.ma.filled(array.sum(where="v > 3"), 0))


def test_numpy_calls_these_methods(tmp_path: Path) -> None:
    values = np.random.default_rng(random.randrange(9)).normal(size=(20, 30))
    array = gs.array(tmp_path / "a.gs", values)
    for name in ("sum", "mean", "min", "max", "std", "var", "any", "all"):
        _same(getattr(np, name)(array, axis=1), getattr(np, name)(values, axis=1), name)
    assert array.stats["blocks_decoded"] > 0
    out = np.zeros(30)
    assert np.sum(array, axis=0, out=out) is out
    _same(out, values.sum(axis=0), "out")
    _same(array.std(ddof=1), values.std(ddof=1), "ddof")
    _same(array.sum("d0", box={"d0": (5, 9)}), values[5:10].sum(0), "box")


def _with_a_null_column(folder: Path) -> tuple[gs.Array, Any]:
    values = np.ma.MaskedArray(np.arange(6).reshape(2, 3), mask=[[True, False, False]] * 2)
    return gs.array(folder / "n.gs", values, name="v"), values


@pytest.mark.parametrize("name", ["sum", "mean", "min", "max", "var", "std"])
def test_out_has_no_value_where_there_is_none(tmp_path: Path, name: str) -> None:
    array, values = _with_a_null_column(tmp_path)
    expected = getattr(np.ma, name)(values, axis=0)
    plain = np.full(3, -7.0)
    assert getattr(array, name)(axis=0, out=plain) is plain
    assert np.array_equal(plain, np.ma.filled(expected.astype(float), np.nan), equal_nan=True)
    masked = np.ma.MaskedArray(np.full(3, -7.0), mask=[False, True, False])
    assert getattr(array, name)(axis=0, out=masked) is masked
    assert masked.mask.tolist() == [True, False, False] and masked[1:].tolist() == expected[1:].tolist()


def test_out_that_cannot_hold_the_result_is_left_alone(tmp_path: Path) -> None:
    array, values = _with_a_null_column(tmp_path)
    whole = np.full(3, -7)
    with pytest.raises(gs.InputError, match=r"no value.*masked"):
        array.max(axis=0, out=whole)
    with pytest.raises(gs.InputError, match=r"no value.*masked"):
        array["v"].any(axis=0, out=np.zeros(3, bool))
    with pytest.raises(TypeError, match="int64"):
        array.mean(axis=0, out=whole)
    assert whole.tolist() == [-7, -7, -7]
    inner = np.zeros(2, "int16")
    assert array.sum(axis=0, box={"d1": (1, 2)}, out=inner) is inner and inner.tolist() == [5, 7]
    times = np.ma.MaskedArray(values.data.astype("M8[s]"), mask=values.mask)
    out = np.zeros(3, "M8[s]")
    gs.array(tmp_path / "t.gs", times, name="v").max(axis=0, out=out)
    assert np.isnat(out).tolist() == [True, False, False]


@pytest.mark.parametrize("ddof", [0, 1, 2, 2.5, -1])
def test_a_variance_of_too_few_values_is_masked(tmp_path: Path, ddof: float) -> None:
    mask = [[False, True, False], [True, True, False]]
    values = np.ma.MaskedArray([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0]], mask=mask)
    array = gs.array(tmp_path / "a.gs", values, name="v")
    for axis in (0, 1, None):
        for name in ("var", "std"):
            found, expected = (getattr(of, name)(axis=axis, ddof=ddof) for of in (array, values))
            _same(found, expected, f"{name} {axis}")
    out = np.zeros(3)
    assert np.isnan(array.var(axis=0, ddof=1, out=out)).tolist() == [True, True, False]


def test_what_is_null_alone_is_neither_true_nor_false(tmp_path: Path) -> None:
    values = np.ma.MaskedArray([[1, 0, 2], [0, 0, 3]], mask=[[0, 1, 1], [0, 1, 0]])
    array = gs.array(tmp_path / "a.gs", values, name="v")
    for name in ("any", "all"):
        found = getattr(array, name)(axis=0)
        assert found.tolist() == getattr(np.ma, name)(values, axis=0).tolist() and found.mask.tolist() == [
            False,
            True,
            False,
        ]
        assert getattr(array, name)() == getattr(np.ma, name)(values)


def test_what_cannot_be_reduced_is_named(tmp_path: Path) -> None:
    two = gs.create(tmp_path / "b.gs", gs.Schema([gs.Dim("x", (0, 3))], [gs.Attr("a", "int8"), gs.Attr("b", "int8")]))
    with pytest.raises(gs.InputError, match=r"a\['a'\]"):
        two.sum()
    assert two["b"].sum() == 0
    with pytest.raises(ValueError, match="no max"):
        two["a"].max(where=np.zeros(4, bool))
    with pytest.raises(gs.InputError, match="axis"):
        two["a"].sum("nothing")
    with pytest.raises(np.exceptions.AxisError):
        two["a"].sum(1)
    with pytest.raises(gs.InputError, match="shape"):
        two["a"].sum(where=np.zeros(5, bool))
    sparse = gs.create(
        tmp_path / "s.gs", gs.Schema([gs.Dim("x", (0, 3), dtype="int64")], [gs.Attr("a", "int8")], sparse=True)
    )
    with pytest.raises(gs.UnsupportedError, match="aggregate"):
        sparse.sum()


def test_several_aggregates_along_axes(tmp_path: Path) -> None:
    values = np.random.default_rng(3).normal(size=(7, 8, 9))
    array = gs.array(tmp_path / "a.gs", values, dims=["day", "lat", "lon"])
    name = array.schema.attrs[0].name
    found = array.reduce({"m": f"mean({name})", "k": f"max({name})"}, axis=["day"], box={"lat": (2, 5)})
    assert found.shape == (4, 9) and found["lat"].tolist() == [2, 3, 4, 5]
    _same(found["m"], values[:, 2:6].mean(0), "mean")
    _same(found.to_numpy()["k"], values[:, 2:6].max(0), "max")
    assert array.reduce({"m": f"mean({name})"})["m"][0] == pytest.approx(values.mean())
    with pytest.raises(gs.InputError, match="aggregate"):
        array.reduce({"m": f"median({name})"}, axis=0)


_ASKED = {"n": "count(v)", "mean": "mean(v)", "top": "max(v)", "first": "first(v)"}


def _numpys(values: Any, axes: tuple[int, ...]) -> dict[str, Any]:
    flat = np.moveaxis(np.ma.asanyarray(values), axes, range(len(axes)))
    flat = flat.reshape(-1, *flat.shape[len(axes) :])
    known = ~np.ma.getmaskarray(flat)
    first = np.argmax(known, axis=0)
    firsts = np.ma.MaskedArray(np.take_along_axis(flat.data, first[None], 0)[0], ~known.any(axis=0))
    return {"n": known.sum(axis=0), "mean": flat.mean(axis=0), "top": flat.max(axis=0), "first": firsts}


@given(seed=st.integers(0, 2**32), axes=st.sampled_from(_AXES[1:]), cut=st.booleans())
def test_reductions_are_written_as_arrays(
    tmp_path_factory: pytest.TempPathFactory, seed: int, axes: Any, cut: bool
) -> None:
    folder = tmp_path_factory.mktemp("to")
    array, values = _array(folder, seed)
    rng = np.random.default_rng(seed)
    lows = [int(rng.integers(0, n)) if cut else 0 for n in values.shape]
    highs = [int(rng.integers(low, n)) if cut else n - 1 for low, n in zip(lows, values.shape, strict=True)]
    box = {f"d{k}": (low, high) for k, (low, high) in enumerate(zip(lows, highs, strict=True))}
    part = values[tuple(slice(low, high + 1) for low, high in zip(lows, highs, strict=True))]
    made = array.reduce(_ASKED, axis=axes, box=box if cut else None, to=folder / "made.gs")
    kept = [k for k in range(3) if k not in axes]
    assert [dim.name for dim in made.schema.dims] == [f"d{k}" for k in kept]
    assert [dim.domain for dim in made.schema.dims] == [(lows[k], highs[k]) for k in kept]
    assert [dim.tile for dim in made.schema.dims] == [array.schema.dims[k].tile for k in kept]
    assert len(made.history()) == 1 and not made.sparse
    found, told = made.read(), array.reduce(_ASKED, axis=axes, box=box if cut else None)
    for name, expected in _numpys(part, axes).items():
        _same(found[name], expected, name)
        if kept:
            assert np.array_equal(np.ma.filled(found[name], 0), np.ma.filled(told[name], 0), equal_nan=True), name


def test_blocks_cover_a_box_and_end_at_tiles() -> None:
    for places in (1, 7, 40, 1_000, 10**9):
        for sides, grids in (([(3, 29), (-5, 14)], [(0, 10), (-5, 4)]), ([(0, 99)], [(0, 100)]), ([], [])):
            found = list(blocks(sides, grids, places))
            cells = [cell for block in found for cell in itertools.product(*(range(lo, hi + 1) for lo, hi in block))]
            assert sorted(cells) == list(itertools.product(*(range(lo, hi + 1) for lo, hi in sides)))
            assert max(math.prod(hi - lo + 1 for lo, hi in block) for block in found) <= places
            tiles = math.prod(tile for _, tile in grids)
            for block in found if places >= tiles else []:
                for (lo, hi), (origin, tile), (first, last) in zip(block, grids, sides, strict=True):
                    assert lo == first or (lo - origin) % tile == 0
                    assert hi == last or (hi + 1 - origin) % tile == 0


def test_a_reduction_beyond_memory_is_one_commit(tmp_path: Path) -> None:
    small = gs.Context(memory_budget="8MiB")
    shape, rng = (4, 700, 800), np.random.default_rng(8)
    values = np.ma.MaskedArray(rng.integers(-(2**40), 2**40, shape), mask=rng.random(shape) < 0.6)
    dims = [gs.Dim("day", (0, 3), tile=1), gs.Dim("y", (0, 699), tile=100), gs.Dim("x", (0, 799), tile=100)]
    schema = gs.Schema(dims, [gs.Attr("v", "int64", nullable=True)])
    array = gs.create(tmp_path / "a.gs", schema, context=small)
    for day in range(4):
        array.write(values[day : day + 1], {"day": (day, day)})
    array.write(values[1:3, 50:250], {"day": (1, 2), "y": (50, 249)})
    seen: list[tuple[int, int]] = []
    made = array.reduce(
        {"n": "count(v)", "s": "sum(v)", "top": "max(v)"},
        axis="day",
        to=f"{tmp_path / 'to.gs'}:/sums",
        progress=lambda done, total: seen.append((done, total)),
    )
    assert len(seen) > 3 and seen[-1][0] == 700 * 800
    assert len(made.history()) == 1 and made.path == "/sums" and made.schema.attr("s").nullable
    again: Any = gs.open(tmp_path / "to.gs", path="/sums", context=small)
    for low in (0, 350):
        found = again.read({"y": (low, low + 349)})
        _same(found["n"], values.count(axis=0)[low : low + 350], "n")
        _same(found["s"], values.sum(axis=0)[low : low + 350], "s")
        _same(found["top"], values.max(axis=0)[low : low + 350], "top")


def test_what_reductions_keep(tmp_path: Path) -> None:
    times = np.datetime64("2024-01-01", "D")
    dims = [
        gs.Dim("t", (times, times + 9), tile=4, dtype="datetime64[D]"),
        gs.Dim("y", (10, 15), tile=2),
        gs.Dim("k", (0, None), tile=3),
    ]
    attrs = [gs.Attr("v", "float32"), gs.Attr("c", "string", categories=["low", "high"])]
    array = gs.create(tmp_path / "a.gs", gs.Schema(dims, attrs, cell_order="col"))
    values = np.random.default_rng(2).normal(size=(10, 6, 7)).astype("float32")
    kinds = np.where(values > 0, "high", "low").astype(object)
    array.write({"v": values, "c": kinds}, {"k": (0, 6)})
    array.alter(labels={"y": np.arange(6) * 0.5})
    array.dim("y").meta["units"] = "m"
    made: Any = array.reduce({"v": "mean(v)", "c": "first(c)"}, axis="k", box={"y": (12, 14)}, to=tmp_path / "b.gs")
    assert made.schema.dims[0].domain == (times, times + 9) and made.schema.dims[0].dtype == "datetime64[D]"
    assert made.dim("y").labels.tolist() == [1.0, 1.5, 2.0] and made.dim("y").meta["units"] == "m"
    assert made.schema.cell_order == "col" and not made.schema.attr("v").nullable
    assert made.schema.attr("c").enumeration == array.schema.attr("c").enumeration
    _same(made.read()["v"], values[:, 2:5].mean(axis=2), "v")
    assert made.read()["c"].tolist() == kinds[:, 2:5, 0].tolist()
    open_ = array.reduce({"v": "sum(v)"}, axis=("t", "y"), to=tmp_path / "c.gs")
    assert open_.shape == (7,) and open_.schema.dims[0].open == (False, True)
    _same(open_.read()["v"], values.sum(axis=(0, 1), dtype="float64"), "open")
    flags = np.random.default_rng(3).random((10, 3, 7)) < 0.2
    some = array.reduce({"s": "sum(v)"}, axis="t", box={"y": (12, 14)}, where=flags, to=tmp_path / "d.gs")
    plain = np.ma.MaskedArray(values[:, 2:5].astype("float64"), ~flags)
    _same(some.read()["s"], plain.sum(axis=0), "mask")
    high = array.reduce({"n": "count(*)", "s": "max(v)"}, axis="k", where="c == 'high'", to=tmp_path / "e.gs")
    _same(high.read()["n"], (values > 0).sum(axis=2), "n")
    _same(high.read()["s"], np.ma.MaskedArray(values, values <= 0).max(axis=2), "where")
    whole = array.reduce({"n": "count(*)"}, to=tmp_path / "f.gs")
    assert whole.shape == () and whole.read()["n"] == 420


def test_what_reductions_cannot_write_is_named(tmp_path: Path) -> None:
    array = gs.array(tmp_path / "a.gs", np.arange(24).reshape(4, 6), dims=["y", "x"], name="v")

    def unread(done: int, total: int) -> None:
        raise AssertionError("a cell was read")

    there = array.reduce({"s": "sum(v)"}, axis="y", to=tmp_path / "b.gs")
    with pytest.raises(gs.ExistsError):
        array.reduce({"s": "sum(v)"}, axis="y", to=tmp_path / "b.gs", progress=unread)
    assert there.read()["s"].tolist() == np.arange(24).reshape(4, 6).sum(0).tolist()
    mistakes: list[tuple[dict[str, str], str, Any, str]] = [
        ({"s": "median(v)"}, "y", None, "aggregate"),
        ({"s": "sum(w)"}, "y", None, "w"),
        ({"x": "sum(v)"}, "y", None, "x"),
        ({"s": "sum(v)"}, "z", None, "axis"),
        ({"s": "sum(v)"}, "y", {"y": slice(3, 3)}, "no cell"),
    ]
    for asked, axis, box, message in mistakes:
        with pytest.raises((gs.InputError, gs.SchemaError), match=message):
            array.reduce(asked, axis=axis, box=box, to=tmp_path / "c.gs", progress=unread)
        assert not (tmp_path / "c.gs").exists()
    big = gs.array(tmp_path / "big.gs", np.full((2, 3), 2**62), dims=["y", "x"], name="v")
    with pytest.raises(gs.InputError, match="64 bits"):
        big.reduce({"s": "sum(v)"}, axis="y", to=tmp_path / "c.gs")
    assert not (tmp_path / "c.gs").exists()


def test_reductions_in_a_transaction_see_what_is_staged(tmp_path: Path) -> None:
    gs.array(tmp_path / "a.gs", np.arange(12).reshape(3, 4), dims=["y", "x"], name="v")
    with gs.transaction(tmp_path / "a.gs") as begun:
        staged = begun["/"]
        staged.write(np.zeros((1, 4), "int64"), {"y": (2, 2)})
        made = staged.reduce({"s": "sum(v)"}, axis="y", to=tmp_path / "b.gs")
        assert made.read()["s"].tolist() == [4, 6, 8, 10]


@pytest.mark.parametrize("where", [None, "v > 2"])
def test_a_box_without_a_cell_gives_what_numpy_gives(tmp_path: Path, where: str | None) -> None:
    values = np.arange(12.0).reshape(3, 4)
    array = gs.array(tmp_path / "a.gs", values, name="v")
    nothing = values[:, 3:3]
    box = {array.schema.dims[1].name: slice(3, 3)}
    for axis in (None, 0, 1):
        found = array.sum(axis=axis, box=box, where=where)
        assert np.array_equal(found, nothing.sum(axis=axis)) and np.shape(found) == np.shape(nothing.sum(axis=axis))
    assert array.sum(axis=0, box=box, where=where).shape == (0,)
    with pytest.raises(ValueError, match="no cell"):
        array.max(axis=1, box=box, where=where)
    with pytest.raises(gs.InputError, match="nosuch"):
        array.sum(box=box, where="nosuch > 1")
