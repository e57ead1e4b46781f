"""Differences of arrays, against pandas and plain Python."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone.compare import cells as comparing
from gridstone.errors import InputError

CELLS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(0, 5),
        st.sampled_from([0.0, -0.0, 1.0, float("nan")]),
        st.sampled_from([None, "", "a"]),
    ),
    max_size=25,
)


def made(uri: str, cells: list[Any], **options: Any) -> gs.Array:
    dims = [gs.Dim("x", (0, 9), options.pop("tile", 4)), gs.Dim("y", (0.0, 9.0), dtype="float64")]
    attrs = [gs.Attr("v", "float32"), gs.Attr("s", "string", nullable=True)]
    a = gs.create(uri, gs.Schema(dims, attrs, sparse=True, duplicates=True, capacity=4, **options))
    for part in (cells[::2], cells[1::2]):
        if part:
            x, y, v, s = zip(*part, strict=True)
            texts = np.ma.MaskedArray(np.array(s, object), [t is None for t in s])
            a.write_cells({"x": np.array(x), "y": np.array(y, np.float64)}, {"v": np.array(v, np.float32), "s": texts})
    return a


def key(cell: Any) -> Any:
    x, y, v, s = cell
    return x, y, "nan" if v != v else v + 0.0, s


def expected(a: list[Any], b: list[Any]) -> tuple[int, int, int, int]:
    """Cells that are the same, that differ, only in a, only in b."""
    ours, theirs = Counter(map(key, a)), Counter(map(key, b))
    same = sum((ours & theirs).values())
    left, right = (Counter(cell[:2] for cell in side.elements()) for side in (ours - theirs, theirs - ours))
    differ = sum((left & right).values())
    return same, differ, sum((left - right).values()), sum((right - left).values())


@given(CELLS, CELLS, st.booleans())
def test_multisets_of_cells(stores: Stores, a: list[Any], b: list[Any], small: bool) -> None:
    one = made(stores("diff-a"), a)
    two = made(stores("diff-b"), b + a[: len(a) // 2], cell_order="hilbert", tile=None)
    try:
        with pytest.MonkeyPatch.context() as patched:
            if small:
                patched.setattr(comparing, "_CELLS", (3, 3))
            found = gs.diff(one, two, examples=100)
        counts = (found.same, found.different, found.only_a, found.only_b)
        assert counts == expected(a, b + a[: len(a) // 2])
        assert len(found.examples) == sum(counts[1:])
        assert {c.what for c in found.schema} >= {"cell_order", "dimension x: tile"}
        back = gs.diff(two, one)
        assert (back.same, back.different, back.only_b, back.only_a) == counts
        assert gs.diff(one, one).equal and not gs.diff(one, one)
    finally:
        gs.delete(stores("diff-a"))
        gs.delete(stores("diff-b"))


def dense(uri: Path | str, values: Any, lo: int = 0, **options: Any) -> gs.Array:
    n = len(values)
    dims = [gs.Dim("x", (lo, lo + n - 1), 3), gs.Dim("y", (0, values.shape[1] - 1), 2)]
    a = gs.create(uri, gs.Schema(dims, [gs.Attr("v", values.dtype, **options)]))
    a.write(values)
    return a


@pytest.mark.parametrize("cells", [(4, 4), (10_000, 4_000_000)])
def test_dense_boxes(stores: Stores, monkeypatch: pytest.MonkeyPatch, cells: tuple[int, int]) -> None:
    monkeypatch.setattr(comparing, "_CELLS", cells)
    random = np.random.default_rng(4)
    values = random.integers(0, 5, (10, 7)).astype(np.float64)
    values[random.random(values.shape) < 0.3] = np.nan
    other = np.where(random.random(values.shape) < 0.2, values + 1, values)
    a, b = dense(stores("a"), values), dense(stores("b"), other[2:], 2)
    found = gs.diff(a, b, examples=1000)
    part = values[2:]
    differs = (part != other[2:]) & ~(np.isnan(part) & np.isnan(other[2:]))
    assert (found.different, found.only_a, found.only_b) == (differs.sum(), 14, 0)
    assert found.same == (~differs).sum() and found.values == {"v": differs.sum()}
    shown = {(e.coords["x"], e.coords["y"]) for e in found.examples if e.kind == "different"}
    assert shown == {(x + 2, y) for x, y in zip(*np.nonzero(differs), strict=True)}
    assert [c.what for c in found.schema] == ["dimension x: domain"]
    inside = gs.diff(a, b, box={"x": (2, 5)})
    assert inside.only_a == 0 and inside.different == differs[:4].sum()
    assert gs.diff(a.at(version=1), a).only_a == 0 and not gs.diff(a.at(version=2), a)
    a[3, 3] = 99
    later = gs.diff(a.at(version=2), a)
    assert later.cells_equal is False and later.different == 1 and not later.schema
    assert later.examples[0].coords == {"x": 3, "y": 3} and later.examples[0].b == {"v": 99.0}
    assert "1 differ" in str(later)


def test_every_type_of_value(tmp_path: Path, stores: Stores) -> None:
    schema = gs.Schema(
        [gs.Dim("t", (np.datetime64("2020-01-01"), np.datetime64("2020-12-31")), dtype="datetime64[D]")],
        [
            gs.Attr("b", "bool"),
            gs.Attr("c", "complex64"),
            gs.Attr("f", "S3"),
            gs.Attr("rgb", "uint8", shape=(3,)),
            gs.Attr("l", "float32", var=True),
            gs.Attr("w", "datetime64[s]", nullable=True),
        ],
        sparse=True,
    )
    at = np.array(["2020-02-01", "2020-03-01", "2020-04-01"], "datetime64[D]")

    def columns() -> dict[str, Any]:
        lists = np.empty(3, object)
        lists[:] = [np.array([1, np.nan], np.float32), np.array([], np.float32), np.array([2], np.float32)]
        return {
            "b": np.array([True, False, True]),
            "c": np.array([1 + 2j, complex(np.nan, 1), 0], np.complex64),
            "f": np.array([b"a", b"", b"abc"], "S3"),
            "rgb": np.arange(9, dtype=np.uint8).reshape(3, 3),
            "l": lists,
            "w": np.ma.MaskedArray(np.array(["2020-01-01", "NaT", "2021-01-01"], "datetime64[s]"), [0, 0, 1]),
        }

    a = gs.create(stores("a"), schema)
    a.write_cells({"t": at}, columns())
    assert gs.diff(a, gs.copy(stores("a"), stores("b"))).equal
    changes: dict[str, Any] = {
        "b": False,
        "c": 3j,
        "f": b"ab",
        "rgb": [9, 9, 9],
        "l": np.array([3], np.float32),
        "w": np.ma.masked,
    }
    for name, value in changes.items():
        held = columns()
        held[name][0] = value
        b = gs.create(tmp_path / f"b-{name}", schema)
        b.write_cells({"t": at}, held)
        found = gs.diff(a, b)
        assert (found.different, found.same, found.only_a, found.only_b) == (1, 2, 0, 0), name
        assert found.values == {n: int(n == name) for n in changes}
        assert found.examples[0].coords == {"t": np.datetime64("2020-02-01")} and set(found.examples[0].a or {}) == {
            name
        }


def test_schemas_and_what_cannot_be_compared(stores: Stores) -> None:
    a = gs.array(stores("a"), np.arange(6), name="v")
    b = gs.create(
        stores("b"), gs.Schema([gs.Dim("d0", (0, 5))], [gs.Attr("v", "int64"), gs.Attr("w", "int8")], sparse=True)
    )
    found = gs.diff(a, b)
    assert not found.compared and not found.equal and not found.cells_equal
    assert {c.what for c in found.schema} >= {"sparse", "attribute w"}
    assert "cannot be compared" in str(found)
    c = gs.create(stores("c"), gs.Schema([gs.Dim("d0", (0, 5), 6)], [gs.Attr("u", "int64")]))
    c.write(np.arange(6))
    named = gs.diff(a, c)
    assert named.attrs == () and named.cells_equal and not named.equal
    with pytest.raises(InputError, match="'u'"):
        gs.diff(a, c, attrs="u")
    empty = gs.create(stores("e"), b.schema)
    assert gs.diff(empty, b).equal
    b.write_cells({"d0": [1]}, {"v": [1], "w": [1]})
    assert gs.diff(empty, b).only_b == 1 and gs.diff(empty, b, box={"d0": (2, 4)}).cells_equal


def test_domains_that_differ(stores: Stores) -> None:
    for kind, values in (("int64", (1, 50)), ("float64", (1.5, 50.5))):
        lo, hi = (0, 9) if kind == "int64" else (0.0, 9.5)
        schema = gs.Schema([gs.Dim("x", (lo, hi), dtype=kind)], [gs.Attr("v", "int8")], sparse=True)
        a = gs.create(stores(kind), schema)
        a.write_cells({"x": [values[0]]}, {"v": [1]})
        before = a.version
        a.resize({"x": (lo, hi * 10)})
        a.write_cells({"x": [values[1]]}, {"v": [2]})
        found = gs.diff(a.at(version=before), a)
        assert (found.same, found.only_a, found.only_b, found.different) == (1, 0, 1, 0)
        assert found.examples[0].coords == {"x": values[1]} and found.examples[0].b == {"v": 2}
        assert gs.diff(a, a.at(version=before)).only_a == 1
    far = gs.create(stores("far"), gs.Schema([gs.Dim("x", (60, 70))], [gs.Attr("v", "int8")], sparse=True))
    far.write_cells({"x": [65]}, {"v": [3]})
    found = gs.diff(far, gs.open(stores("int64")))
    assert (found.same, found.only_a, found.only_b, found.different) == (0, 1, 2, 0)


WORDS = st.sampled_from(
    ["", "a", "ab", "b", "gene-0001", "gene-0001-long", "gene-0002", "é", "漢字", chr(0x10FFFF) * 4]
)
PLACED = st.lists(st.tuples(WORDS, st.integers(0, 9), st.integers(0, 2)), max_size=30)


@given(PLACED, PLACED, st.booleans(), st.tuples(WORDS, WORDS).map(sorted), st.sampled_from([16, 24]))
def test_dimensions_of_texts(
    stores: Stores, a: list[Any], b: list[Any], small: bool, span: list[str], longest: int
) -> None:
    for only in (False, True):
        arrays = []
        for uri, cells, most in (
            (stores("diff-text-a"), a, 16),
            (stores("diff-text-b"), b + a[: len(a) // 2], longest),
        ):
            dims = [gs.Dim("g", dtype="string", max_bytes=most)]
            dims += [] if only else [gs.Dim("x", (0, 9), 4)]
            schema = gs.Schema(dims, [gs.Attr("v", "int8")], sparse=True, duplicates=True, capacity=3)
            arrays.append(gs.create(uri, schema))
            for part in (cells[::2], cells[1::2]):
                if part:
                    at = {"g": [c[0] for c in part]} | ({} if only else {"x": [c[1] for c in part]})
                    arrays[-1].write_cells(at, {"v": np.array([c[2] for c in part], np.int8)})
        keys = [[(g, 0 if only else x, v, None) for g, x, v in cells] for cells in (a, b + a[: len(a) // 2])]
        inside = [[cell for cell in side if span[0] <= cell[0] <= span[1]] for side in keys]
        try:
            with pytest.MonkeyPatch.context() as patched:
                if small:
                    patched.setattr(comparing, "_CELLS", (2, 2))
                whole, part = gs.diff(*arrays), gs.diff(*arrays, box={"g": (span[0], span[1])})
            for found, (ours, theirs) in ((whole, keys), (part, inside)):
                told = (found.same, found.different, found.only_a, found.only_b)
                assert told == expected(ours, theirs)
            assert [c.what for c in whole.schema] == (["dimension g: max_bytes"] if longest != 16 else [])
        finally:
            gs.delete(stores("diff-text-a"))
            gs.delete(stores("diff-text-b"))


def test_schemas_that_differ_in_categories(stores: Stores) -> None:
    def one(name: str, **options: Any) -> gs.Array:
        attr = gs.Attr("v", "string", **{"categories": ["lo", "hi"], **options})
        a = gs.create(stores(name), gs.Schema([gs.Dim("x", (0, 9))], [attr], sparse=True))
        a.write_cells({"x": [1, 2]}, {"v": ["hi", "lo"]})
        return a

    a = one("a")
    assert gs.diff(a, one("same")).equal
    changes: dict[str, dict[str, Any]] = {
        "categories": {"categories": ["hi", "lo"], "fill": "lo"},
        "ordered": {"ordered": True},
        "codes": {"codes": "uint16"},
    }
    for name, options in changes.items():
        found = gs.diff(a, one(name, **options))
        assert [c.what for c in found.schema] == [f"attribute v: {name}"] and found.cells_equal
    many = one("many", categories=["lo", "hi", *map(str, range(90))], codes="uint8")
    assert "categories: ('lo', 'hi') in a, ('lo', 'hi', '0', " in str(gs.diff(a, many))
    assert ", … (92)) in b" in str(gs.diff(a, many))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_bounds_of_floats(stores: Stores, kind: str) -> None:
    """The shortest text of a float32 may lie on either side of it."""
    places = np.random.default_rng(1).random(64).astype(kind)
    for place in places:
        dims = [gs.Dim("x", (0.0, 1.0), dtype=kind)]
        a, b = (gs.create(stores(), gs.Schema(dims, [gs.Attr("v", "int8")], sparse=True)) for _ in "ab")
        for array, value in ((a, 1), (b, 2)):
            array.write_cells({"x": [place]}, {"v": np.array([value], np.int8)})
        assert (gs.diff(a, a).same, gs.diff(a, b).different) == (1, 1), place


def test_what_is_no_array(stores: Stores) -> None:
    a = gs.array(stores("a"), np.arange(6), name="v")
    for given_ in (3, a["v"], None):
        with pytest.raises(InputError, match="takes arrays"):
            gs.diff(given_, a)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_great_floats(stores: Stores, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(comparing, "_CELLS", (2, 2))
    most = float(np.finfo(kind).max)
    schema = gs.Schema([gs.Dim("x", (-most, most), dtype=kind)], [gs.Attr("v", kind)], sparse=True, capacity=4)
    at = np.linspace(-1, 1, 20).astype(kind) * np.finfo(kind).max
    arrays = [gs.create(stores(name), schema) for name in "ab"]
    for a in arrays:
        a.write_cells({"x": at}, {"v": at})
        a.write_cells({"x": at[:1]}, {"v": at[-1:]})
    assert gs.diff(*arrays).same == 20
