"""Promise: an argument of a wrong type is told as such, in the words of the call that it was given to.

Every public function and method is called once for each of its parameters and each of many wrong objects. It may
succeed where anything will do; else it raises an error of the package, or a TypeError or ValueError that names the
parameter.
"""

import functools
import inspect
import itertools
import os
import pathlib
import pickle
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from message_rules import faults

import gridstone as gs
from gridstone import errors, io
from gridstone.arrays.view import AttrView
from gridstone.base.printable import brief

NUMBERS = itertools.count()
SCHEMA = gs.Schema(
    [gs.Dim("y", (0, 9), 4), gs.Dim("x", (0, 9), 4)], [gs.Attr("v", "int64"), gs.Attr("s", "string", nullable=True)]
)
LOOSE = gs.Schema([gs.Dim("t", dtype="string"), gs.Dim("n", (0, 99), 10)], [gs.Attr("v", "int64")], sparse=True)


DASK = da.ones((2, 2))


class Thing:
    """Of no use to anybody."""

    def __repr__(self) -> str:
        return "a thing"


def set_for_now(*, pictures: Any = None, remote_pictures: Any = None) -> None:
    """`gs.set_options`, whose options end here."""
    with gs.set_options(pictures=pictures, remote_pictures=remote_pictures):
        pass


# More digits than Python writes, and more than a float holds.
HUGE = 10**5000

WRONG: list[Any] = [
    Thing(),
    HUGE,
    -(10**400),
    [HUGE],
    (0, HUGE),
    {"x": HUGE},
    {HUGE: 1},
    1.5,
    -3,
    2**70,
    float("nan"),
    b"bytes",
    [1],
    [None],
    [[1]],
    {"a": 1},
    {1: 2},
    (),
    (1, 2, 3),
    {7},
    "\ud800",
    "nul\0",
    "",
    "no such thing",
    np.arange(3),
    np.datetime64("NaT"),
    np.array(3.0),
    pd.NA,
    3 + 4j,
    Thing,
    len,
    True,
    None,
]


class World:
    """A store with a dense and a sparse array, a group, a tag and a receipt."""

    def __init__(self) -> None:
        self.uri = f"mem://arguments-{next(NUMBERS)}"
        self.dense = gs.create(self.uri, SCHEMA, path="/g/dense")
        self.dense.write({"v": np.arange(100).reshape(10, 10)})
        self.loose = gs.create(self.uri, LOOSE, path="/loose")
        self.loose.write_cells({"t": ["a", "b"], "n": [1, 2]}, {"v": [5, 6]})
        self.receipt: gs.Receipt = self.dense.write({"v": np.zeros((10, 10), np.int64)}, commit=False)
        gs.tag(self.uri, "first", 1)
        self.group = gs.group(self.uri, mode="a")
        self.other = f"mem://arguments-{next(NUMBERS)}"

    def transaction(self) -> gs.Transaction:
        return gs.transaction(self.uri)


Target = tuple[Callable[..., Any], dict[str, Any]]
_CELLS = {"t": ["c"], "n": [3]}
_BUFFERS = {"v": np.empty(8, np.int64)}


def _of_dense(name: str, /, **given: Any) -> Callable[[World], Target]:
    return lambda w: (getattr(w.dense, name), given)


def _of(what: Callable[[World], Any], name: str, /, **given: Any) -> Callable[[World], Target]:
    return lambda w: (getattr(what(w), name), given)


def _loose(w: World) -> gs.Array:
    return w.loose


def _group(w: World) -> gs.Group:
    return w.group


def _result(w: World) -> gs.Result:
    return w.dense.read(attrs="v", where="v > 5")


def _stream(w: World) -> gs.Stream:
    return w.dense.scan(attrs="v", where="v > 5")


def _file() -> str:
    """A file of NumPy with three numbers."""
    path = pathlib.Path(tempfile.gettempdir()) / f"gridstone-arguments-{os.getpid()}.npy"
    np.save(path, np.arange(3))
    return str(path)


def _attached(w: World) -> gs.Array:
    found = gs.attach(f"mem://arguments-{next(NUMBERS)}", _file(), "array", concat="d0")
    assert isinstance(found, gs.Array)
    return found


def _lazy(w: World) -> xr.DataArray:
    """A variable that was opened and not read."""
    from gridstone.xarray.backend import GridstoneBackend

    return xr.open_dataset(w.uri, engine=GridstoneBackend, group="/g")["v"]


CALLS: dict[str, Callable[[World], Target]] = {
    "attach": lambda w: (gs.attach, {"uri": w.other, "source": _file(), "dataset": "array"}),
    "Array.attach": lambda w: (_attached(w).attach, {"source": _file()}),
    "Array.refresh_sources": lambda w: (_attached(w).refresh_sources, {}),
    "array": lambda w: (gs.array, {"uri": w.other, "ndarray": np.arange(6)}),
    "col": lambda w: (gs.col, {"name": "v"}),
    "commit": lambda w: (gs.commit, {"uri": w.uri, "receipts": [w.receipt]}),
    "copy": lambda w: (gs.copy, {"source": w.uri, "target": w.other}),
    "create": lambda w: (gs.create, {"uri": w.other, "schema": SCHEMA}),
    "delete": lambda w: (gs.delete, {"uri": w.uri, "path": "/loose"}),
    "diff": lambda w: (gs.diff, {"a": w.dense, "b": w.dense}),
    "exists": lambda w: (gs.exists, {"uri": w.uri}),
    "group": lambda w: (gs.group, {"uri": w.uri}),
    "ls": lambda w: (gs.ls, {"uri": w.uri}),
    "move": lambda w: (gs.move, {"uri": w.uri, "path": "/loose", "target_path": "/tight"}),
    "upgrade": lambda w: (gs.upgrade, {"uri": w.uri}),
    "du": lambda w: (gs.du, {"uri": w.uri}),
    "open": lambda w: (gs.open, {"uri": w.uri}),
    "prefix": lambda w: (gs.prefix, {"text": "a"}),
    "register_filter": lambda w: (
        gs.register_filter,
        {"id": "test.same", "encode": len, "decode": len, "overwrite": True},
    ),
    "registered_filters": lambda w: (gs.registered_filters, {}),
    "set_options": lambda w: (set_for_now, {"pictures": "1MiB", "remote_pictures": True}),
    "repair": lambda w: (gs.repair, {"uri": w.uri}),
    "to_gridstone": lambda w: (gs.to_gridstone, {"obj": xr.Dataset({"v": ("x", [1, 2])}), "uri": w.other}),
    "xarray.reduce": lambda w: (gs.xarray.reduce, {"obj": _lazy(w), "func": "mean"}),
    "tag": lambda w: (gs.tag, {"uri": w.uri, "name": "second"}),
    "transaction": lambda w: (gs.transaction, {"uri": w.uri}),
    "untag": lambda w: (gs.untag, {"uri": w.uri, "name": "first"}),
    "verify": lambda w: (gs.verify, {"uri": w.uri}),
    "advise": lambda w: (gs.advise, {"data": w.loose}),
    "Attr": lambda w: (gs.Attr, {"name": "v", "dtype": "int64"}),
    "Dim": lambda w: (gs.Dim, {"name": "x", "domain": (0, 9)}),
    "Schema": lambda w: (gs.Schema, {"dims": SCHEMA.dims, "attrs": SCHEMA.attrs}),
    "Schema.from_json": lambda w: (gs.Schema.from_json, {"text": SCHEMA.to_json()}),
    "Schema.attr": lambda w: (SCHEMA.attr, {"name": "v"}),
    "Context": lambda w: (gs.Context, {}),
    "Receipt": lambda w: (gs.Receipt, {"text": w.receipt.to_json()}),
    "Receipt.from_json": lambda w: (gs.Receipt.from_json, {"text": w.receipt.to_json()}),
    "Array.tiles": _of_dense("tiles"),
    "Array.plot": _of_dense("plot"),
    "Result.plot": _of(lambda w: w.dense.read(), "plot"),
    "AttrView.plot": _of(lambda w: w.dense["v"], "plot"),
    "Array.refresh": _of_dense("refresh"),
    "Array.at": _of_dense("at", version=2),
    "Array.at a time": _of_dense("at", timestamp="2100-01-01"),
    "Array.history": _of_dense("history"),
    "Array.points": _of_dense("points", coords={"y": [1], "x": [2]}),
    "Array.points of texts": _of(_loose, "points", coords=_CELLS),
    "Array.read": _of_dense("read"),
    "Array.read of texts": _of(_loose, "read"),
    "Array.scan": _of_dense("scan"),
    "sql": lambda w: (gs.sql, {"query": "select 1 as one"}),
    "connect": lambda w: (gs.connect, {"uri": w.uri}),
    "Array.aggregate": _of_dense("aggregate", aggregates={"n": "count(*)"}),
    "Array.partial": _of_dense("partial", aggregates={"n": "count(*)"}),
    "Array.reduce": _of_dense("reduce", aggregates={"n": "sum(v)"}),
    "Array.explain": _of_dense("explain", question="read"),
    "Array.filter": _of_dense("filter", to="smaller.gs"),
    "Array.to_pyarrow_dataset": _of_dense("to_pyarrow_dataset"),
    **{f"Array.{name}": _of_dense(name) for name in ("sum", "mean", "min", "max", "any", "all", "var", "std")},
    **{
        f"AttrView.{name}": _of(lambda w: w.dense["v"], name)
        for name in ("sum", "mean", "min", "max", "any", "all", "var", "std")
    },
    "Array.read_into": _of_dense("read_into", buffers=_BUFFERS),
    "Array.write": _of_dense("write", data={"v": np.zeros((10, 10), np.int64)}),
    "Array.write_cells": _of(_loose, "write_cells", coords=_CELLS, attrs={"v": [7]}),
    "Array.dim": _of_dense("dim", name="x"),
    "Array.sel": _of_dense("sel", labels={"x": 3}),
    "Array.sel of texts": _of(_loose, "sel", labels={"t": "a"}),
    "AttrView.sel": _of(lambda w: w.dense["v"], "sel", labels={"x": [3, 4]}),
    "Array.write_cells that evolves": _of(_loose, "write_cells", coords={**_CELLS, "v": [7], "w": [1]}, evolve=True),
    "Array.append": _of_dense("append", x={"v": np.zeros((1, 10), np.int64)}),
    "Array.writer": _of_dense("writer"),
    "Array.delete": _of_dense("delete", box=(...,)),
    "Array.delete counted": _of_dense("delete", where="v > 5", count=True),
    "Array.update": _of_dense("update", values={"v": "v + 1"}, where="v > 5"),
    "Array.update of texts": _of(_loose, "update", values={"v": 3}),
    "Array.count": _of_dense("count"),
    "Array.head": _of_dense("head"),
    "lit": lambda w: (gs.lit, {"value": 1}),
    "exists at a path": lambda w: (gs.exists, {"uri": w.uri, "path": "/loose"}),
    "Array.delete where": _of_dense("delete", where="v > 5"),
    "Array.delete at": _of_dense("delete", coords={"y": [1], "x": [2]}),
    "Array.alter": _of_dense("alter", add=gs.Attr("w", "int8")),
    "Array.resize": _of_dense("resize", domain={"x": (0, 19)}),
    "Array.consolidate": _of_dense("consolidate"),
    "Array.vacuum": _of_dense("vacuum"),
    "Array.verify": _of_dense("verify"),
    "Array.__getitem__": lambda w: (lambda key: w.dense[key], {"key": "v"}),
    "Array.__setitem__": lambda w: (lambda key, value: w.dense["v"].__setitem__(key, value), {"key": ..., "value": 3}),
    "Array.loc": lambda w: (lambda key: w.dense.loc[key], {"key": 3}),
    "Array.oindex": lambda w: (lambda key: w.dense.oindex[key], {"key": ([1], [2])}),
    "Array.vindex": lambda w: (lambda key: w.dense.vindex[key], {"key": ([1], [2])}),
    "AttrView.points": _of(lambda w: w.dense["v"], "points", coords={"y": [1], "x": [2]}),
    "io.to_arrow": lambda w: (io.to_arrow, {"array": w.dense}),
    "io.to_mtx": lambda w: (io.to_mtx, {"array": w.dense, "target": "m.mtx", "attr": "v"}),
    "io.read_csv": lambda w: (io.read_csv, {"source": "cells.csv", "schema": LOOSE}),
    "Array.meta": lambda w: (lambda key, value: w.dense.meta.__setitem__(key, value), {"key": "a", "value": 1}),
    "Group.__getitem__": lambda w: (lambda name: w.group[name], {"name": "loose"}),
    "Group.children": _of(_group, "children"),
    "Group.create": _of(_group, "create", name="new", schema=SCHEMA),
    "Group.get": _of(_group, "get", name="loose"),
    "Group.group": _of(_group, "group", name="new"),
    "Group.move": _of(_group, "move", name="loose", target="tight"),
    "Group.remove": _of(_group, "remove", name="loose"),
    "Group.refreshed": _of(_group, "refreshed"),
    "Group.vacuum": _of(_group, "vacuum"),
    "Group.verify": _of(_group, "verify"),
    "Transaction.__getitem__": lambda w: (lambda path: w.transaction()[path], {"path": "/loose"}),
    "Transaction.__contains__": lambda w: (lambda path: path in w.transaction(), {"path": "/loose"}),
    "Transaction.ls": _of(World.transaction, "ls"),
    "dask.array": lambda w: (gs.dask.array, {"a": w.dense, "attr": "v"}),
    "dask.store": lambda w: (gs.dask.store, {"x": DASK, "uri": w.other}),
    "dask.frame": lambda w: (gs.dask.frame, {"a": w.loose}),
    "Transaction.create": _of(World.transaction, "create", path="/new", schema=SCHEMA),
    "Transaction.meta": _of(World.transaction, "meta", path="/loose"),
    "Transaction.add": _of(World.transaction, "add", receipts=[]),
    "Transaction.group": _of(World.transaction, "group", path="/new"),
    "Transaction.remove": _of(World.transaction, "remove", path="/loose"),
    "Transaction.move": _of(World.transaction, "move", path="/loose", target_path="/tight"),
    "Transaction.commit": _of(World.transaction, "commit"),
    "Transaction.abort": _of(World.transaction, "abort"),
    "Result.__getitem__": lambda w: (lambda name: _result(w)[name], {"name": "v"}),
    "Result.to_dense": _of(_result, "to_dense"),
    "Result.to_scipy": _of(_result, "to_scipy"),
    "Result.to_sparse": _of(_result, "to_sparse"),
    "Stream.to_dense": _of(_stream, "to_dense"),
    "Stream.to_scipy": _of(_stream, "to_scipy"),
    "Stream.to_sparse": _of(_stream, "to_sparse"),
    "Filling.submit": lambda w: (w.dense.read_into(_BUFFERS).submit, {}),
    "Schema.dim": lambda w: (SCHEMA.dim, {"name": "x"}),
    "Schema.from_arrow": lambda w: (gs.Schema.from_arrow, {"arrow_schema": LOOSE.to_arrow(), "dims": LOOSE.dims}),
    "Expression.parse": lambda w: (gs.Expression.parse, {"text": "v > 1"}),
    "Expression.from_json": lambda w: (gs.Expression.from_json, {"text": (gs.col("v") > 1).to_json()}),
    "Expression.isin": lambda w: (gs.col("v").isin, {"values": [1]}),
    "Expression.between": lambda w: (gs.col("v").between, {"low": 1, "high": 2}),
    "Expression >": lambda w: (lambda value: w.dense.read(where=gs.col("v") > value), {"value": 3}),
    "Expression ==": lambda w: (lambda value: w.dense.read(where=gs.col("s") == value), {"value": "a"}),
    "Expression &": lambda w: (lambda value: (gs.col("v") > 3) & value, {"value": gs.col("v") < 9}),
}


def _cases() -> Iterator[tuple[str, str]]:
    world = World()
    for label, make in CALLS.items():
        call, given = make(world)
        parameters = list(inspect.signature(call).parameters.values())
        for parameter in parameters:
            if parameter.kind is not parameter.VAR_KEYWORD:
                yield label, parameter.name
        assert set(given) <= {p.name for p in parameters}, label


def _called(call: Callable[..., Any], given: dict[str, Any]) -> None:
    parameters = inspect.signature(call).parameters.values()
    first = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY and p.name in given]
    made = call(*(given[name] for name in first), **{name: v for name, v in given.items() if name not in first})
    if isinstance(made, gs.Context):
        made.native  # noqa: B018 - the core's context is made when it is first asked for


@pytest.mark.parametrize(("label", "name"), list(_cases()))
def test_a_wrong_argument_is_told(
    label: str, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some of what is wrong elsewhere is a good place for a store.
    monkeypatch.chdir(tmp_path)
    pathlib.Path("cells.csv").write_text("t,n,v\na,1,5\n")
    world: World | None = None
    for wrong in WRONG:
        if name == "progress" and callable(wrong):
            continue  # It is called, and what it raises is its own.
        # What was refused has changed nothing.
        world = world or World()
        call, given = CALLS[label](world)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _called(call, {**given, name: wrong})
                world = None
        except errors.GridstoneError as error:
            wrongs = faults(str(error).replace(brief(wrong), "…"))
            assert not wrongs, (label, name, brief(wrong), str(error), wrongs)
        except Exception as error:
            # What may be a mapping is data: it is wrong input, and no wrong type.
            told = isinstance(error, TypeError | ValueError) and not isinstance(error, UnicodeError)
            told &= not _takes_mapping(call, name)
            assert told and name in str(error) and "extract" not in str(error), (
                f"{label}({name}={brief(wrong)}): {error!r}"
            )


def _takes_mapping(call: Callable[..., Any], name: str) -> bool:
    kinds = str(inspect.signature(call).parameters[name].annotation).replace("collections.abc.", "").split(" | ")
    return any(kind.startswith("Mapping[") for kind in kinds)


def test_what_is_no_mapping_is_wrong_input() -> None:
    """In every call, of each parameter that takes nothing but mappings."""
    world, found = World(), set()
    for label, make in CALLS.items():
        call, given = make(world)
        for name, parameter in inspect.signature(call).parameters.items():
            kinds = str(parameter.annotation).replace("collections.abc.", "").removesuffix(" | None")
            if not re.fullmatch(r"Mapping\[.*\]", kinds):
                continue
            found.add(f"{label} {name}")
            for wrong in ("day", "", 3, 1.5, [("x", 1)], ("x", 1), {"x"}, b"x", Thing(), np.arange(2), True):
                with pytest.raises(errors.InputError, match=f"^{name}= takes a dict|^{name} is a mapping") as raised:
                    _called(call, {**given, name: wrong})
                assert type(wrong).__name__ in str(raised.value)
    wanted = {
        "Array.plot at",
        "AttrView.plot at",
        "Array.update values",
        "sql tables",
        "Array.sel labels",
        "copy types",
    }
    assert wanted <= found and len(found) > 20, found


def test_every_public_call_is_in_the_table() -> None:
    called = {label.split(" ")[0] for label in CALLS}
    kinds = (
        gs.Array,
        gs.Group,
        gs.Transaction,
        gs.Result,
        gs.Stream,
        gs.Filling,
        gs.Schema,
        gs.Expression,
        gs.Receipt,
        AttrView,
    )
    for kind in kinds:
        for name in dir(kind):
            if not name.startswith("_") and callable(getattr(kind, name)):
                takes = list(inspect.signature(getattr(kind, name)).parameters)
                assert takes in ([], ["self"]) or f"{kind.__name__}.{name}" in called, f"{kind.__name__}.{name}"
    # Classes that calls give, and modules, have tests of their own.
    given = {
        "Array",
        "DamageWarning",
        "Difference",
        "Expression",
        "Filling",
        "Group",
        "NatWarning",
        "Repair",
        "Report",
        "Usage",
        "Result",
    }
    given |= {"Skipped", "Stream", "Transaction", "__version__", "errors", "io", "plot", *gs.errors.__all__}
    given |= {"Plan", "Usage", "chart", "dask", "partials", "xarray"}
    assert set(gs.__all__) - given <= called


HALF = "half a \ud800 pair"


def test_halves_of_surrogate_pairs_are_told() -> None:
    world = World()
    uri, dense, loose = world.uri, world.dense, world.loose
    calls: list[tuple[str, Callable[[], object]]] = [
        ("message", lambda: dense.write({"v": np.zeros((10, 10), np.int64)}, message=HALF)),
        ("message", lambda: loose.write_cells(_CELLS, {"v": [1]}, message=HALF)),
        ("message", lambda: dense.delete((...,), message=HALF)),
        ("message", lambda: dense.resize(x=(0, 19), message=HALF)),
        ("message", lambda: gs.transaction(uri, HALF)),
        ("message", lambda: gs.commit(uri, [world.receipt], HALF)),
        ("message", lambda: gs.move(uri, "/loose", "/tight", message=HALF)),
        ("uri", lambda: gs.open(f"mem://{HALF}")),
        ("path", lambda: gs.open(uri, path=f"/{HALF}")),
        ("path", lambda: gs.transaction(uri)[HALF]),
        ("name", lambda: world.group[HALF]),
        ("name", lambda: gs.tag(uri, HALF)),
        ("name", lambda: gs.untag(uri, HALF)),
        ("name", lambda: gs.col(HALF)),
        ("name", lambda: gs.Attr(HALF, "int8")),
        ("version", lambda: gs.open(uri, version=HALF)),
        ("version", lambda: dense.at(version=HALF)),
        ("where", lambda: dense.read(where=f"s == '{HALF}'")),
        ("where", lambda: dense.scan(where=f"s == '{HALF}'")),
        ("where", lambda: dense.delete(where=f"s == '{HALF}'")),
        ("value", lambda: gs.col("s") == HALF),
        ("text", lambda: gs.Expression.parse(f"s == '{HALF}'")),
        ("text", lambda: gs.prefix(HALF)),
    ]
    before = gs.open(uri, path="/loose").version
    for name, call in calls:
        with pytest.raises(errors.InputError, match=f"{name}=.*surrogate"):
            call()
    assert gs.open(uri, path="/loose").version == before


def test_a_wrong_type_says_what_was_asked_and_found() -> None:
    world = World()
    with pytest.raises(TypeError, match=r"version= takes the number of a version, or its tag as text, found 1\.5"):
        gs.copy(world.uri, world.other, version=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="text= takes text, found 3 of type int"):
        gs.prefix(3)  # type: ignore[arg-type]
    with pytest.raises(errors.InputError, match=r"buffers= takes a dict by name, .* found \[1\] of type list"):
        world.dense.read_into([1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"context= takes a gridstone\.Context"):
        gs.open(world.uri, context="1GiB")  # type: ignore[call-overload]
    with pytest.raises(errors.InputError, match="coords= takes a dict by dimension"):
        world.dense.points(3)
    # NumPy's numbers and booleans are as good as Python's.
    assert gs.open(world.uri, path="/loose", version=np.int64(3)).version == 3
    assert world.dense.consolidate(dry_run=np.bool_(True)).merges == ()
    assert gs.tag(world.uri, "other", np.int32(2)) == 2


def test_handles_are_true() -> None:
    world = World()
    assert len(world.dense) == 10 and bool(world.dense)
    assert bool(world.loose), "a dimension of texts has no number of positions"
    assert bool(world.group.group("empty")) and len(world.group.group("empty")) == 0
    dim = gs.Dim("z", (0.0, 1.0), dtype="float64")
    floats = gs.create(world.other, gs.Schema([dim], [gs.Attr("v", "int8")], sparse=True))
    assert bool(floats)
    floats.close()
    assert bool(floats), "it is a handle still, which says that it is closed"


def test_numbers_of_any_size_are_told() -> None:
    world = World()
    uri, dense, loose, x = world.uri, world.dense, world.loose, gs.col("x")
    calls: list[Callable[[], object]] = [
        lambda: gs.open(uri, path="/g/dense", version=HUGE),
        lambda: gs.open(uri, path="/g/dense", timestamp=HUGE),
        lambda: gs.tag(uri, "t", version=HUGE),
        lambda: gs.Context(memory_budget=HUGE),
        lambda: gs.Context(memory_budget="9" * 400),
        lambda: gs.Context(threads=HUGE),
        lambda: gs.Context(auto_consolidate={"fragments": HUGE}),
        lambda: gs.Dim("x", (0, HUGE)),
        lambda: gs.Dim("x", (0, 9), HUGE),
        lambda: gs.Dim("x", (0.0, HUGE), dtype="float64"),
        lambda: gs.Dim("x", dtype="string", max_bytes=HUGE),
        lambda: gs.Attr("v", "int64", fill=HUGE),
        lambda: gs.Attr("v", "float32", fill=HUGE),
        lambda: gs.Attr("v", "complex64", fill=HUGE),
        lambda: gs.Attr("v", "int64[2]", fill=(0, HUGE)),
        lambda: gs.Attr("v", "datetime64[s]", fill=HUGE),
        lambda: dense.at(version=HUGE),
        lambda: dense.at(timestamp=-HUGE),
        lambda: dense[HUGE],
        lambda: dense[[HUGE, 1]],
        lambda: dense["v"][-HUGE, 3],
        lambda: dense.loc[HUGE],
        lambda: dense.oindex[[HUGE], :],
        lambda: dense.read({"x": HUGE}),
        lambda: dense.read({"x": (0, HUGE)}, clip="error"),
        lambda: dense.read({HUGE: 1}),
        lambda: dense.read(where=x > HUGE),
        lambda: dense.points({"y": [1], "x": [HUGE]}),
        lambda: dense["v"].__setitem__((0, 0), HUGE),
        lambda: dense.resize(x=(0, HUGE)),
        lambda: dense.vacuum(keep=HUGE),
        lambda: dense.vacuum(keep=10**400),
        lambda: dense.vacuum(versions=HUGE),
        lambda: dense.vacuum(safety_age=-HUGE),
        lambda: dense.meta.__setitem__("k", HUGE),
        lambda: loose.write_cells({"t": ["a"], "n": [HUGE]}, {"v": [1]}),
        lambda: loose.write_cells(_CELLS, {"v": [HUGE]}),
    ]
    before = dense.refresh()
    for number, call in enumerate(calls):
        with pytest.raises((errors.GridstoneError, TypeError)) as refused:
            call()
        assert len(str(refused.value)) < 600 and "4300" not in str(refused.value), (number, str(refused.value))
    assert dense.refresh() == before
    assert brief([2**64, -HUGE]) == "[18446744073709551616, a negative integer of 16,610 bits]"


def test_conditions_have_a_greatest_depth() -> None:
    v = gs.col("v")
    deepest = shallow = v > 1
    for number in range(49):
        deepest = ~deepest if number % 2 else (v < 3) | deepest if number % 4 else (v < 9) & deepest
    assert gs.Expression.parse(repr(deepest)) == deepest
    again = gs.Expression.parse(repr(deepest))
    calls: dict[str, Callable[[gs.Expression], gs.Expression]] = {
        "not": lambda e: ~e,
        "and": lambda e: (v < 3) & ~e,
        "or": lambda e: ~e | (v < 3),
    }
    for call in calls.values():
        for expression in (deepest, again, pickle.loads(pickle.dumps(deepest))):
            with pytest.raises(errors.InputError, match="a condition of more than 50 levels"):
                call(expression)
        with pytest.raises(errors.InputError, match="more than 50 levels"):
            functools.reduce(lambda e, _: call(e), range(5_000), shallow)
    # Parts beside each other are no levels.
    wide = functools.reduce(lambda e, n: e | (v == n), range(5_000), shallow)
    assert repr(wide & ~shallow).count(" or ") == 5_000


def test_times_that_are_none_and_arrays_of_no_dimension() -> None:
    dense = World().dense
    for none in (pd.NaT, np.datetime64("NaT"), "NaT"):
        with pytest.raises(errors.InputError, match="a timestamp is a datetime"):
            dense.at(timestamp=none)
    kept: list[tuple[object, object]] = [
        (np.array(3.0), 3.0),
        (np.array("a"), "a"),
        (np.array("2026-03-01", "M8[D]"), np.datetime64("2026-03-01")),
        (np.array(None), None),
    ]
    for given, wanted in kept:
        dense.meta["s"] = given
        assert dense.meta["s"] == wanted
    dense.meta["s"] = pd.NaT
    assert np.isnat(dense.meta["s"])
    with pytest.raises(errors.InputError, match="is masked in part"):
        dense.meta["s"] = np.ma.masked_array([1, 2], [False, True])
