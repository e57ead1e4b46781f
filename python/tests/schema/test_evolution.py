"""Changing the schema of an array: every form of the arguments, every refusal, and random histories beside a model."""

import copy
import pickle
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone import cli, errors

FIELD = gs.Schema(
    [gs.Dim("y", (0, 9), tile=4), gs.Dim("x", (0, 9), tile=5)], [gs.Attr("v", "int64", fill=-1), gs.Attr("w", "int64")]
)
LINE = gs.Schema([gs.Dim("x", (0, 999), tile=100)], [gs.Attr("v", "int64")], sparse=True)


def filled(uri: str) -> gs.Array:
    a = gs.create(uri, FIELD)
    a.write({"v": np.arange(100).reshape(10, 10), "w": np.zeros((10, 10), np.int64)})
    return a


def test_resize_takes_names_dicts_and_shapes(store_uri):
    a = filled(store_uri)
    assert a.resize(y=(0, 19)) == 3
    assert a.resize({"x": (-5, 14)}, message="wider") == 4
    assert a.resize((None, 30)) == 5
    assert a.resize(x=(None, 24)) == 5, "nothing became larger"
    assert (a.shape, a.domain) == ((20, 30), ((0, 19), (-5, 24)))
    assert a.history()[-2].message == "wider"
    v = a["v"][...]
    assert (v[:10, 5:15] == np.arange(100).reshape(10, 10)).all() and (v == -1).sum() == 500
    assert a.loc[3:4, 3:4]["v"] == 33
    a[19, 29] = {"v": 5, "w": 6}
    assert gs.open(store_uri)["v"][19, 29] == 5
    assert gs.open(store_uri, version=2).shape == (10, 10)


def test_the_names_of_the_dimensions_follow_a_renaming_at_once(store_uri):
    a = filled(store_uri)
    a.resize(x=(0, 19))
    reader, old = gs.open(store_uri), a.at(version=a.version)
    a.alter(rename={"x": "y", "y": "x"})
    assert a.dims == ("x", "y")
    assert dict(zip(a.dims, a.shape, strict=True)) == {"x": 10, "y": 20}
    assert reader.dims == old.dims == ("y", "x"), "other handles, and the past, keep the names that they show"
    reader.refresh()
    assert reader.dims == ("x", "y")
    with gs.transaction(store_uri) as tx:
        staged = tx["/"]
        staged.alter(rename={"x": "row"})
        assert (staged.dims, a.dims) == (("row", "y"), ("x", "y"))
    a.refresh()
    assert a.dims == ("row", "y")
    a.close()
    assert a.dims == ("row", "y")


def test_a_picture_after_a_renaming_is_of_the_dimensions_named(store_uri, tmp_path):
    pytest.importorskip("matplotlib")
    a = filled(store_uri)
    a.resize(x=(0, 39))
    a.alter(rename={"x": "y", "y": "x"})
    gs.plot.plot(a, tmp_path / "after.png", dims=("y", "x"), title="t")
    b = gs.open(store_uri)
    b.schema  # noqa: B018
    gs.plot.plot(b, tmp_path / "fresh.png", dims=("y", "x"), title="t")
    assert (tmp_path / "after.png").read_bytes() == (tmp_path / "fresh.png").read_bytes()


def test_resize_of_times_floats_and_one_dimension(store_uri, stores: Stores):
    dims = [
        gs.Dim("t", ("2024-01-01", "2024-01-31"), dtype="datetime64[D]"),
        gs.Dim("z", (0.0, 1.0), tile=0.25, dtype="float64"),
    ]
    a = gs.create(store_uri, gs.Schema(dims, [gs.Attr("v", "int8")], sparse=True))
    a.write_cells({"t": np.array(["2024-01-05"], "M8[D]"), "z": [0.5]}, {"v": [1]})
    a.resize(t=("2023-06-01", None), z=(0.0, 2.5))
    assert a.domain == ((np.datetime64("2023-06-01"), np.datetime64("2024-01-31")), (0.0, 2.5))
    a.write_cells({"t": np.array(["2023-06-01"], "M8[D]"), "z": [2.5]}, {"v": [2]})
    assert a.read(order="global").to_numpy()["v"].tolist() == [1, 2]
    a.resize(z=(-1.1, 2.5))
    a.write_cells({"t": np.array(["2023-06-02"], "M8[D]"), "z": [-1.05]}, {"v": [0]})
    assert a.read(order="global").to_numpy()["v"].tolist() == [0, 1, 2]
    with pytest.raises(errors.UnsupportedError, match="number of positions"):
        a.resize((400, 3))
    b = gs.array(stores(), np.arange(6))
    b.resize(10)
    assert b[...].tolist() == [0, 1, 2, 3, 4, 5, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "named", "error", "match"),
    [
        ((), {}, errors.InputError, "becomes larger"),
        (((20, 20),), {"x": (0, 9)}, errors.InputError, "not both"),
        (({"x": (0, 9)},), {"x": (0, 9)}, errors.InputError, "twice"),
        ((5,), {}, errors.InputError, "2 dimensions"),
        ((("a", 5),), {}, errors.InputError, "number of positions"),
        (((0, 5),), {}, errors.InputError, "number of positions"),
        (((9, 10),), {}, errors.SchemaError, "only grows"),
        ((), {"z": (0, 9)}, errors.SchemaError, "'y', 'x'"),
        ((), {"x": 9}, errors.InputError, "pair"),
        ((), {"x": (0, "a")}, errors.SchemaError, "int64"),
        ((), {"x": (1, 20)}, errors.SchemaError, "only grows"),
    ],
)
def test_resize_refuses_with_a_reason(store_uri, arguments, named, error, match):
    a = gs.create(store_uri, FIELD)
    with pytest.raises(error, match=match):
        a.resize(*arguments, **named)
    assert (a.version, a.schema) == (1, FIELD)


def test_alter_adds_drops_renames_and_changes(store_uri):
    a = filled(store_uri)
    q, note = gs.Attr("q", "float32", nullable=True), gs.Attr("note", "string", fill="none")
    a.alter(add=[q, note], drop="w", rename={"v": "height"}, filters={"v": ["delta", "zstd:3"]}, message="new")
    assert a.schema_names == ["height", "q", "note"]
    assert a.schema.attr("height").filters == "delta,zstd:3"
    assert a["q"][0, 0] is np.ma.masked and a["note"][0, 0] == "none" and a["height"][3, 3] == 33
    a.alter(fill={"height": 7, "note": None}, nullable=["note"], add=gs.Attr("w", "int8", fill=3))
    assert a["note"][0, 0] is np.ma.masked and (a["w"][...] == 3).all()
    a.delete({"y": (3, 3), "x": (3, 3)})
    assert a["height"][3, 3] == 7
    old = a.at(version=2)
    assert (old.schema, old["w"][0, 0]) == (FIELD, 0)
    assert [op["op"] for op in a.history()[2].operations] == ["alter_array"]
    assert pickle.loads(pickle.dumps(a)).schema == a.schema
    a.consolidate("all")
    assert gs.open(store_uri)["height"][4, 4] == 44 and not a.verify()["damage"]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"drop": ["v", "w"]}, "last attribute"),
        ({"drop": "z"}, "v, w"),
        ({"drop": "v", "nullable": "v"}, "at once"),
        ({"add": gs.Attr("v", "float64")}, "type cannot change"),
        ({"add": gs.Attr("x", "float64")}, "twice"),
        ({"add": "q"}, "gridstone.Attr"),
        ({"rename": {"v": "w"}}, "twice"),
        ({"rename": {"v": 3}}, "is text"),
        ({"fill": {"v": "much"}}, "int64"),
        ({"fill": {"z": 1}}, "'v', 'w'"),
        ({"filters": {"v": "zip"}}, "zip"),
        ({"nullable": [3]}, "is text"),
    ],
)
def test_alter_refuses_with_a_reason(store_uri, changes, match):
    a = gs.create(store_uri, FIELD)
    with pytest.raises(errors.SchemaError, match=match):
        a.alter(**changes)
    assert (a.version, a.schema) == (1, FIELD)


def test_a_sparse_array_keeps_the_fill_of_what_was_added(store_uri):
    a = gs.create(store_uri, LINE)
    a.write_cells({"x": [1, 2]}, {"v": [10, 20]})
    a.alter(add=gs.Attr("q", "int8", fill=5), fill={"v": 3}, nullable="v")
    for changes in ({"fill": {"q": 6}}, {"nullable": "q"}):
        with pytest.raises(errors.SchemaError, match="merging fragments"):
            a.alter(**changes)
    a.write_cells({"x": [2, 3]}, {"v": np.ma.MaskedArray([1, 30], mask=[True, False]), "q": [7, 8]})
    for _ in range(2):
        found = a.read().to_numpy()
        assert (found["q"].tolist(), found["v"].tolist()) == ([5, 7, 8], [10, None, 30])
        a.consolidate("all")


def test_reading_needs_a_handle_for_writing(store_uri):
    filled(store_uri)
    reader = gs.open(store_uri)
    for change in (lambda: reader.resize(y=(0, 99)), lambda: reader.alter(drop="w")):
        with pytest.raises(errors.AccessError, match=r"mode=[\"']r\+[\"']"):
            change()


def test_handles_follow_when_they_are_told_or_commit(store_uri):
    a = filled(store_uri)
    late, reader = gs.open(store_uri, mode="r+"), gs.open(store_uri)
    a.alter(rename={"v": "u"}, add=gs.Attr("q", "int8", nullable=True))
    a.resize(y=(0, 99))
    assert reader.schema == late.schema == FIELD and reader["v"][0, 1] == 1
    assert reader.refresh() == 4 and reader.schema_names == ["u", "w", "q"]
    with pytest.raises(errors.ConflictError, match="look at the new schema"):
        late.alter(drop="w")
    late[0, 0] = {"v": 5, "w": 6}
    assert late.schema == a.schema, "its own commit has moved it"
    assert (late["u"][0, 0], late.shape) == (5, (100, 10))
    late.alter(drop="w")
    receipts = [a.write_cells({"y": [99], "x": [9]}, {"u": [1], "w": [2]}, commit=False)]
    gs.commit(store_uri, receipts)
    assert a.refresh() == 7 and a["u"][99, 9] == 1 and a.schema_names == ["u", "q"]


def test_transactions_change_schemas(store_uri):
    a = filled(store_uri)
    with pytest.raises(RuntimeError), gs.transaction(store_uri) as tx:
        tx["/"].alter(drop="w")
        raise RuntimeError
    assert gs.open(store_uri).schema == FIELD
    with gs.transaction(store_uri, message="both at once") as tx:
        inside = tx["/"]
        inside.resize(y=(0, 19))
        inside.alter(add=gs.Attr("q", "int8"), drop="w")
        inside[19, 9] = {"v": 7, "q": 8}
        assert inside["q"][18:, 8:].tolist() == [[0, 0], [0, 8]]
    a.refresh()
    assert (a.shape, a["v"][19, 9], a["q"][19, 9]) == ((20, 10), 7, 8)
    assert a.history()[-1].message == "both at once"
    seen = gs.transaction(store_uri, isolation="serializable")
    assert seen["/"].shape == (20, 10)
    seen["/"].meta["k"] = 1
    a.resize(y=(0, 29))
    seen.commit()
    # Cells beyond the end that was looked at are another matter, and so is a change of the attributes.
    for change in (lambda: a.write_cells({"y": [31], "x": [0]}, {"v": [1], "q": [1]}), lambda: a.alter(drop="q")):
        seen = gs.transaction(store_uri, isolation="serializable")
        height = seen["/"].shape[0]
        seen["/"].meta["k"] = height
        a.resize(y=(0, height + 9))
        change()
        with pytest.raises(errors.ConflictError, match=r"wrote to|changed the schema"):
            seen.commit()


def test_the_command_line_changes_schemas(stores, capsys):
    uri = stores("a")
    filled(uri)
    assert cli.run(["resize", uri, "y=0:19", "x=:14", "-m", "wider"]) == 0
    assert "y: 0..19, x: 0..14" in capsys.readouterr().out
    options = ["--add", "q:int8:nullable", "--drop", "w", "--rename", "v=u", "--fill", "v=9", "--filters", "v=zstd:3"]
    assert cli.run(["alter", uri, *options, "--json"]) == 0
    assert '"q"' in capsys.readouterr().out
    a = gs.open(uri)
    assert (a.schema_names, a["u"][19, 14], a.schema.attr("u").filters) == (["u", "q"], 9, "zstd:3")
    assert cli.run(["alter", uri]) == 2
    assert cli.run(["alter", uri, "--rename", "v"]) == 2
    assert cli.run(["alter", uri, "--drop", "z"]) == 2
    assert cli.run(["resize", uri]) == 2
    assert cli.run(["resize", uri, "y=0:5"]) == 2
    assert "only grows" in capsys.readouterr().err


class Naive:
    """What an array should hold, by names that are never used twice; values of an attribute are of one type."""

    def __init__(self, sparse: bool, low: int, high: int) -> None:
        self.sparse, self.low, self.high = sparse, low, high
        self.attrs: dict[str, dict[str, Any]] = {}
        self.cells: dict[int, dict[str, Any]] = {}

    def read(self) -> list[tuple[Any, ...]]:
        places = sorted(self.cells) if self.sparse else range(self.low, self.high + 1)
        blank = {name: None if attr["nullable"] else attr["fill"] for name, attr in self.attrs.items()}
        cells = [(place, {**blank, **self.cells.get(place, {})}) for place in places]
        return [(place, *(cell[name] for name in self.attrs)) for place, cell in cells]

    def put(self, places: list[int], names: list[str], values: list[list[Any]]) -> None:
        for i, place in enumerate(places):
            old = {} if self.sparse else self.cells.get(place, {})
            self.cells[place] = {**old, **{name: column[i] for name, column in zip(names, values, strict=True)}}

    def rename(self, old: str, new: str) -> None:
        self.attrs = {new if name == old else name: attr for name, attr in self.attrs.items()}
        self.cells = {p: {new if n == old else n: v for n, v in row.items()} for p, row in self.cells.items()}


class History:
    """An array and its model, driven at random."""

    def __init__(self, uri: str, r: Random, sparse: bool, tile: int | None) -> None:
        self.r, self.tile, self.count = r, tile, 0
        self.uri = uri
        self.naive = Naive(sparse, 0, 19)
        attr = self.new_attr()
        dims = [gs.Dim("x", (0, 19), tile=tile)]
        order = r.choice(["row", "col"])
        self.a = gs.create(self.uri, gs.Schema(dims, [attr], sparse=sparse, capacity=4, cell_order=order))
        self.first = {attr.name}
        self.seen = {1: copy.deepcopy(self.naive)}

    def new_attr(self) -> gs.Attr:
        self.count += 1
        kind, nullable = self.r.choice(["int64", "string", "float32"]), self.r.random() < 0.5
        fill = {"int64": 7, "string": "é", "float32": 0.5}[kind]
        name = f"a{self.count}"
        self.naive.attrs[name] = {"kind": kind, "nullable": nullable, "fill": fill}
        return gs.Attr(name, kind, nullable=nullable, fill=fill)

    def values(self, attr: dict[str, Any], count: int) -> list[Any]:
        def one() -> Any:
            if attr["nullable"] and self.r.random() < 0.3:
                return None
            number = self.r.randrange(-9, 9)
            return {"int64": number, "string": "z" * abs(number), "float32": number / 2}[attr["kind"]]

        return [one() for _ in range(count)]

    def write(self, a: gs.Array, known: Naive) -> None:
        """Through a handle that knows the schema of `known`, at places of its domain."""
        places = self.r.sample(range(known.low, known.high + 1), self.r.randint(1, 8))
        names = list(known.attrs)
        names = names if known.sparse else self.r.sample(names, self.r.randint(1, len(names)))
        columns = [self.values(known.attrs[name], len(places)) for name in names]
        a.write_cells({"x": places}, {n: _column(known.attrs[n], c) for n, c in zip(names, columns, strict=True)})
        self.naive.put(places, names, columns)

    def alter(self) -> None:
        naive, changes = self.naive, {}
        kind = self.r.choice(["add", "add", "drop", "rename", "change"])
        name = self.r.choice(list(naive.attrs))
        if kind == "add":
            changes["add"] = self.new_attr()
        elif kind == "drop" and len(naive.attrs) > 1:
            changes["drop"] = name
            del naive.attrs[name]
            for row in naive.cells.values():
                row.pop(name, None)
        elif kind == "rename":
            self.count += 1
            changes["rename"] = {name: f"a{self.count}"}
            naive.rename(name, f"a{self.count}")
            self.first |= {f"a{self.count}"} if name in self.first else set()
        elif kind == "change" and (not naive.sparse or name in self.first):
            naive.attrs[name]["nullable"] = True
            changes["nullable"] = name
        if changes:
            self.a.alter(**changes)

    def resize(self) -> None:
        low = self.naive.low - self.r.choice([0, 1, 2, self.tile or 3])
        high = self.naive.high + self.r.randint(0, 9)
        self.naive.low = low
        if self.r.random() < 0.5:
            self.a.resize({"x": (low, None)})
            self.note()
            self.naive.high = high
            self.a.resize((high - low + 1,))
        else:
            self.naive.high = high
            self.a.resize(x=(low, high))

    def delete(self) -> None:
        low = self.r.randint(self.naive.low, self.naive.high)
        self.a.delete({"x": (low, min(low + 3, self.naive.high))})
        self.naive.cells = {p: row for p, row in self.naive.cells.items() if not low <= p <= low + 3}

    def delete_nulls(self) -> None:
        name = self.r.choice(list(self.naive.attrs))
        attr = self.naive.attrs[name]
        blank = None if attr["nullable"] else attr["fill"]
        self.a.delete(where=f"{name} is null")
        self.naive.cells = {p: row for p, row in self.naive.cells.items() if row.get(name, blank) is not None}

    def note(self) -> None:
        self.seen[self.a.version] = copy.deepcopy(self.naive)

    def stale_write(self) -> None:
        """A handle opened before the schema changed writes after it."""
        late, known = gs.open(self.uri, mode="r+"), copy.deepcopy(self.naive)
        self.a.alter(add=self.new_attr())
        self.note()
        self.write(late, known)
        self.a.refresh()

    def step(self) -> None:
        do = [
            lambda: self.write(self.a, self.naive),
            lambda: self.write(self.a, self.naive),
            self.alter,
            self.alter,
            self.resize,
            self.delete,
            self.delete_nulls,
            self.stale_write,
            lambda: self.a.consolidate(self.r.choice(["all", "tiered"])),
        ]
        self.r.choice(do)()
        self.note()
        self.check(self.a, self.naive)
        version = self.r.choice(sorted(self.seen))
        self.check(self.a.at(version=version), self.seen[version])

    def check(self, a: gs.Array, naive: Naive) -> None:
        assert (a.schema_names, a.domain) == (list(naive.attrs), ((naive.low, naive.high),))
        found = a.read(order="row").to_numpy()
        rows = naive.read()
        places = found["x"].tolist() if naive.sparse else [row[0] for row in rows]
        columns = [np.ma.MaskedArray(found[name]).tolist() for name in naive.attrs]
        assert list(zip(places, *columns, strict=True)) == rows
        if rows:
            asked = [self.r.choice(rows) for _ in range(3)]
            points = a.points({"x": [row[0] for row in asked]}).to_numpy()
            columns = [np.ma.MaskedArray(points[name]).tolist() for name in naive.attrs]
            assert list(zip(*columns, strict=True)) == [row[1:] for row in asked]


def _column(attr: dict[str, Any], values: list[Any]) -> Any:
    """Values as NumPy arrays, masked where null."""
    blank = {"int64": 0, "string": "", "float32": 0.0}[attr["kind"]]
    kind = object if attr["kind"] == "string" else attr["kind"]
    made = np.array([blank if v is None else v for v in values], kind)
    return np.ma.MaskedArray(made, mask=[v is None for v in values]) if attr["nullable"] else made


@given(r=st.randoms(use_true_random=True), sparse=st.booleans(), tile=st.sampled_from([None, 1, 7, 20]))
def test_random_histories_agree_with_a_model(stores, r, sparse, tile):
    history = History(stores(), r, sparse, tile)
    for _ in range(20):
        history.step()
    assert not history.a.verify()["damage"]
    gs.delete(history.uri)


@pytest.mark.parametrize("ask", [lambda a: a["c"][0:2], lambda a: a[0:2]["c"], lambda a: a.read()["c"][0:2],
                                 lambda a: a.vindex[[0, 1]]["c"], lambda a: a.oindex[[0, 1]]["c"],
                                 lambda a: a[[0, 1]]["c"]])  # fmt: skip
def test_a_read_beside_a_change_is_of_one_schema(
    ask: Callable[[gs.Array], Any], store_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit through the same handle, as another thread may make it, after a read has looked at the schema."""
    attrs = [gs.Attr("c", "string", categories=["a"]), gs.Attr("v", "int64")]
    array = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 3))], attrs))
    array.write({"c": np.array(["a"] * 4), "v": np.arange(4)})
    native, waiting = type(array).native, [1]

    def changing(self: gs.Array) -> Any:
        if waiting:
            waiting.clear()
            array.alter(categories={"c": ["b"]})
            array.write({"c": np.array(["b"] * 4)})
        return native.fget(self)  # type: ignore[attr-defined]

    with monkeypatch.context() as patch:
        patch.setattr(type(array), "native", property(changing))
        found = ask(array)
    assert not waiting and list(found) == ["b", "b"]
