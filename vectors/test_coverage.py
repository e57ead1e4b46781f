"""Of all that the pages name there is a vector: types, filters, kinds of fragments, operations, places, sections."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gsreader import Store, filters, log, rows
from gsreader.bytes import Absent
from gsreader.datatypes import LIST, SHAPED
from gsreader.log import Record
from gsreader.schema import Schema, Shared, Steps
from gsreader.state import Node
from test_vectors import CASES, FORMS, by_form, expected, opened, sorted_copies

PAGES = Path(__file__).parent.parent / "docs/format"


def table(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table after a heading of a page, without its own head."""
    text = (PAGES / page).read_text()
    below = text[re.search(rf"(?m)^#+ {re.escape(heading)}\b.*$", text).end() :]
    rows = re.search(r"(?m)(^\|.*\n)+", below)[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def named(page: str, heading: str) -> set[str]:
    """What the first column of a table has in code."""
    return {name for row in table(page, heading) for name in re.findall("`([^`]+)`", row[0])}


def later(form: str, names: set[str]) -> set[str]:
    """The names, where they came after this form."""
    return names if form == "gs0" else set()


def cases(form: str) -> list[Path]:
    return [case for case in CASES if case.parent.name == form]


def store_of(case: Path) -> Store:
    return opened(case, case / "store")


@cache
def arrays(form: str) -> list[tuple[Store, Node]]:
    """Every array of every version whose reads are told."""
    found = []
    for case in cases(form):
        store = store_of(case)
        for version in expected(case)["versions"]:
            found += [(store, node) for node in store.at(version["version"]).nodes.values() if node.schemas]
    return found


@cache
def records(form: str) -> list[Record]:
    found = []
    for case in cases(form):
        store, versions = store_of(case), (case / "store" / "_log").glob("0*")
        found += [store.record(int(path.name)) for path in versions]
    return found


@cache
def schemas(form: str) -> list[Schema]:
    return [schema for _, node in arrays(form) for schema in node.schemas]


class Seen(NamedTuple):
    """What the fragments of all vectors of a form have."""

    kinds: set[str]
    places: set[str]
    pipelines: set[str]
    sections: set[int]


@cache
def fragments(form: str) -> Seen:
    seen = Seen(set(), set(), set(), set())
    for store, node in arrays(form):
        for d in node.fragments:
            seen.kinds.add(d.kind)
            where = "nowhere" if d.file is None else "body" if isinstance(d.file, int) else "data"
            seen.places.add(where if where != "data" or d.file == d.id else "pack")
            if d.kind in ("dense", "sparse", "tombstones"):
                found = store._fragment(node, d)
                seen.pipelines.update(found.pipelines)
                seen.sections.update(found.sections)
    return seen


def kinds_of(name: str) -> Iterator[str]:
    """What the pages call a type: as it is, or by what it is made of."""
    if re.fullmatch(r"bytes\[\d+\]", name):
        yield "bytes[n]"
    elif re.fullmatch(r"\w+64\[\d+\w+\]", name):
        yield re.sub(r"\d+[a-zA-Z]+\]", "nu]", name)
    elif LIST.fullmatch(name):
        yield "list[p]"
    elif shaped := SHAPED.fullmatch(name):
        yield "p[n,m]" if "," in shaped[2] else "p[n]"
    else:
        yield name


UNITS = set(["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"])


STEPS = {"datetime64[nu]", "timedelta64[nu]"}
"""Times that are counted in several units."""


def spelled(names: set[str]) -> set[str]:
    """The names of the table of types: times once for each unit."""
    times = {name for name in names if name.endswith("64[u]")}
    vectors = {"p[n]", "p[n,m]", "list[p]"}
    plain = {name for name in names if re.fullmatch(r"[a-z]+\d*|bytes\[n\]", name)}
    assert {"[n]", "[n,m]", "list["} | plain | times <= names | {"[n]", "[n,m]", "list["}
    return plain | vectors | {name.replace("[u]", f"[{unit}]") for name in times for unit in UNITS}


@by_form
def test_every_type_is_an_attribute(form):
    page = (PAGES / "schema.md").read_text()
    assert set(re.search(r"unit `u` is one of `([^`]+)`", page)[1].split()) == UNITS
    wanted = spelled(named("schema.md", "Datatypes"))
    assert len(wanted) > 40
    wanted |= STEPS - later(form, STEPS)
    assert wanted <= {kind for schema in schemas(form) for attr in schema.attrs for kind in kinds_of(attr.shown.name)}


@by_form
def test_every_type_that_may_be_is_a_dimension(form):
    rows = [row for row in table("schema.md", "Datatypes") if row[-1] != "no"]
    names = {name for row in rows for name in re.findall("`([^`]+)`", row[0])}
    wanted = spelled(names) - {"p[n]", "p[n,m]", "list[p]", "string"}
    found = {(schema.sparse, dim.datatype.name) for schema in schemas(form) for dim in schema.dims if dim.word is None}
    assert wanted <= {name for _, name in found}
    assert STEPS - later(form, STEPS) <= {kind for _, name in found for kind in kinds_of(name)}
    assert any(dim.word is not None for schema in schemas(form) for dim in schema.dims)
    for kind in ("datetime64", "timedelta64"):
        assert {sparse for sparse, name in found if name.startswith(kind)} == {False, True}


OPEN = {(False, False), (False, True), (True, False), (True, True)}


@by_form
def test_every_key_and_order_of_a_schema_is_used(form):
    # Newer releases write these; test_rows_of_newer.py reads such schemas.
    keys = named("schema.md", "Schemas") - {"read", "write", "ext", "dims[].ext", "attrs[].ext"}
    keys -= later(form, {"frame", "dims[].origin", "dims[].labels", "scalar"})
    tops = [schema.json for schema in schemas(form)]
    assert {key for key in keys if "[" not in key} <= {key for top in tops for key in top}
    for part in ("dims", "attrs"):
        wanted = {key.partition(".")[2] for key in keys if key.startswith(f"{part}[]")}
        assert wanted <= {key for top in tops for value in top[part] for key in value}
    ends = {(dim.open, dim.low > dim.high) for schema in schemas(form) for dim in schema.dims}
    every = {(is_open, is_empty) for is_open in OPEN for is_empty in (False, True)}
    assert ends == every - later(form, every - {((False, False), False)})
    closed = [(d, d.high - d.low + 1) for schema in schemas(form) for d in schema.dims if not any(d.open)]
    longer = any(isinstance(d.extent, int) and 0 < count < d.extent for d, count in closed)
    assert longer == (form != "gs0"), "a tile that is longer than a domain with two ends"
    beyond = any(d.fixed is not None and d.low < d.fixed < d.high for schema in schemas(form) for d in schema.dims)
    assert beyond == (form != "gs0"), "a domain that grew beyond its closed end"
    labels = {type(dim.labels) for schema in schemas(form) for dim in schema.dims}
    assert labels == {type(None), Steps, str, Shared} - later(form, {Steps, str, Shared})
    orders = {(schema.tile_order, schema.cell_order) for schema in schemas(form)}
    assert {("row", "row"), ("col", "col"), ("row", "col"), ("col", "row")} <= orders
    assert {cell for _, cell in orders} == {"row", "col", "hilbert"}
    assert {schema.duplicates for schema in schemas(form) if schema.sparse} == {False, True}
    assert {a.ordered for s in schemas(form) for a in s.attrs if a.categories is not None} == {False, True}
    codes = {a.datatype.name for s in schemas(form) for a in s.attrs if a.categories is not None}
    assert codes == {"uint8", "uint16", "uint32"}
    assert any("bitround" in attr["filters"] for top in tops for attr in top["attrs"])


@by_form
def test_every_filter_is_in_a_fragment(form):
    names = {re.match(r"[a-z0-9]+", name)[0] for name in named("codecs.md", "Filters")} - {"acme"}
    assert {"none", "pco", "rle"} <= names == set(filters.DECODERS) | {"none"}
    used = {name for pipeline in fragments(form).pipelines for name in filters.parse(pipeline) or ["none"]}
    assert names <= used and any("." in name for name in used)


@by_form
def test_every_kind_of_fragment_lies_everywhere_it_may(form):
    page = (PAGES / "log.md").read_text()
    kinds = set(re.findall(r'"(\w+)"', re.search(r'"kind":((?:"\w+"\|?)+)', page)[1]))
    assert kinds == {"dense", "sparse", "tombstones", "deletion", "mask"} == fragments(form).kinds
    assert fragments(form).places == {"body", "data", "pack", "nowhere"}
    moved = {isinstance(d.file, int) for _, node in arrays(form) for d in node.fragments if d.moved}
    assert moved == {True, False} - later(form, {True, False}), "by records, and by pages"


@by_form
def test_every_section_is_in_a_fragment(form):
    wanted = {int(row[0]) for row in table("fragment.md", "Index sections")}
    assert wanted == set(range(1, 12)) == fragments(form).sections


def form_of(operation: dict[str, Any]) -> str:
    """The name of an operation, with the fields that make another form of it."""
    field = operation.get("field")
    return " ".join([operation["op"], *(["owner"] if "owner" in operation else []), *([field[0]] if field else [])])


@by_form
def test_every_operation_is_in_a_record(form):
    text = (PAGES / "log.md").read_text()
    listed = text[text.index("| `op` |") : text.index("A fragment:")]
    described = re.findall(r"(?m)^\| `(\w+)` \| (.*) \| .* \|$", listed)[1:]
    hidden = {f"{name} owner" for name, told in described if "`owner`" in told}
    fields = {f"{name} {which}" for name, told in described for which in ("attr", "dim") if f"`{which}`" in told}
    assert hidden == {"create_array owner"} and fields == {"set_metadata attr", "set_metadata dim"}
    wanted = {name for name, _ in described} | hidden | fields
    assert len(wanted) == 18
    wanted -= later(form, {"grow", "keep", "release", "set_base"} | hidden | fields)
    assert wanted == {form_of(operation) for record in records(form) for operation in record.operations}
    assert {record.root is None for record in records(form)} == {False, True}


@by_form
def test_every_object_of_a_store_is_in_a_vector(form):
    names = {path.parent.name for case in cases(form) for path in case.glob("store/*/*")}
    assert names == {"_log", "_manifest", "_data"}, "leases are of readers, the other folders of deletions and repairs"
    assert any((case / "store/_log/floor").is_file() for case in cases(form) if expected(case)["versions"])
    assert any(sorted_copies(case) for case in cases(form))
    assert any("key" in expected(case) for case in cases(form))
    [unfinished] = [case for case in cases(form) if not expected(case)["versions"]]
    with pytest.raises(Absent):
        store_of(unfinished).newest()


@cache
def rows_of(form: str) -> tuple[list[rows.Row], set[int]]:
    """Every row of every page of the vectors, and the codings of pages and values."""
    found: list[rows.Row] = []
    codings = set()
    for case in cases(form):
        for path in sorted(case.glob("store/_manifest/*")):
            data = store_of(case)._read(f"_manifest/{path.name}")
            if data.startswith(b'{"gs":1'):
                data = data[log.open_line(data, path.name).body :]
            if data.startswith((rows.PAGES.magic, rows.VALUES.magic)):
                codings.add(int.from_bytes(data[12:16], "little"))
            if data.startswith(rows.PAGES.magic):
                found += rows.parsed(rows.content(data, rows.PAGES))
    return found, codings


def sort_of(key: bytes) -> str:
    """The sort of a row, as the table of keys names it."""
    sort = chr(key[0])
    if sort == "I":
        letter = f" {chr(key[18])}" if key[17] == 5 else ""
        return f"{sort} 0x{key[17]:02x}{letter}"
    return f"{sort} {chr(key[1])}" if sort == "C" else sort


@pytest.mark.parametrize("form", [form for form in FORMS if form != "gs0"])
def test_every_row_flag_and_coding_is_in_a_root(form):
    wanted = set()
    for row in table("manifest.md", "Rows"):
        tag, *sorts = re.findall("`([^`]+)`", row[0])
        tag = " ".join([tag, *(sort for sort in sorts if sort.startswith("0x"))])
        wanted |= {f"{tag} {sort}" for sort in sorts if not sort.startswith("0x")} or {tag}
    assert len(wanted) == 13
    found, codings = rows_of(form)
    assert wanted == {sort_of(row.key) for row in found if row.flags != rows.PAGE}
    assert {row.flags for row in found} == {rows.INLINE, rows.PAGE, rows.VALUE}
    assert codings == {rows.PLAIN, rows.ZSTD}
    assert {row.value[16] for row in found if sort_of(row.key) == "N" and row.flags == rows.INLINE} == {0, 1, 2}
    assert {len(row.key) > 1 for row in found if sort_of(row.key) == "K"} == {False, True}
    heads = [json.loads(row.value) for row in found if sort_of(row.key) == "I 0x00" and row.flags == rows.INLINE]
    assert {"parent", "name", "kind", "schemas", "domain", "hidden"} == {name for head in heads for name in head}
    assert any(None in head.get("domain", []) for head in heads)
