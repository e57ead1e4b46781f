"""Every public member of every handle, and whether it may write: for tests of modes.

A member is used through a `World`, whose handles have one mode. `READS` change no file of the store in any mode.
`WRITES` commit with mode "r+" and are refused otherwise.
"""

import copy
import pickle
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gridstone as gs
from gridstone.arrays import metadata
from gridstone.arrays.append import Appender
from gridstone.arrays.dim import DimView
from gridstone.arrays.view import AttrView, Loc
from gridstone.indexing.indexers import OIndex, VIndex
from gridstone.maintain.consolidation import BackgroundConsolidation
from gridstone.result.buffers import Filling
from gridstone.stores import group as groups
from gridstone.write.writer import LateWriter, Writer

QUICK = gs.Context(durability="close")
DENSE = gs.Schema([gs.Dim("x", (0, 9), 5), gs.Dim("y", (0, 9), 5)], [gs.Attr("v", "int64")])
SPARSE = gs.Schema([gs.Dim("x", (0, 9)), gs.Dim("y", (0, 9))], [gs.Attr("v", "int64")], sparse=True)
CELLS = ({"x": [3], "y": [4]}, {"v": [5]})


class World:
    """The group /g of a store, with the arrays `dense` and `sparse` in it, as `opened` opens it."""

    def __init__(self, uri: Path, opened: Callable[[Path], gs.Group]) -> None:
        self.uri = uri
        self.group = opened(uri)
        self.dense: Any = self.group["dense"]
        self.sparse: Any = self.group["sparse"]
        self.opened = opened

    def transaction(self) -> gs.Transaction:
        return gs.transaction(self.uri, context=QUICK)


def made(uri: Path) -> int:
    """A store with its group and arrays; the number of a version that holds everything and has later ones."""
    root = gs.group(uri, mode="a", context=QUICK)
    group = root.group("g")
    group.meta["k"] = 1
    dense, sparse = group.create("dense", DENSE), group.create("sparse", SPARSE)
    dense[...] = np.arange(100).reshape(10, 10)
    sparse.write_cells({"x": [1, 2], "y": [3, 3]}, {"v": [5, 6]})
    for array in (dense, sparse):
        array.meta.update(k=1, other=2)
        for named in (array["v"], array.dim("y")):
            named.meta.update(k=1, other=2)
        array.delete(box={"x": (8, 9)})
    then = group.refresh()
    gs.tag(uri, "then", then, context=QUICK)
    dense[0, 0] = 7
    sparse.write_cells({"x": [2], "y": [7]}, {"v": [8]})
    return then


def through_r(uri: Path) -> gs.Group:
    """As `gridstone.open` does it without a mode."""
    found = gs.open(uri, path="/g", context=QUICK)
    assert isinstance(found, gs.Group)
    return found


def through_r_plus(uri: Path) -> gs.Group:
    return gs.group(uri, path="/g", mode="r+", context=QUICK)


def at_old_version(uri: Path) -> gs.Group:
    found = gs.open(uri, path="/g", version="then", context=QUICK)
    assert isinstance(found, gs.Group)
    return found


class _Apart(World):
    """Handles that were made in some other way than through their group."""

    def __init__(self, uri: Path, group: gs.Group, array: Callable[[str], Any]) -> None:
        self.uri, self.group, self.dense, self.sparse = uri, group, array("dense"), array("sparse")


def _open(uri: Path, name: str, **options: Any) -> Any:
    return gs.open(uri, path=f"/g/{name}", context=QUICK, **options)


READERS: dict[str, Callable[[Path], World]] = {
    "gs.open": lambda uri: World(uri, through_r),
    "gs.group": lambda uri: World(uri, lambda uri: gs.group(uri, path="/g", context=QUICK)),
    "from the root": lambda uri: World(uri, lambda uri: gs.group(uri, context=QUICK)["g"]),  # type: ignore[arg-type]
    "array alone": lambda uri: _Apart(uri, through_r(uri), lambda name: _open(uri, name)),
    "refreshed": lambda uri: World(uri, lambda uri: at_old_version(uri).refreshed()),
    "by get": lambda uri: _Apart(uri, through_r(uri), through_r(uri).get),
    "of a pass": lambda uri: _Apart(
        uri, dict(gs.group(uri, context=QUICK).items())["g"], dict(through_r(uri).items()).get
    ),
    "pickled": lambda uri: _Apart(
        uri, pickle.loads(pickle.dumps(through_r(uri))), lambda name: pickle.loads(pickle.dumps(_open(uri, name)))
    ),
    "copied": lambda uri: _Apart(uri, copy.copy(through_r(uri)), lambda name: copy.copy(_open(uri, name))),
}
"""Ways to handles of mode "r"."""

PAST: dict[str, Callable[[Path], World]] = {
    "gs.open": lambda uri: World(uri, at_old_version),
    "from the root": lambda uri: World(uri, lambda uri: gs.open(uri, version="then", context=QUICK)["g"]),
    "array alone": lambda uri: _Apart(uri, at_old_version(uri), lambda name: _open(uri, name, version="then")),
    "at, from r": lambda uri: _Apart(uri, at_old_version(uri), lambda name: _open(uri, name).at(version="then")),
    "at, from r+": lambda uri: _Apart(
        uri, at_old_version(uri), lambda name: _open(uri, name, mode="r+").at(version="then")
    ),
    "pickled": lambda uri: _Apart(
        uri,
        pickle.loads(pickle.dumps(at_old_version(uri))),
        lambda name: pickle.loads(pickle.dumps(_open(uri, name, version="then"))),
    ),
}
"""Ways to handles of an old version."""


def _assign(target: Any, key: Any, value: Any) -> None:
    target[key] = value


def _delete(target: Any, key: Any) -> None:
    del target[key]


def _evolved(w: World) -> None:
    with w.sparse.writer(order="any", evolve=True) as writer:
        writer.append({"x": [4], "y": [3], "v": [1], "m": [1]})


def _framed(w: World) -> None:
    with w.dense.writer(axis=0) as writer:
        writer.append(np.ones(10, np.int64))


def _streamed(w: World) -> None:
    with w.sparse.writer(order="any") as writer:
        writer.append(*CELLS)


def _with(handle: Any) -> None:
    with handle:
        pass


def _result(w: World) -> Any:
    return w.dense.read(attrs="v")


def _cells(w: World) -> Any:
    return w.sparse.read()


def _filling(w: World) -> Any:
    return w.dense.read_into({"v": np.empty(30, np.int64)})


def _words(text: str) -> list[str]:
    return text.split()


def _attributes(of: Callable[[World], Any], *names: str) -> dict[str, Callable[[World], Any]]:
    """Members that only have to be looked at."""
    return {name: (lambda w, name=name: getattr(of(w), name)) for name in names}


def _calls(of: Callable[[World], Any], *names: str) -> dict[str, Callable[[World], Any]]:
    """Methods that take nothing."""
    return {name: (lambda w, name=name: getattr(of(w), name)()) for name in names}


Uses = dict[str, Callable[[World], Any]]

_ARRAY_READS: Uses = {
    **_attributes(
        lambda w: w.dense,
        *_words(
            "chunks context dims domain dtype fragments key_id loc meta mode native nbytes ndim nonempty_domain oindex"
        ),
        *_words("path schema schema_names shape size sources sparse stats tags tile timestamp uri version vindex"),
    ),
    **_calls(lambda w: w.dense, *_words("close history __bool__ __len__ __repr__ _repr_html_ __array__ verify")),
    "__contains__": lambda w: "v" in w.dense.schema_names,
    "__enter__": lambda w: _with(w.dense),
    "__exit__": lambda w: _with(w.sparse),
    "__getitem__": lambda w: (w.dense[1], w.sparse[1], w.dense["v"], w.sparse[[1, 2]]),
    "__iter__": lambda w: list(w.dense),
    "__reduce__": lambda w: pickle.dumps(w.dense),
    "at": lambda w: w.dense.at(version="then")[...],
    "dim": lambda w: w.dense.dim("x"),
    "sel": lambda w: (w.dense.sel(x=3), w.sparse.sel(x=[1, 2])),
    "to_xarray": lambda w: hasattr(w.dense, "to_xarray"),
    "points": lambda w: w.dense.points({"x": [1], "y": [2]}),
    **_calls(lambda w: w.dense, *_words("sum mean min max any all var std")),
    "nullable": lambda w: w.dense.nullable,
    "reduce": lambda w: w.dense.reduce({"s": "sum(v)"}, axis="x"),
    "aggregate": lambda w: (w.sparse.aggregate({"n": "count(*)"}, by="v"), w.dense.aggregate({"s": "sum(v)"})),
    "explain": lambda w: (w.sparse.explain("read", analyze=True), w.dense.explain("sum", "x")),
    "partial": lambda w: w.sparse.partial({"n": "count(*)"}),
    "__copy__": lambda w: copy.copy(w.dense),
    "__deepcopy__": lambda w: copy.deepcopy(w.dense),
    "to_numpy": lambda w: w.dense.to_numpy(),
    "read": lambda w: w.dense.read(where="v > 5"),
    "read, a few": lambda w: w.sparse.read(limit=1),
    "head": lambda w: (w.dense.head(3), w.sparse.head()),
    "count": lambda w: (w.dense.count(where="v > 5"), w.sparse.count()),
    "__arrow_c_stream__": lambda w: w.sparse.__arrow_c_stream__(),
    "__dask_tokenize__": lambda w: w.dense.__dask_tokenize__(),
    "delete, a dry run": lambda w: w.sparse.delete(where="v > 0", dry_run=True),
    "update, a dry run": lambda w: w.dense.update({"v": "v + 1"}, dry_run=True),
    "read_into": lambda w: _filling(w).submit(),
    "scan": lambda w: list(w.sparse.scan()),
    "plot": lambda w: hasattr(w.dense, "plot"),
    "tiles": lambda w: w.sparse.tiles(),
    "filter": lambda w: w.sparse.filter("v > 5", to=f"mem://{uuid.uuid4()}"),
    "to_pyarrow_dataset": lambda w: w.dense.to_pyarrow_dataset().to_table(),
    "to_lazy": lambda w: w.sparse.to_lazy().collect(),
    "vacuum, a dry run": lambda w: w.dense.vacuum(versions=1, dry_run=True),
    "consolidate, a dry run": lambda w: w.dense.consolidate(dry_run=True),
}


def _look_again(w: World) -> None:
    """Looking at files again needs an array that was attached, as attaching more does."""
    try:
        w.dense.refresh_sources()
    except gs.errors.InputError as error:
        if "was not attached" not in str(error):
            raise


def _attach(w: World) -> None:
    """Attaching needs an array that was attached: one that may write is refused for that, and no other reason."""
    try:
        w.dense.attach(__file__)
    except (gs.errors.AccessError, gs.errors.InputError) as error:
        if "was not attached" not in str(error) and "may not read" not in str(error):
            raise


_ARRAY_WRITES: Uses = {
    "__setitem__": lambda w: _assign(w.dense, (1, 2), 3),
    "__setitem__, of nothing": lambda w: _assign(w.dense, slice(0, 0), 3),
    "__setitem__, of a list": lambda w: _assign(w.dense, [1, 5], 3),
    "append": lambda w: w.dense.append(np.ones((1, 10), np.int64)),
    "attach, of nothing": _attach,
    "refresh_sources, of nothing": _look_again,
    "append, of a table": lambda w: w.sparse.append({"x": [40], "y": [3], "v": [1]}),
    "alter": lambda w: w.dense.alter(add=[gs.Attr("w", "int8")]),
    "alter, of labels": lambda w: w.dense.alter(labels={"x": list(range(10, 20)), "y": list("abcdefghij")}),
    "consolidate": lambda w: w.dense.consolidate("all"),
    "delete": lambda w: w.dense.delete(box={"x": (0, 1)}),
    "delete, where": lambda w: w.sparse.delete(where="v > 0"),
    "delete, at points": lambda w: w.sparse.delete(coords={"x": [1], "y": [3]}),
    "delete, uncommitted": lambda w: w.dense.delete(box={"x": (0, 1)}, commit=False),
    "delete, counted": lambda w: w.sparse.delete(where="v > 0", count=True),
    "resize": lambda w: w.dense.resize(x=(0, 20)),
    "update": lambda w: w.dense.update({"v": "v + 1"}, where="v > 5"),
    "update, of nothing": lambda w: w.sparse.update({"v": 3}, where="v > 1000"),
    "vacuum": lambda w: w.dense.vacuum(versions=1, safety_age=0),
    "write": lambda w: w.dense.write(np.ones((10, 10), np.int64)),
    "write, with a receipt": lambda w: w.dense.write(np.ones((10, 10), np.int64), commit=False),
    "write_cells": lambda w: w.sparse.write_cells(*CELLS),
    "write_cells, into a dense one": lambda w: w.dense.write_cells(*CELLS),
    "write_cells, that grows": lambda w: w.sparse.write_cells({"x": [40], "y": [3]}, {"v": [1]}, grow=True),
    "write_cells, that evolves": lambda w: w.sparse.write_cells({"x": [4], "y": [3], "v": [1], "n": [1]}, evolve=True),
    "write_cells, of nothing": lambda w: w.sparse.write_cells({"x": [], "y": []}, {"v": np.empty(0, np.int64)}),
    "writer": _streamed,
    "writer, of frames": _framed,
    "writer, that evolves": _evolved,
}

_GROUP_READS: Uses = {
    **_attributes(lambda w: w.group, *_words("key_id meta mode native path stats tags uri version")),
    **_calls(lambda w: w.group, *_words("children close history items keys refreshed values verify walk")),
    **_calls(lambda w: w.group, *_words("__bool__ __len__ __repr__ _repr_html_")),
    "__contains__": lambda w: "dense" in w.group,
    "__enter__": lambda w: _with(w.group),
    "__exit__": lambda w: _with(w.group),
    "__getitem__": lambda w: w.group["dense"],
    "__iter__": lambda w: list(w.group),
    "__reduce__": lambda w: pickle.dumps(w.group),
    "get": lambda w: w.group.get("nothing"),
    "vacuum, a dry run": lambda w: w.group.vacuum(versions=1, dry_run=True),
}
_GROUP_WRITES: Uses = {
    "__delitem__": lambda w: _delete(w.group, "dense"),
    "create": lambda w: w.group.create("new", DENSE),
    "create, over another": lambda w: w.group.create("dense", DENSE, overwrite=True),
    "group": lambda w: w.group.group("sub"),
    "move": lambda w: w.group.move("dense", "moved"),
    "remove": lambda w: w.group.remove("sparse"),
    "vacuum": lambda w: w.group.vacuum(versions=1, safety_age=0),
}


_META_READS: Uses = {
    "__contains__": lambda w: "k" in w.dense.meta,
    "__getitem__": lambda w: w.dense.meta["k"],
    "__iter__": lambda w: list(w.group.meta),
    **_calls(lambda w: w.group.meta, *_words("__len__ __repr__ items keys values")),
    "get": lambda w: w.sparse.meta.get("k"),
    "setdefault, of a key that is there": lambda w: w.dense.meta.setdefault("k", 2),
    "pop, of a key that is not there": lambda w: w.dense.meta.pop("nothing", None),
    "text_of": lambda w: w.dense.meta.text_of("k"),
}
_META_CHANGES: dict[str, Callable[[Any], Any]] = {
    "__delitem__": lambda meta: _delete(meta, "k"),
    "__setitem__": lambda meta: _assign(meta, "new", 1),
    "clear": lambda meta: meta.clear(),
    "pop": lambda meta: meta.pop("k"),
    "popitem": lambda meta: meta.popitem(),
    "setdefault": lambda meta: meta.setdefault("new", 1),
    "update": lambda meta: meta.update(k=2),
    "update, of nothing": lambda meta: meta.update({}),
}
_META_WRITES: Uses = {
    **{name: (lambda w, act=act: act(w.dense.meta)) for name, act in _META_CHANGES.items()},
    **{f"{name}, of a group": (lambda w, act=act: act(w.group.meta)) for name, act in _META_CHANGES.items()},
    **{f"{name}, of an attribute": (lambda w, act=act: act(w.dense["v"].meta)) for name, act in _META_CHANGES.items()},
    **{
        f"{name}, of a dimension": (lambda w, act=act: act(w.sparse.dim("y").meta))
        for name, act in _META_CHANGES.items()
    },
}

_DIM_READS: Uses = {
    **_attributes(lambda w: w.dense.dim("x"), *_words("array axis domain dtype labels meta name size tile")),
    **_calls(lambda w: w.dense.dim("x"), "__len__", "__repr__"),
}

_VIEW_READS: Uses = {
    **_attributes(
        lambda w: w.dense["v"],
        *_words("array chunks dtype fill loc name nbytes ndim nullable oindex shape size sparse vindex"),
    ),
    **_calls(lambda w: w.dense["v"], "__arrow_c_stream__", "__array__", "__len__", "__repr__", "to_numpy"),
    "__dask_tokenize__": lambda w: w.dense["v"].__dask_tokenize__(),
    **_calls(lambda w: w.dense["v"], *_words("sum mean min max any all var std")),
    "__copy__": lambda w: copy.copy(w.dense["v"]),
    "__iter__": lambda w: list(w.dense["v"]),
    "__contains__": lambda w: w.dense["v"].name in "v",
    "meta": lambda w: dict(w.dense["v"].meta),
    "plot": lambda w: hasattr(w.dense["v"], "plot"),
    "sel": lambda w: w.dense["v"].sel(x=3),
    "__getitem__": lambda w: (w.dense["v"][1], w.sparse["v"][1]),
    "points": lambda w: w.dense["v"].points({"x": [1], "y": [2]}),
}

TABLE: dict[type, tuple[Uses, Uses]] = {
    gs.Array: (_ARRAY_READS, _ARRAY_WRITES),
    AttrView: (_VIEW_READS, {"__setitem__": lambda w: _assign(w.dense["v"], (1, 2), 3)}),
    DimView: (_DIM_READS, {"meta, updated": lambda w: w.dense.dim("x").meta.update(k=2)}),
    Loc: (
        {"__getitem__": lambda w: w.dense.loc[1:2], "__repr__": lambda w: repr(w.dense.loc)},
        {
            "__setitem__": lambda w: _assign(w.dense.loc, (slice(1, 2), 2), 3),
            "__setitem__, of an attribute": lambda w: _assign(w.dense["v"].loc, (slice(1, 2), 2), 3),
        },
    ),
    VIndex: (
        {"__getitem__": lambda w: w.dense.vindex[[1], [2]], "__repr__": lambda w: repr(w.dense.vindex)},
        {
            "__setitem__": lambda w: _assign(w.dense.vindex, ([1], [2]), 3),
            "__setitem__, of nothing": lambda w: _assign(w.dense["v"].vindex, ([], []), 3),
        },
    ),
    OIndex: (
        {"__getitem__": lambda w: w.dense.oindex[[1], [2]], "__repr__": lambda w: repr(w.dense.oindex)},
        {
            "__setitem__": lambda w: _assign(w.dense.oindex, ([1, 5], [2]), 3),
            "__setitem__, of slices": lambda w: _assign(w.dense["v"].oindex, (slice(3), slice(2)), 3),
        },
    ),
    gs.Group: (_GROUP_READS, _GROUP_WRITES),
    groups._Values: ({"__iter__": lambda w: list(w.group.values())}, {}),
    groups._Items: (
        {"__iter__": lambda w: list(w.group.items()), "isdisjoint": lambda w: w.group.items().isdisjoint([])},
        {},
    ),
    metadata.Metadata: (_META_READS, _META_WRITES),
    metadata._Values: ({"__iter__": lambda w: list(w.dense.meta.values())}, {}),
    metadata._Items: (
        {"__iter__": lambda w: list(w.dense.meta.items()), "isdisjoint": lambda w: w.dense.meta.items().isdisjoint([])},
        {},
    ),
    gs.Result: (
        {
            **_attributes(_result, "damage", "labels", "nbytes", "schema", "shape", "stats"),
            **_calls(_result, *_words("__array__ __arrow_c_stream__ __dlpack__ __dlpack_device__ __len__ __repr__")),
            **_calls(_result, *_words("_repr_html_ in_place keys to_arrow to_dense to_numpy to_pandas to_polars")),
            "__contains__": lambda w: "v" in _result(w),
            "__getitem__": lambda w: _result(w)["v"],
            "__iter__": lambda w: list(_result(w)),
            "to_scipy": lambda w: _cells(w).to_scipy(),
            "to_sparse": lambda w: hasattr(_cells(w), "to_sparse"),
            "plot": lambda w: hasattr(_result(w), "plot"),
            "to_xarray": lambda w: hasattr(_result(w), "to_xarray"),
        },
        {},
    ),
    gs.Stream: (
        {
            **_attributes(lambda w: w.sparse.scan(), "damage", "schema", "stats"),
            **_calls(lambda w: w.sparse.scan(), *_words("__arrow_c_stream__ __iter__ __next__ __repr__ close")),
            **_calls(lambda w: w.sparse.scan(), *_words("to_arrow to_dense to_numpy to_pandas to_polars to_scipy")),
            "to_sparse": lambda w: hasattr(w.sparse.scan(), "to_sparse"),
        },
        {},
    ),
    Filling: (
        {
            **_attributes(_filling, "complete", "stats"),
            **_calls(_filling, "__iter__", "__next__", "__repr__", "submit"),
        },
        {},
    ),
}
"""What may be done with a handle of each class: reads, and writes. A case may say more after the member's name."""

WRITERS: dict[type, set[str]] = {
    Writer: set(_words("__enter__ __exit__ abort append append_columns box close outcome receipt")),
    LateWriter: set(_words("__enter__ __exit__ abort append append_columns box close outcome receipt")),
    Appender: set(_words("__enter__ __exit__ abort append close flush")),
    BackgroundConsolidation: set(_words("__repr__ cancel done result wait")),
    gs.Transaction: set(
        _words(
            "__contains__ __enter__ __exit__ __getitem__ __reduce__ __repr__ abort add base_version commit create "
            "group isolation ls meta move remove uri version"
        )
    ),
    gs.Receipt: set(
        _words(
            "__eq__ __hash__ __reduce__ __repr__ array bytes cells fragments from_json id path store to_json version "
            "writer"
        )
    ),
}
"""Classes of which only something that may write gives objects."""

NO_HANDLES = set(
    _words(
        "Updatable Assignment Rewritten Changeable Change "
        "Erasable Evolvable Filterable Labelled Readable Tabled Writable Appendable Noting Looking "  # parts of handles
        "Attached Attaching Read Mergeable Checked Retained Tabular Askable Reducible ReducibleArray Explainable "
        "Picks Plan Part _Part _Block Along Target Entry Skipped Written DamageWarning NatWarning NoCommit "  # values
        "Box Recorded Drawable Drawn "
        "Found Question _Asked Planned ArrayScan LoadKey Keyed Version Extension ArraySource FixedSource Source "
        "_Batches _Groups Dimensioned Given Merge Consolidation AffectedCells Damage Report Repair Tally Holder Vacuum "
        "Usage ArrayUsage _Node"
    )
)
"""Classes of the same packages that are something else."""

REFRESH = "refresh"
"""No write, and refused at an old version: it has tests of its own."""
