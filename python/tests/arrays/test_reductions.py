"""Reductions of dense arrays along axes are NumPy's, of values and of types."""

import itertools
import random
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import gridstone as gs

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
