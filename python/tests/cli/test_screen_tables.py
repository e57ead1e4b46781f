"""Tables fit the screen: those of every command beside kept ones, and the rules they are made by."""

import datetime as dt
import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import gridstone as gs
from gridstone.cli import output, tables, upkeep, values

KEPT = Path(__file__).parent / "tables"
"""A file for each width, written anew with GRIDSTONE_WRITE_TABLES=1, and looked at."""
SHIPS = 4


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a wide sparse array of all kinds of values."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    attrs = [
        gs.Attr("sog", "float32", nullable=True), gs.Attr("name", "string"), gs.Attr("day", "datetime64[D]"),
        gs.Attr("took", "timedelta64[ms]"), gs.Attr("raw", "bytes"), gs.Attr("ok", "bool"), gs.Attr("f", "float64"),
        *(gs.Attr(f"reading_{place}", "int32") for place in range(8)),
    ]  # fmt: skip
    dims = [gs.Dim("mmsi", (0, 10**9)), gs.Dim("t", ("2019-03-01", "2019-03-31"), dtype="datetime64[s]")]
    ships: dict[str, object] = {
        "sog": np.ma.MaskedArray(np.array([0.1, 12.5, 3, 1e20], "f4"), mask=[0, 1, 0, 0]),
        "name": ["a", "EVER GIVEN and a name that is longer than any screen", "x\x1b[31mred\nnew", "日本語の船"],
        "day": np.full(SHIPS, "2019-03-01", "M8[D]"),
        "took": np.array([0, 1_500, 86_400_000, -90_061_001], "m8[ms]"),
        "raw": [b"ab\xff", b"", b"x", b"y"],
        "ok": [True, False, True, False],
        "f": [0.1 + 0.2, 1e-300, -0.0, float("nan")],
        **{f"reading_{place}": np.arange(SHIPS, dtype="i4") * 10**place for place in range(8)},
    }
    times = np.arange("2019-03-01", "2019-03-05", dtype="M8[D]").astype("M8[s]")
    array = gs.create("w.gs", gs.Schema(dims, attrs, sparse=True))
    array.write_cells({"mmsi": [1, 2, 3, 999_999_999], "t": times}, ships, message="the first four ships of that year")
    array.delete(where="mmsi = 7")
    gs.tag("w.gs", "good", 2)
    group = gs.group("g.gs", mode="a")
    for path in ("harbours/of the north/of the sea", "b"):
        group.create(path, gs.Schema([gs.Dim("x", (0, 9), 5)], [gs.Attr("v", "int8")])).write(np.zeros(10, "int8"))
    return tmp_path


COMMANDS = [
    ["read", "w.gs"],
    ["read", "w.gs", "--attr", "name", "--attr", "f"],
    ["read", "w.gs", "--attr", "reading_1", "--limit", "2"],
    ["read", "w.gs", "--where", "mmsi > 5 and mmsi < 9"],
    ["read", "w.gs", "--all-columns"],
    ["sql", "select name, t, day, sog, f, ok from 'w.gs' order by mmsi"],
    ["query", "w.gs", "sog > 1"],
    ["aggregate", "w.gs", "n=count(*)", "the_longest_name_of_a_column=max(reading_7)", "--by", "ok", "--order", "ok"],
    ["info", "w.gs"],
    ["info", "g.gs"],
    ["ls", "g.gs", "-r"],
    ["history", "w.gs"],
    ["tag", "w.gs"],
    ["verify", "g.gs", "--recursive"],
    ["consolidate", "g.gs", "--recursive"],
]  # fmt: skip


def _drawn(call, here: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """What all commands print on a screen of a width; times of the clock are one time, and sizes are left out."""
    monkeypatch.setenv("COLUMNS", str(width))
    parts = []
    for arguments in COMMANDS:
        code, out, err = call(*arguments)
        assert code == 0, err
        parts.append(f"$ gridstone {' '.join(arguments)}\n{out}{err}")
    damage = {
        "object": "data/" + "0123456789abcdef" * 2,
        "versions": [(1, 2), (5, 9)],
        "cells": [{"array": "/harbours/of the north", "domain": [("0", "9"), ("2019-03-01", "2019-03-31")]}],
        "message": "the checksum of block 7 is 0x00000000, and 0x12345678 is written there",
    }
    upkeep._show_damage([damage])
    parts.append("$ damage\n" + call("tag", "g.gs")[1])
    text = "\n".join(parts).replace(str(here), "here")
    return re.sub(r"\b20[2-9]\d-\d\d-\d\d( +)\d\d:\d\d:\d\d", r"2031-12-24\g<1>12:00:00", text)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_of_all_commands_beside_kept_ones(call, here: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, kept = _drawn(call, here, width, monkeypatch), KEPT / f"{width}.txt"
    if os.environ.get("GRIDSTONE_WRITE_TABLES"):
        kept.write_text(drawn, encoding="utf-8")
    assert drawn == kept.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [25, 40, 60, 80, 120])
def test_no_line_of_cells_is_wider_than_the_screen(call, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in COMMANDS[:4] + COMMANDS[5:8]:
        _, out, _ = call(*arguments)
        assert max(cell_len(line) for line in out.splitlines()) <= width, arguments


def test_a_pipe_is_as_wide_as_the_content(call) -> None:
    _, out, err = call("read", "w.gs")
    assert "…" not in out and err == "" and "longer than any screen" in out and "reading_3" in out


@pytest.mark.parametrize("wrong", ["", "0", "-5", "wide", "²"])
def test_columns_of_the_environment_that_are_no_number_say_nothing(
    call, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", wrong)
    assert "…" not in call("read", "w.gs")[1]


@pytest.mark.parametrize(
    "command",
    [["read", "w.gs"], ["sql", "select * exclude (took) from 'w.gs'"], ["query", "w.gs", "mmsi > 0"],
     ["aggregate", "w.gs", *(f"max(reading_{n})" for n in range(8)), "--by", "name"]],
)  # fmt: skip
def test_all_columns_are_shown_where_that_is_asked_for(call, command: list[str], monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    _, out, err = call(*command)
    assert "…" in out and "--all-columns shows all" in err
    left_out = int(err.split(" of ")[0])
    _, whole, err = call(*command, "--all-columns")
    assert "…" not in whole and err == ""
    shown = out.splitlines()[0].split()
    assert left_out == len(whole.splitlines()[0].split()) - len(shown) + 1


def test_a_shell_names_its_own_way_to_all_columns(call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stdin", io.StringIO("select * exclude (took) from 'w.gs';"))
    assert ".mode line" in call("sql")[2]


def test_nothing_in_a_cell_acts_on_a_terminal(call) -> None:
    acting = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x202E, 0x2066)]
    schema = gs.Schema([gs.Dim("x", (0, 99))], [gs.Attr("s", "string"), gs.Attr("b", "bytes")], sparse=True)
    texts = [f"a{one}b" for one in acting]
    gs.create("t.gs", schema).write_cells({"x": range(len(texts))}, {"s": texts, "b": [one.encode() for one in texts]})
    for form in ([], ["--csv"], ["--json"]):
        code, out, err = call("read", "t.gs", "--limit", 99, *form)
        assert code == 0 and err == "", err
        if form != ["--csv"]:
            assert not set(out) & (set(acting) - {"\n"}), form
        if not form:
            assert out.count("\n") == len(texts) + 2


# Texts of values.


@given(st.floats(width=32), st.floats())
def test_floats_read_back(narrow: float, wide: float) -> None:
    (text,) = values.texts_of(pa.array([narrow], pa.float32()))
    assert np.float32(text).tobytes() == np.float32(narrow).tobytes() or np.isnan(narrow)
    (written,) = values.json_of(pa.array([narrow], pa.float32()))
    assert np.float32(written).tobytes() == np.float32(narrow).tobytes() or np.isnan(narrow)
    (text,) = values.texts_of(pa.array([wide], pa.float64()))
    assert float(text) == wide or np.isnan(wide)


@pytest.mark.parametrize(
    ("given_times", "unit", "wanted"),
    [
        (["2020-01-01", "2020-02-29"], "ns", ["2020-01-01", "2020-02-29"]),
        (["2020-01-01", "2020-02-29T00:00:01"], "ns", ["2020-01-01 00:00:00", "2020-02-29 00:00:01"]),
        (["2020-01-01T00:00:00.5", None], "us", ["2020-01-01 00:00:00.500", "null"]),
        (["1969-12-31T23:59:59.999999999"], "ns", ["1969-12-31 23:59:59.999999999"]),
        (["-2020-01-01", "9999-12-31"], "s", ["-2020-01-01", "9999-12-31"]),
        ([None], "s", ["null"]),
        ([], "s", []),
    ],
)
def test_times_of_a_column_have_one_form(given_times: list[str | None], unit: str, wanted: list[str]) -> None:
    array = pa.array(np.array([one or "NaT" for one in given_times], f"M8[{unit}]"))
    assert values.texts_of(array) == wanted
    assert values.texts_of(pa.chunked_array([array[:1], array[1:]], array.type)) == wanted


def test_times_with_a_zone_keep_it() -> None:
    array = pa.array([0], pa.timestamp("s", tz="Europe/Berlin"))
    assert values.texts_of(array) == ["1970-01-01 00:00:00+00:00"] == [
        one.replace("T", " ") for one in values.json_of(array)
    ]  # fmt: skip


@given(st.integers(-(2**62), 2**62), st.sampled_from(["s", "ms", "us", "ns"]))
def test_lengths_of_time_read_back(ticks: int, unit: str) -> None:
    (iso,) = values.json_of(pa.array([ticks], pa.duration(unit)))
    found = re.fullmatch(r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?", iso)
    assert found is not None, iso
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:5])
    per_second = values._PER_SECOND[unit]
    rest = int((found[6] or "").ljust(len(str(per_second)) - 1, "0") or 0)
    back = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * per_second + rest
    assert (-back if found[1] else back) == ticks
    (text,) = values.texts_of(pa.array([ticks], pa.duration(unit)))
    assert ("-" in text) == (ticks < 0) and not text.endswith(".")


def test_lists_strings_and_categories() -> None:
    lists = pa.array([["a, b", None], None, []], pa.list_(pa.string()))
    assert values.texts_of(lists) == ["['a, b', 'null']", "null", "[]"]
    assert values.texts_of(pa.array([[0.1, 2]], pa.list_(pa.float32(), 2))) == ["[0.1, 2.0]"]
    assert values.json_of(pa.array([[0.1, None], None], pa.list_(pa.float32(), 2))) == [[0.1, None], None]
    assert values.texts_of(pa.array(["a", None, "b"]).dictionary_encode()) == ["a", "null", "b"]
    assert values.texts_of(pa.nulls(2)) == ["null", "null"]


def test_lengths_of_time_are_iso_in_json(call) -> None:
    rows = [json.loads(line) for line in call("read", "w.gs", "--json")[1].splitlines()]
    assert [row["took"] for row in rows] == ["PT0S", "PT1.5S", "P1D", "-P1DT1H1M1.001S"]
    assert rows[0]["t"] == "2019-03-01T00:00:00" and rows[0]["sog"] == 0.1 and rows[3]["f"] is None
    made = output.plain([np.timedelta64(90, "m"), np.timedelta64(3, "M"), dt.timedelta(days=2), np.timedelta64("NaT")])
    assert made == ["PT1H30M", "P3M", "P2D", None]


def test_a_result_shows_itself_in_short_lines() -> None:
    shown = repr(gs.open("w.gs").read())
    assert "x\\x1b[31mred\\nnew" in shown and "EVER GIVEN and a name that is longer th…" in shown
    assert "\x1b" not in shown and shown.count("\n") == 17


# Layout.

_TEXT = st.text(st.sampled_from("ab 1日é"), max_size=30)


@given(
    st.lists(st.tuples(_TEXT, st.lists(_TEXT, min_size=3, max_size=3), st.booleans()), min_size=1, max_size=12),
    st.integers(1, 100),
)
def test_tables_have_all_rows_and_keep_to_the_width(given_columns, width: int) -> None:
    columns = [tables.Column(name, texts, is_right) for name, texts, is_right in given_columns]
    made = tables.cells(columns, width)
    assert len(made.lines) == 5 and 0 <= made.left_out < len(columns)
    if width >= 10:
        assert max(map(cell_len, made.lines)) <= width
    whole = tables.cells(columns, None)
    assert whole.left_out == 0 and "…" not in "".join(whole.lines)
    if max(map(cell_len, (line for line in whole.lines))) <= width and cell_len(whole.lines[1]) <= width:
        assert made == whole
    words = "".join("".join(tables.words(columns, width)).split())
    for column in columns:
        for text in column.texts:
            assert set("".join(text.split())) <= set(words)


def test_numbers_and_times_are_never_cut() -> None:
    number = tables.Column("a name longer than its values", ["123456789"], is_number=True, is_whole=True)
    text = tables.Column("t", ["x" * 200], is_number=False)
    made = tables.cells([number, text, number], 52)
    assert made.lines[2].split()[0] == made.lines[2].split()[-1] == "123456789" and made.left_out == 0
    assert "…" in made.lines[0] and "x…" in made.lines[2]


def test_wrapped_texts_lose_no_word() -> None:
    said = "the checksum of block 7 is wrong and what was there is gone"
    lines = tables.words(
        [tables.Column("n", ["1"], is_number=True), tables.Column("what", [said], is_number=False)], 30
    )
    assert " ".join(" ".join(lines[2:]).split()) == f"1 {said}" and max(map(len, lines)) <= 30


def test_an_output_of_ascii_has_tables_too(call, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    output.emit_cells(pa.table({"name": ["日本"], "v": [1.5]}), all_columns=False)
    sys.stdout.flush()
    assert raw.getvalue().decode("ascii").splitlines()[1].startswith("----") and b"\\u65e5" in raw.getvalue()


# What everybody types.


def test_the_first_cells_in_all_ways_of_asking(call) -> None:
    for asked in (["--limit", 2], ["-n", 2], ["--head", 2]):
        _, out, err = call("read", "w.gs", *asked)
        assert len(out.splitlines()) == 4 and err == "the first 2 cells; --limit shows more\n"
        assert len(call("read", "w.gs", "--attr", "f", "--csv", *asked)[1].splitlines()) == 3
        assert len(call("sql", "select mmsi from 'w.gs'", "--json", *asked)[1].splitlines()) == 2
    assert call("read", "w.gs", "--limit", SHIPS)[2] == ""
    assert call("read", "w.gs", "--limit", 0)[2] == "the first 0 cells; --limit shows more\n"


def test_a_file_gets_the_form_of_its_name(call) -> None:
    assert call("read", "w.gs", "--attr", "f", "-o", "o.csv") == (0, "", "")
    assert Path("o.csv").read_text().count("\n") == SHIPS + 1
    assert call("read", "w.gs", "--attr", "f", "--out", "o.jsonl")[0] == 0
    assert json.loads(Path("o.jsonl").read_text().splitlines()[0])["f"] == 0.1 + 0.2
    assert call("read", "w.gs", "--out", "o.arrow")[0] == 0
    assert pa.ipc.open_stream(Path("o.arrow").read_bytes()).read_all().num_rows == SHIPS
    for wrong in (["--out", "o.xlsx"], ["--csv", "--json"], ["--out", "o.csv", "--format", "table"]):
        code, out, err = call("read", "w.gs", *wrong)
        assert code == 2 and out == "" and err
    assert not Path("o.xlsx").exists()


# Work over all arrays.


@pytest.mark.parametrize("command", ["verify", "consolidate"])
def test_an_array_that_fails_holds_up_no_other(call, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = getattr(gs.Array, command)

    def failing(array: gs.Array, *given: object, **named: object) -> object:
        if array.path == "/b":
            raise gs.errors.StorageError("the disk is gone")
        return real(array, *given, **named)

    monkeypatch.setattr(gs.Array, command, failing)
    code, out, err = call(command, "g.gs", "--recursive", "--json")
    found = json.loads(out)["arrays"]
    assert (code, err) == (1, "") and [one["exit_code"] for one in found] == [1, 0]
    assert found[0]["error"] == {"kind": "Storage", "message": "the disk is gone", "exit_code": 1}
    assert "report" in found[1]
    code, out, _ = call(command, "g.gs", "-r")
    assert code == 1 and "error: the disk is gone" in out and "/harbours/of the north/of the sea" in out


def test_damage_in_one_array_of_many_is_3(call, here: Path) -> None:
    for name in ("one", "two"):
        gs.array("d.gs", np.random.default_rng(0).random(20_000), path=f"/{name}")
    files = [path for path in (here / "d.gs").rglob("*") if path.is_file() and path.stat().st_size > 50_000]
    content = bytearray(files[0].read_bytes())
    content[len(content) // 2] ^= 0xFF
    files[0].write_bytes(content)
    code, out, _ = call("verify", "d.gs", "--recursive", "--json")
    assert code == 3 and sorted(one["exit_code"] for one in json.loads(out)["arrays"]) == [0, 3]
    code, out, _ = call("verify", "d.gs", "--recursive")
    assert code == 3 and "damaged: " in out and "sound" in out


def test_where_recursion_begins(call) -> None:
    _, out, _ = call("verify", "g.gs", "-r", "--path", "/harbours", "--json")
    assert [one["path"] for one in json.loads(out)["arrays"]] == ["/harbours/of the north/of the sea"]
    _, out, _ = call("verify", "w.gs", "-r", "--json")
    assert [one["path"] for one in json.loads(out)["arrays"]] == ["/"]
    assert call("verify", "g.gs", "-r", "--path", "/no")[0] == 4
    assert call("verify", "g.gs", "-r", "--store")[0] == call("consolidate", "w.gs", "-r", "--box", "mmsi=1:2")[0] == 2
    gs.group("empty.gs", mode="a")
    assert call("verify", "empty.gs", "-r")[1] == "empty.gs holds no array at or below /\n"


def test_a_vacuum_of_the_store_has_the_shape_of_the_others(call, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = json.loads(call("vacuum", "g.gs", "--dry-run", "--json", "--keep", "0s")[1])
    code, out, err = call("vacuum", "g.gs", "--dry-run", "--json", "--recursive", "--keep", "0s")
    (one,) = json.loads(out)["arrays"]
    assert (code, err) == (0, "") and one == {"path": "/", "exit_code": 0, "report": plain}
    other = json.loads(call("verify", "g.gs", "--recursive", "--json")[1])["arrays"]
    assert {frozenset(each) for each in other} == {frozenset(one)}
    code, out, _ = call("vacuum", "g.gs", "--dry-run", "-r", "--keep", "0s")
    assert code == 0 and out.splitlines()[0].split() == ["array", "versions", "objects", "bytes", "outcome"]
    assert call("vacuum", "no.gs", "-r", "--json")[0] == 4

    def broken(*_: object, **__: object) -> None:
        raise gs.StorageError("the disk is gone")

    monkeypatch.setattr("gridstone.stores.group.Group.vacuum", broken)
    code, out, _ = call("vacuum", "g.gs", "--dry-run", "-r", "--json")
    assert code == 1 and json.loads(out)["arrays"] == [
        {"path": "/", "exit_code": 1, "error": {"kind": "Storage", "message": "the disk is gone", "exit_code": 1}}
    ]
