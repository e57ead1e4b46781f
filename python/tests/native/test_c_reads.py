"""Reads by a program in C, through 1 MiB of room: the golden vectors, and results that are much larger."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_dump import ANY, GLOBAL, ROW, Asked, dumped
from c_programs import ROOT, C, Installed

import gridstone as gs

sys.path.insert(0, str(ROOT / "vectors"))
from gsreader.datatypes import Datatype
from gsreader.schema import Schema
from gsreader.store import column

# Its filter is one of the user: a program in C has none of its own.
CASES = sorted(path.parent for path in (ROOT / "vectors").glob("gs[01]/*/expect.json"))
CASES = [case for case in CASES if case.name != "user_filters"]


@cache
def expected(case: Path) -> dict[str, Any]:
    return json.loads((case / "expect.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def dump(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dump") / "dump"
    return installed.compile("gcc", Path(__file__).parent / "dump.c", made, C)


def types_of(schema: Schema) -> dict[str, tuple[Datatype, int, bool]]:
    """The type of each column that is shown, the width of what is stored, and whether it may be null."""
    types = {}
    for axes in schema.coordinates:
        datatype = axes[0].datatype if axes[0].word is None else Datatype("string")
        types[axes[0].name] = (datatype, 0 if datatype.varies else datatype.width, False)
    for attr in schema.attrs:
        types[attr.name] = (attr.shown, 0 if attr.datatype.varies else attr.datatype.width, attr.nullable)
    return types


def box_of(schema: Schema, box: list[list[str] | None] | None) -> tuple[str, list[str]]:
    """A box as a program in C gives it: by integers where they fit, else by texts."""
    if box is None or schema.scalar:
        return "whole", []
    kinds = [None if axes[0].word is not None else axes[0].datatype for axes in schema.coordinates]
    ends = [end for pair in box for end in (pair or ["-", "-"])]
    whole = all(kind is not None and (kind.time or "int" in kind.name) for kind in kinds)
    if whole and all(-(2**63) <= int(end) < 2**63 for end in ends):
        return "ints", ends
    return "texts", ends


def reads_of(case: Path) -> list[tuple[Schema, dict[str, Any], Asked]]:
    """All reads of a vector, and what a program in C asks for each."""
    found = []
    for version in expected(case)["versions"]:
        for node in version["nodes"]:
            for read in [] if node.get("hidden") else node.get("reads", []):
                schema = Schema.of_json(node["schema"])
                columns = [(name, *types_of(schema)[name][1:]) for name in read["columns"]]
                box, ends = box_of(schema, read["box"])
                order = GLOBAL if schema.sparse else ROW
                where = (str(case / "store"), node["path"], version["version"])
                found.append((schema, read, Asked(*where, columns, order, box, ends)))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_the_golden_vectors_are_read(case: Path, dump: Path, installed: Installed) -> None:
    reads = reads_of(case)
    assert bool(reads) == bool(expected(case)["versions"])
    key = expected(case).get("key")
    environment = installed.environment({"GRIDSTONE_KEY": key} if key else {})
    answers = dumped(dump, environment, [asked for *_, asked in reads])
    for (schema, read, asked), answer in zip(reads, answers, strict=True):
        assert sum(answer.portions) == read["cells"], asked
        attrs = {attr.name: attr for attr in schema.attrs}
        for name, width, _ in asked.columns:
            cells = answer.cells(name, width)
            if name in attrs:
                cells = [attrs[name].value(cell) for cell in cells]
            assert column(types_of(schema)[name][0], cells) == read["columns"][name], (asked, name)


CELLS = 3_000_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> gs.Array:
    """Three million cells with a number, one that may be null, and a text that may be null."""
    schema = gs.Schema(
        [gs.Dim("x", (0, 2**40), 2**20)],
        [gs.Attr("n", "int32"), gs.Attr("m", "float64", nullable=True), gs.Attr("t", "string", nullable=True)],
        sparse=True,
    )
    array = gs.create(tmp_path_factory.mktemp("large") / "large.gs", schema, context=gs.Context(durability="close"))
    place = np.arange(CELLS)
    texts = np.array([f"text {i}" for i in range(1_000)], object)[place % 1_000]
    # Two writes, of which the second also renews some cells of the first.
    for chosen in (place[: CELLS // 2], place[CELLS // 2 - 1_000 :]):
        array.write_cells(
            {"x": chosen * 7},
            {
                "n": (chosen % 2**31).astype(np.int32),
                "m": np.ma.masked_array(chosen / 2, chosen % 3 == 0),
                "t": np.ma.masked_array(texts[chosen], chosen % 5 == 0),
            },
        )
    return array


@pytest.mark.parametrize("order", [ROW, ANY], ids=["row", "any"])
def test_a_huge_result_gives_every_cell_once(order: int, large: gs.Array, dump: Path, installed: Installed) -> None:
    columns = [("x", 8, False), ("n", 4, False), ("m", 8, True), ("t", 0, True)]
    asked = Asked(large.uri, "/", large.version, columns, order)
    (answer,) = dumped(dump, installed.environment(), [asked])
    assert sum(answer.portions) == CELLS and len(answer.portions) > 40
    x = np.concatenate([np.frombuffer(part, np.int64) for part in answer.columns["x"].values])
    place = x // 7
    assert (place * 7 == x).all() and np.array_equal(np.sort(place), np.arange(CELLS))
    assert order == ANY or (np.diff(x) > 0).all()
    n = np.concatenate([np.frombuffer(part, np.int32) for part in answer.columns["n"].values])
    m = np.concatenate([np.frombuffer(part, np.float64) for part in answer.columns["m"].values])
    valid = {name: np.concatenate(answer.columns[name].validity).astype(bool) for name in ("m", "t")}
    assert np.array_equal(n, place)
    assert np.array_equal(valid["m"], place % 3 != 0) and np.array_equal(m[valid["m"]], (place / 2)[valid["m"]])
    assert np.array_equal(valid["t"], place % 5 != 0)
    ends = [part.astype(np.int64) for part in answer.columns["t"].offsets]
    lengths = np.concatenate([np.diff(part) for part in ends])
    known = np.array([len(f"text {i}") for i in range(1_000)])[place % 1_000]
    assert np.array_equal(lengths, np.where(valid["t"], known, 0))
    shown = b"".join(answer.columns["t"].values)
    wanted = "".join(f"text {i % 1_000}" for i in place[valid["t"]].tolist()).encode()
    assert shown == wanted


def test_room_for_few_cells_gives_the_same(large: gs.Array, dump: Path, installed: Installed, tmp_path: Path) -> None:
    columns = [("t", 0, True), ("x", 8, False)]
    box = ("ints", ["7", "70000"])
    answers = dumped(
        dump,
        installed.environment(),
        [Asked(large.uri, "/", large.version, columns, ROW, *box, room) for room in (200, 1_000, 1 << 20)],
    )
    cells = [[answer.cells(*name) for name in (("t", 0), ("x", 8))] for answer in answers]
    assert cells[0] == cells[1] == cells[2] and len(cells[0][0]) == 10_000
    assert [len(answer.portions) for answer in answers][2] == 1 < len(answers[1].portions) < len(answers[0].portions)


def test_a_user_defined_filter_is_named(dump: Path, installed: Installed) -> None:
    case = ROOT / "vectors" / "gs1" / "user_filters"
    (_, _, asked), *_ = reads_of(case)
    done = subprocess.run([dump], input=asked.line().encode(), capture_output=True, env=installed.environment())
    assert done.returncode not in (0, os.EX_SOFTWARE) and b"test.xor" in done.stderr
