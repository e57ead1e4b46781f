"""Dimensions of texts: what is written, read, deleted, merged and refused, beside a model in plain Python."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone import errors

GENES = ["BRCA1", "BRCA2", "TP53", "A1BG", "ZZZ3", "MT-ND1", "ABCDEFGHI", "ABCDEFGHIJKLMNOPQ", "é", "漢字"]


def genes(uri: Path | str, **options: Any) -> gs.Array:
    dims = [gs.Dim("gene", dtype="string"), gs.Dim("cell", (0, 99), 10)]
    return gs.create(str(uri), gs.Schema(dims, [gs.Attr("n", "int32")], sparse=True, **options))


def filled(uri: Path | str) -> gs.Array:
    a = genes(uri)
    a.write_cells({"gene": GENES, "cell": np.arange(len(GENES))}, {"n": np.arange(len(GENES))})
    return a


def found(result: gs.Result) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in result.to_pandas().itertuples(index=False)]


# Schemas.


def test_a_text_dimension_has_no_domain_and_a_longest_text() -> None:
    dim = gs.Dim("gene", dtype=str)
    assert (dim.dtype, dim.domain, dim.tile, dim.max_bytes) == ("string", None, None, 32)
    assert repr(dim) == "Dim('gene', dtype='string', max_bytes=32)"
    assert pickle.loads(pickle.dumps(dim)) == dim != gs.Dim("gene", dtype="string", max_bytes=40)
    schema = gs.Schema([dim, gs.Dim("x", (0, 9))], [gs.Attr("v", float)], sparse=True)
    assert gs.Schema.from_json(schema.to_json()) == schema == pickle.loads(pickle.dumps(schema))
    assert schema.ndim == 2
    assert "32 bytes" in schema._repr_html_()
    assert schema.to_arrow().field("gene").type == pa.large_string()
    again = gs.Schema.from_arrow(pa.schema([("gene", pa.string()), ("v", pa.int8())]), [gs.Dim("gene", dtype="string")])
    assert again.dims == (dim,)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"domain": ("a", "b")}, "no domain"),
        ({"tile": 3}, "one tile"),
        ({"max_bytes": 0}, "positive"),
        ({"max_bytes": 2.5}, "positive"),
    ],
)
def test_what_a_text_dimension_cannot_have(options: dict[str, Any], word: str) -> None:
    with pytest.raises(errors.SchemaError, match=word):
        gs.Dim("gene", **{"dtype": "string", **options})


def test_arrays_that_cannot_have_text_dimensions() -> None:
    gene, v = gs.Dim("gene", dtype="string"), gs.Attr("v", int)
    with pytest.raises(errors.SchemaError, match="sparse=True"):
        gs.Schema([gene], [v])
    with pytest.raises(errors.SchemaError, match="Hilbert"):
        gs.Schema([gene], [v], sparse=True, cell_order="hilbert")
    with pytest.raises(errors.SchemaError, match="256"):
        gs.Schema([gs.Dim("gene", dtype="string", max_bytes=257)], [v], sparse=True)
    with pytest.raises(errors.SchemaError, match="axes"):
        gs.Schema([gene, gs.Dim("b", dtype="string", max_bytes=240)], [v], sparse=True)
    with pytest.raises(errors.SchemaError, match="max_bytes"):
        gs.Dim("x", (0, 9), max_bytes=8)


def test_properties_show_texts(stores: Stores) -> None:
    a = filled(stores("a"))
    assert a.ndim == 2
    assert a.domain == (None, (0, 99))
    assert a.nonempty_domain == (("A1BG", "漢字"), (0, 9))
    assert a.tile == (None, 10)
    assert "gene: string" in repr(a)
    assert "gene" in a._repr_html_()
    assert a.fragments.column("domain").to_pylist() == [[["A1BG", "漢字"], ["0", "9"]]]
    tiles = a.tiles({"gene": "BRCA1"}).to_pylist()
    assert tiles == [
        {"fragment": 0, "cells": 10, "gene_lo": "A1BG", "gene_hi": "漢字", "cell_lo": 0, "cell_hi": 9},
    ]
    for what in (lambda: a.shape, lambda: a.chunks, lambda: a.read().to_dense(), lambda: len(a)):
        with pytest.raises(errors.SchemaError, match="string"):
            what()
    with pytest.raises(errors.BoundsError, match="no positions"):
        a["BRCA1":]  # type: ignore[misc]
    assert len(a[:, 3]) == 1
    with pytest.raises(errors.UnsupportedError, match="string"):
        a.resize(gene=("a", "b"))


# Boxes.


@pytest.mark.parametrize(
    ("part", "test"),
    [
        (("BRCA1", "TP53"), lambda g: "BRCA1" <= g <= "TP53"),
        (("ABCDEFGH", "ABCDEFGHIJ"), lambda g: "ABCDEFGH" <= g <= "ABCDEFGHIJ"),
        ((None, "B"), lambda g: g <= "B"),
        (("B", None), lambda g: g >= "B"),
        (slice("BRCA1", "TP53"), lambda g: "BRCA1" <= g < "TP53"),
        (slice(None, "TP53"), lambda g: g < "TP53"),
        (slice("TP53", None), lambda g: g >= "TP53"),
        (slice(None), lambda g: True),
        (slice("BRCA2", "BRCA1"), lambda g: False),
        ("TP53", lambda g: g == "TP53"),
        (gs.prefix("BRCA"), lambda g: g.startswith("BRCA")),
        (gs.prefix("ABCDEFGHI"), lambda g: g.startswith("ABCDEFGHI")),
        (gs.prefix(""), lambda g: True),
        (("x" * 300, None), lambda g: g >= "x" * 300),
        ((None, "BRCA1" + "x" * 300), lambda g: g <= "BRCA1" + "x" * 300),
    ],
)
def test_boxes_of_texts(stores: Stores, part: Any, test: Any) -> None:
    a = filled(stores("text-boxes"))
    try:
        wanted = sorted((g, i, i) for i, g in enumerate(GENES) if test(g))
        assert found(a.read({"gene": part})) == wanted
        stream = a.scan({"gene": part}, order="row").to_pandas()
        assert [tuple(row) for row in stream.itertuples(index=False)] == wanted
        if not isinstance(part, tuple):
            assert found(a.loc[part, :]) == wanted
    finally:
        gs.delete(stores("text-boxes"))


def test_boxes_that_are_none(stores: Stores) -> None:
    a = filled(stores("a"))
    for part in (("b", "a"), 3, slice(1, 2), "a\0", (1, 2), slice("a", "b", 2), "\ud800", None):
        with pytest.raises(errors.InputError, match="gene"):
            a.read({"gene": part} if part is not None else (None, 3))


def test_prefixes_of_texts() -> None:
    assert gs.prefix("BRCA") == slice("BRCA", "BRCB")
    assert gs.prefix("a\U0010ffff") == slice("a\U0010ffff", "b")
    assert gs.prefix("\ud7ff") == slice("\ud7ff", "\ue000")
    assert gs.prefix("\U0010ffff") == slice("\U0010ffff", None)


# Cells that are refused.


def test_texts_that_cannot_be_coordinates_are_named(stores: Stores) -> None:
    a = genes(stores("a"))
    with pytest.raises(errors.InputError, match=r"(?s)'?\"?gene\"?'?.*row 1.*40 bytes.*max_bytes"):
        a.write_cells({"gene": ["a", "é" * 20], "cell": [0, 1]}, [0, 1])
    with pytest.raises(errors.InputError, match=r"row 2.*NUL"):
        a.write_cells({"gene": ["a", "b", "c\0"], "cell": [0, 1, 2]}, [0, 1, 2])
    with pytest.raises(errors.InputError, match="null"):
        a.write_cells(pa.table({"gene": ["a", None], "cell": [0, 1], "n": [0, 1]}))
    with pytest.raises(errors.InputError, match='gene="BRCA1", cell=3'):
        a.write_cells({"gene": ["BRCA1", "BRCA1"], "cell": [3, 3]}, [0, 1])
    with pytest.raises(errors.InputError, match=r"row 0.*max_bytes"), a.writer(order="any") as w:
        w.append({"gene": ["x" * 33], "cell": [0]}, {"n": [1]})
    with pytest.raises(errors.InputError, match="max_bytes"):
        a.points({"gene": ["x" * 33], "cell": [0]})
    assert a.version == 1


# Reading and writing.


def test_every_way_in_and_out(stores: Stores) -> None:
    a = genes(stores("a"))
    frame = pd.DataFrame({"gene": GENES, "cell": np.arange(10), "n": np.arange(10, dtype="int32")})
    a.write_cells(frame)
    a.write_cells(pa.table({"gene": ["TP53"], "cell": [50], "n": [77]}))
    with a.writer() as w:
        w.append({"gene": ["a", "b"], "cell": [1, 1]}, {"n": [5, 6]})
        w.append({"gene": ["c"], "cell": [0]}, {"n": [7]})
    with a.writer(order="any") as w:
        w.append({"gene": ["d", "c"], "cell": [1, 3]}, {"n": [8, 9]})
    extra = pd.DataFrame(
        {"gene": ["TP53", "a", "b", "c", "d", "c"], "cell": [50, 1, 1, 0, 1, 3], "n": [77, 5, 6, 7, 8, 9]}
    )
    wanted = pd.concat([frame, extra]).sort_values(["gene", "cell"], key=_code_points).reset_index(drop=True)
    pd.testing.assert_frame_equal(a.read().to_pandas(), wanted, check_dtype=False)
    assert a.read().to_numpy()["gene"].tolist() == wanted["gene"].tolist()
    assert a.read(order="col").to_arrow().num_rows == len(wanted)
    points = a.points({"gene": ["c", "no", "TP53"], "cell": [3, 3, 50]})
    assert found(points) == [("c", 3, 9), ("TP53", 50, 77)]
    a.delete(coords={"gene": ["c", "BRCA1"], "cell": [3, 0]})
    assert len(a.points({"gene": ["c"], "cell": [3]})) == 0
    a.consolidate("all")
    assert len(a.read()) == len(wanted) - 2
    assert a.verify()["damage"] == []


def _code_points(column: Any) -> Any:
    return (
        column.map(lambda v: v.encode()) if column.dtype == object or str(column.dtype) in ("str", "string") else column
    )


def test_more_cells_than_memory_holds(stores: Stores) -> None:
    dims = [gs.Dim("name", dtype="string", max_bytes=24)]
    schema = gs.Schema(dims, [gs.Attr("v", "int64")], sparse=True, capacity=1_000)
    a = gs.create(stores("a"), schema, context=gs.Context("1MiB"))
    rng = np.random.default_rng(7)
    names = np.array([f"{n:x}" * 2 for n in rng.permutation(60_000)], object)
    with a.writer(order="any") as w:
        for start in range(0, len(names), 9_000):
            w.append({"name": names[start : start + 9_000]}, {"v": np.arange(start, min(start + 9_000, len(names)))})
    got = a.read()
    order = np.argsort(names.astype(str), kind="stable")
    assert got["name"].tolist() == names[order].tolist()
    assert (got["v"] == order).all()
    batches = [b.column("name").to_pylist() for b in a.scan(order="row", batch_bytes=20_000)]
    assert len(batches) > 20
    assert [name for batch in batches for name in batch] == names[order].tolist()
    with pytest.raises(errors.InputError, match=r'same cell.*name="'), a.writer(order="any") as w:
        for start in (0, 20_000, 0):
            w.append({"name": names[start : start + 20_000]}, {"v": np.arange(20_000)})


@pytest.mark.parametrize("order", ["row", "col"])
def test_column_order_keeps_the_order_of_texts(stores: Stores, order: str) -> None:
    dims = [gs.Dim("t", dtype="string", max_bytes=24), gs.Dim("n", (0, 9))]
    schema = gs.Schema(dims, [gs.Attr("v", "int8")], sparse=True, cell_order=order, tile_order=order, capacity=3)
    a = gs.create(stores("a"), schema)
    texts = ["aaaaaaaaa", "b", "aaaaaaaaaaaaaaaaab", "aaaaaaaa", "c"]
    a.write_cells({"t": texts * 2, "n": [1] * 5 + [0] * 5}, np.zeros(10, "int8"))
    by_row = sorted((t, n) for t in texts for n in (0, 1))
    by_col = sorted(by_row, key=lambda cell: cell[::-1])
    for asked, wanted in (("row", by_row), ("col", by_col), ("global", by_row if order == "row" else by_col)):
        assert [row[:2] for row in found(a.read(order=asked))] == wanted
        for size in (1, 10_000):
            assert [row[:2] for row in found(a.scan(order=asked, batch_bytes=size)._result())] == wanted


def test_conditions_on_texts(stores: Stores) -> None:
    a = filled(stores("a"))

    def where(text: Any) -> list[str]:
        return sorted(a.read(where=text)["gene"].tolist())

    assert where("gene == 'BRCA1'") == ["BRCA1"]
    assert where(gs.col("gene").isin(["TP53", "no", "漢字"])) == ["TP53", "漢字"]
    assert where("gene between 'BRCA1' and 'TP53' and n > 0") == ["BRCA2", "MT-ND1", "TP53"]
    assert where("gene < 'B'") == sorted(g for g in GENES if g < "B")
    assert where("gene != 'BRCA1' and not gene > 'C'") == sorted(g for g in GENES if g <= "C" and g != "BRCA1")
    assert where("gene > 'ABCDEFGH' and gene <= 'ABCDEFGHI'") == ["ABCDEFGHI"]
    assert where("gene is null") == []
    assert a.read(where="gene == 'BRCA1'").stats["cells_returned"] == 1
    with pytest.raises(errors.InputError, match="gene"):
        where("gene > 3")
    a.delete(where="gene in ('BRCA1', 'é')")
    assert where("gene >= ''") == sorted(g for g in GENES if g not in ("BRCA1", "é"))
    a.delete({"gene": gs.prefix("ABC")}, where="n == 6")
    a.delete({"gene": ("M", "N")})
    assert where("true") == sorted(g for g in GENES if g not in ("BRCA1", "é", "ABCDEFGHI", "MT-ND1"))


def test_texts_are_compared_with_attributes(stores: Stores) -> None:
    schema = gs.Schema([gs.Dim("k", dtype="string")], [gs.Attr("s", "string")], sparse=True)
    a = gs.create(stores("a"), schema)
    a.write_cells({"k": ["a", "b", "abcdefghijk"]}, {"s": ["a", "a", "abcdefghijl"]})
    assert a.read(where="k == s")["k"].tolist() == ["a"]
    assert a.read(where="k < s")["k"].tolist() == ["abcdefghijk"]


def test_only_what_a_text_box_touches_is_read(stores: Stores) -> None:
    dims = [gs.Dim("name", dtype="string", max_bytes=16)]
    a = gs.create(stores("a"), gs.Schema(dims, [gs.Attr("v", "int64")], sparse=True, capacity=1_000))
    names = np.array([f"station-{n:06d}" for n in range(100_000)], object)
    a.write_cells({"name": names}, np.random.default_rng(1).integers(0, 2**60, len(names)))
    stats = a.read({"name": ("station-050000", "station-050099")}).stats
    assert stats["cells_returned"] == 100
    assert stats["tiles_read"] <= 2
    stats = a.read(box=[{"name": "station-000005"}, {"name": "station-099999"}]).stats
    assert (stats["cells_returned"], stats["tiles_read"]) == (2, 2)
    assert a.read(where="name in ('station-000005', 'station-099999')").stats["tiles_read"] == 2


def test_transactions_see_what_they_staged(stores: Stores) -> None:
    uri = stores("a")
    filled(uri)
    with gs.transaction(uri, isolation="serializable") as tx:
        b = tx["/"]
        b.write_cells({"gene": ["NEW"], "cell": [1]}, [5])
        assert found(b.read({"gene": ("NEW", "NEW")})) == [("NEW", 1, 5)]
        b.delete({"gene": ("A", "B")})
    assert min(gs.open(uri).read()["gene"].tolist()) == "BRCA1"


# Lists of boxes.


def test_lists_of_boxes_give_each_cell_once(stores: Stores) -> None:
    a = filled(stores("a"))
    boxes = [{"gene": ("A", "C")}, {"gene": "BRCA1"}, {"cell": (0, 2)}, (slice("é", None), slice(None))]
    wanted = sorted((g, i, i) for i, g in enumerate(GENES) if "A" <= g <= "C" or i <= 2 or g >= "é")
    assert found(a.read(boxes)) == wanted
    assert found(a.read(boxes, order="col")) == sorted(wanted, key=lambda row: (row[1], row[0]))
    assert found(a.read(boxes, where="n > 1")) == [row for row in wanted if row[2] > 1]
    assert len(a.read([])) == 0
    assert len(a.scan([]).to_pandas()) == 0
    assert len(a.read([{"gene": slice("b", "a")}])) == 0
    assert a.delete([]) == a.version
    a.delete(boxes)
    assert len(a.read()) == len(GENES) - len(wanted)


def test_lists_of_boxes_of_a_dense_array(stores: Stores) -> None:
    values = np.arange(400, dtype="int32").reshape(20, 20)
    a = gs.array(stores("a"), values, tile=(5, 5))
    got = a.read(box=[(slice(0, 2), slice(3, 5)), {"d0": (19, 19), "d1": (18, 19)}, (slice(1, 3), slice(4, 5))])
    places = [(0, 3), (0, 4), (1, 3), (1, 4), (2, 4), (19, 18), (19, 19)]
    assert found(got) == [(x, y, values[x, y]) for x, y in places]
    assert got.shape is None
    assert got.to_dense(fill=-1)[2, 1] == values[2, 4]
    assert len(a.read(box=[(slice(0, 2), slice(0, 2))])) == 4
    with pytest.raises(errors.InputError, match="out="):
        a.read(box=[(slice(0, 2), slice(0, 2))], out=np.empty((2, 2), "int32"))
    with pytest.raises(errors.InputError, match="one box"):
        a.write(values[:2, :2], box=[(slice(0, 2), slice(0, 2)), (slice(0, 2), slice(0, 2))])
    a.delete(box=[(slice(0, 1), slice(0, 1)), (slice(19, 20), slice(19, 20))])
    assert (a[0, 0], a[19, 19], a[0, 1]) == (0, 0, 1)


def test_boxes_far_apart_in_a_huge_dense_domain(stores: Stores) -> None:
    dims = [gs.Dim("x", (0, 2**40), 100), gs.Dim("y", (0, 2**40), 100)]
    a = gs.create(stores("a"), gs.Schema(dims, [gs.Attr("v", "int8", fill=7)]))
    far = 2**40
    a.write(np.ones((2, 2), "int8"), {"x": (far - 1, far), "y": (far - 1, far)})
    for order in ("row", "global"):
        boxes = [{"x": (0, 1), "y": (0, 0)}, {"x": (far, far), "y": (far - 1, far)}]
        assert found(a.read(boxes, order=order)) == [(0, 0, 7), (1, 0, 7), (far, far - 1, 1), (far, far, 1)]
        assert len(a.scan(boxes, order=order).to_pandas()) == 4


def test_many_boxes(stores: Stores) -> None:
    dims = [gs.Dim("x", (0, 999_999), 10_000), gs.Dim("y", (0.0, 1.0), dtype="float64")]
    a = gs.create(stores("a"), gs.Schema(dims, [gs.Attr("v", "int32")], sparse=True, capacity=500))
    rng = np.random.default_rng(3)
    x, y = rng.permutation(1_000_000)[:50_000], rng.random(50_000)
    a.write_cells({"x": x[:30_000], "y": y[:30_000]}, np.arange(30_000))
    a.write_cells({"x": x[30_000:], "y": y[30_000:]}, np.arange(30_000, 50_000))
    starts = rng.integers(0, 999_000, 2_000)
    inside = np.zeros(len(x), bool)
    for start in starts:
        inside |= (x >= start) & (x < start + 50) & (y >= 0.25)
    got = a.read(box=[(slice(int(s), int(s) + 50), slice(0.25, None)) for s in starts], order="any")
    assert sorted(got["v"].tolist()) == np.flatnonzero(inside).tolist()
    with pytest.raises(errors.InputError, match="65536"):
        a.read(box=[(slice(i, i + 1), slice(None)) for i in range(65_537)])


# A life of an array beside a model.

TEXTS = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(["", "a", "aaaaaaa", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaab", "é", "éééé", "漢字漢字", "\U0010ffff"]),
    st.builds(lambda n, t: "a" * n + t, st.integers(5, 17), st.text("ab\x01é漢𝔘\U0010ffff", max_size=2)),
).filter(lambda t: len(t.encode()) <= 24)
NUMBERS = st.integers(-3, 3)
FLOATS = st.sampled_from([-1.5, 0.0, 0.25, 1e30])
CELLS = st.lists(st.tuples(TEXTS, NUMBERS, FLOATS), min_size=1, max_size=25, unique=True)
ENDS = st.one_of(st.none(), TEXTS)


@st.composite
def part(draw: Any) -> tuple[Any, Any]:
    """A box's part along the texts, and what it holds."""
    lo, hi = draw(ENDS), draw(ENDS)
    if draw(st.booleans()):
        return slice(lo, hi), lambda t: (lo is None or t >= lo) and (hi is None or t < hi)
    if lo is not None and hi is not None and lo > hi:
        lo, hi = hi, lo
    return (lo, hi), lambda t: (lo is None or t >= lo) and (hi is None or t <= hi)


BOX = st.tuples(part(), st.tuples(NUMBERS, NUMBERS).map(sorted))
STEP = st.one_of(
    st.tuples(st.just("write"), CELLS),
    st.tuples(st.just("delete box"), BOX),
    st.tuples(st.just("delete cells"), CELLS),
    st.tuples(st.just("delete where"), TEXTS),
    st.tuples(st.just("consolidate"), st.sampled_from(["all", "tiered", "updates"])),
)


class Life:
    """An array with dimensions of texts, integers and floats, and the cells that it should hold."""

    def __init__(self, uri: str, orders: tuple[str, str], first: int, capacity: int, cache: Any) -> None:
        dims = [gs.Dim("n", (-3, 3), 2), gs.Dim("f", (-10.0, 1e30), dtype="float64")]
        dims.insert(first, gs.Dim("t", dtype="string", max_bytes=24))
        self.names = [dim.name for dim in dims]
        schema = gs.Schema(
            dims, [gs.Attr("v", "int64")], sparse=True, capacity=capacity, tile_order=orders[0], cell_order=orders[1]
        )
        self.a = gs.create(uri, schema, context=gs.Context("4MiB", 2, cache=cache))
        self.cells: dict[tuple[str, int, float], int] = {}
        self.past: dict[int, dict[tuple[str, int, float], int]] = {}
        self.count = 0

    def step(self, what: str, given: Any) -> None:
        if what == "write":
            values = range(self.count, self.count + len(given))
            self.a.write_cells(self._columns(given), {"v": np.array(values)})
            self.cells |= dict(zip(given, values, strict=True))
            self.count += len(given)
        elif what == "delete box":
            (texts, holds), (lo, hi) = given
            self.a.delete({"t": texts, "n": (lo, hi)})
            self._forget(lambda t, n, f: holds(t) and lo <= n <= hi)
        elif what == "delete cells":
            self.a.delete(coords=self._columns(given))
            self._forget(lambda *cell: cell in given)
        elif what == "delete where":
            self.a.delete(where=gs.col("t") > given)
            self._forget(lambda t, n, f: t > given)
        else:
            self.a.consolidate(given)
        self.past[self.a.version] = dict(self.cells)

    def _forget(self, gone: Any) -> None:
        self.cells = {cell: v for cell, v in self.cells.items() if not gone(*cell)}

    def _columns(self, given: list[tuple[str, int, float]]) -> dict[str, Any]:
        texts = np.empty(len(given), object)
        texts[:] = [t for t, _, _ in given]
        return {"t": texts, "n": np.array([n for _, n, _ in given]), "f": np.array([f for _, _, f in given])}

    def rows(self, cells: dict[tuple[str, int, float], int], holds: Any, order: str) -> list[tuple[Any, ...]]:
        picked = [dict(zip("tnf", cell, strict=True)) | {"v": v} for cell, v in cells.items() if holds(*cell)]
        rows = [tuple(row[name] for name in [*self.names, "v"]) for row in picked]
        return sorted(rows, key=lambda row: row[:3] if order == "row" else row[:3][::-1])

    def check(self, a: gs.Array, cells: dict[tuple[str, int, float], int], boxes: list[Any], order: str) -> None:
        forms = [{"t": texts, "n": (lo, hi)} for (texts, _), (lo, hi) in boxes]

        def inside(t: str, n: int, f: float) -> bool:
            return any(holds(t) and lo <= n <= hi for (_, holds), (lo, hi) in boxes)

        wanted = self.rows(cells, inside, order)
        assert found(a.read(forms, order=order)) == wanted
        assert found(a.scan(forms, order=order, batch_bytes=300)._result()) == wanted
        if len(forms) == 1:
            assert found(a.read(forms[0], order=order)) == wanted
        limit = boxes[0][0][0][0] if boxes and isinstance(boxes[0][0][0], tuple) else "a"
        limit = limit or ""
        few = self.rows(cells, lambda t, n, f: inside(t, n, f) and (t >= limit or n > 0), order)
        assert found(a.read(forms, where=(gs.col("t") >= limit) | (gs.col("n") > 0), order=order)) == few
        exact = self.rows(cells, lambda t, n, f: t == limit, order)
        assert found(a.read(where=gs.col("t") == limit, order=order)) == exact
        if cells:
            points = [*cells, (limit, 1, 0.25)]
            got = found(a.points(self._columns(points)))
            named = [dict(zip("tnf", cell, strict=True)) | {"v": cells[cell]} for cell in points if cell in cells]
            assert got == [tuple(row[name] for name in [*self.names, "v"]) for row in named]
            low, high = a.nonempty_domain[self.names.index("t")]  # type: ignore[index]
            assert low <= min(t for t, _, _ in cells) and max(t for t, _, _ in cells) <= high


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(STEP, min_size=1, max_size=6),
    boxes=st.lists(BOX, max_size=4),
    orders=st.tuples(st.sampled_from(["row", "col"]), st.sampled_from(["row", "col"])),
    first=st.integers(0, 2),
    capacity=st.sampled_from([1, 4, 10_000]),
    cache=st.sampled_from([0, "64MiB"]),
    order=st.sampled_from(["row", "col"]),
)
def test_a_life_with_texts(
    stores: Stores,
    steps: list[Any],
    boxes: list[Any],
    orders: tuple[str, str],
    first: int,
    capacity: int,
    cache: Any,
    order: str,
) -> None:
    life = Life(stores("texts"), orders, first, capacity, cache)
    try:
        for what, given_ in steps:
            life.step(what, given_)
            life.check(life.a, life.cells, boxes, order)
        for version, cells in life.past.items():
            life.check(life.a.at(version=version), cells, boxes, order)
        assert life.a.verify()["damage"] == []
        life.a.vacuum(keep="0s")
        life.check(life.a, life.cells, boxes, order)
    finally:
        gs.delete(stores("texts"))


@pytest.mark.parametrize("order", ["row", "col"])
@pytest.mark.parametrize("dims", ["texts", "far"])
def test_a_stream_in_small_batches_cuts_between_cells(memory_uri: str, dims: str, order: str) -> None:
    """Not between all coordinates that there could be, which takes a step for each bit of them."""
    rng = np.random.default_rng(5)
    names = np.array(["Ærø", "a", "harbour of the north", "harbour of the south", "zz", "z"])
    if dims == "texts":
        schema_dims = [gs.Dim("a", dtype="string"), gs.Dim("b", dtype="string")]
        places = {"a": rng.choice(names, 60).tolist(), "b": rng.choice(names, 60).tolist()}
    else:
        schema_dims = [gs.Dim(n, (-(2**62), 2**62), 2**40) for n in "ab"]
        places = {n: (rng.choice([-(2**62), -5, 0, 3, 2**61], 60) + rng.integers(0, 2, 60)) for n in "ab"}
    schema = gs.Schema(schema_dims, [gs.Attr("v", "bytes", filters="none")], sparse=True, duplicates=True, capacity=3)
    a = gs.create(memory_uri, schema)
    values = [bytes([n]) * 9_000 for n in range(60)]
    for part in (slice(0, 30), slice(30, 60)):
        a.write_cells({n: column[part] for n, column in places.items()}, {"v": values[part]})
    whole = a.read(order=order).to_arrow()
    stream = a.scan(order=order, batch_bytes=1)
    batches = list(stream)
    found = pa.Table.from_batches(batches)
    assert len(batches) > 20 and found.equals(whole.cast(found.schema))
    assert stream.stats["requests"] < 1_500, "each cell is read a few times, not once a bit"
