"""CSV as it comes: marks, words, times, lines that are none, and rows that cannot be loaded."""

import bz2
import csv
import gzip
import io as text_io
import lzma
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone.io import Rejected, from_csv, to_csv
from gridstone.io.csv import rows

BLOCKS = [1, 5, 9, 1 << 20]


def put(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def columns(array: gs.Array) -> dict[str, list[Any]]:
    return {name: values.tolist() for name, values in array.read().to_numpy().items()}


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("x|v\n1|'a|b'\n2|'it''s'\n", {"delimiter": "|", "quote": "'"}, ["a|b", "it's"]),
        ('x,v\n1,5" disk\n2,"\n', {"quote": None}, ['5" disk', '"']),
        ('x,v\n1,"a \\" b"\n2,c\\,d\n', {"escape": "\\"}, ['a " b', "c,d"]),
        ('x,v\n1,"a\\\nb"\n2,"c\nd"\n', {"escape": "\\"}, ["a\nb", "c\nd"]),
        ('x,v\n1,"a\\\\"\n2,"b"\n', {"escape": "\\"}, ["a\\", "b"]),
        ("x;v\n1;0,5\n2;-1,25\n", {"delimiter": ";", "decimal": ","}, [0.5, -1.25]),
        ('#c\nx,v\n#"odd\n1,#a\n#\n2,b#\n#end', {"comment": "#"}, ["#a", "b#"]),
        ('x,v\n1,"a\n#no comment\n"\n#comment\n2,b\n', {"comment": "#"}, ["a\n#no comment\n", "b"]),
        ("1,a\n2,b\n", {"header": False, "names": ["x", "v"]}, ["a", "b"]),
        ("old,names\n1,a\n2,b\n", {"names": ["x", "v"]}, ["a", "b"]),
        ('pre,amble\n"\nx,v\n1,a\n2,b\n', {"skip_lines": 2}, ["a", "b"]),
        ("\n\nx,v\n\n1,a\n\n2,b\n\n", {}, ["a", "b"]),
        ("x,v\n1,NA\n2,null\n", {"nulls": ["NA", "null", ""]}, [None, None]),
        ("x,v\n1,ja\n2,nein\n", {"true_words": ["ja"], "false_words": ["nein"]}, [True, False]),
        ("x,v\r\n1,a\r\n2,b", {}, ["a", "b"]),
    ],
)
def test_marks(
    tmp_path: Path, store_uri: str, text: str, options: dict[str, Any], expected: list[Any], block_bytes: int
) -> None:
    found = columns(from_csv(store_uri, put(tmp_path, text), dims=["x"], block_bytes=block_bytes, **options))
    assert found["x"] == [1, 2] and found["v"] == expected


def test_columns_without_names(tmp_path: Path, store_uri: str) -> None:
    array = from_csv(store_uri, put(tmp_path, "1,2\n3,4\n"), dims=["column_1"], header=False)
    assert columns(array) == {"column_1": [1, 3], "column_2": [2, 4]}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"delimiter": ";;"}, "delimiter is one ASCII character"),
        ({"delimiter": "\n"}, "delimiter is one ASCII character"),
        ({"quote": ","}, "must differ"),
        ({"comment": "é"}, "comment is one"),
        ({"decimal": None}, "decimal is one"),
        ({"decimal": ","}, "must differ"),
        ({"names": ["x", "x"]}, "two columns are named 'x'"),
        ({"names": ["x"]}, "2 columns, but names= has 1"),
        ({"skip_lines": -1}, "skip_lines"),
        ({"timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"on_error": "ignore"}, "on_error"),
        ({"on_error": "collect"}, "rejected="),
        ({"rejected": []}, "rejected="),
        ({"on_error": "collect", "rejected": 3}, "rejected="),
    ],
)
def test_options_that_contradict(tmp_path: Path, store_uri: str, options: dict[str, Any], word: str) -> None:
    with pytest.raises(gs.errors.InputError, match=word):
        from_csv(store_uri, put(tmp_path, "x,v\n1,2\n"), dims=["x"], **options)
    assert not gs.exists(store_uri)


@pytest.mark.parametrize("end", ["gz", "bz2", "xz", "zst", "lz4"])
def test_compressed(tmp_path: Path, stores: Stores, store_uri: str, end: str) -> None:
    text = b"x,v\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(5000))
    plain = from_csv(store_uri, put(tmp_path, text), dims=["x"])
    assert to_csv(plain, tmp_path / f"o.csv.{end}") == 5000
    file = tmp_path / f"o.csv.{end}"
    assert file.stat().st_size < len(text)
    back = from_csv(stores("b"), file, dims=["x"], block_bytes=777)
    assert columns(back) == columns(plain)
    unpack = {"gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}.get(end)
    assert unpack is None or unpack(file.read_bytes()).count(b"\n") == 5001
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(gs.errors.InputError, match="decompressed"):
        from_csv(stores("c"), file, dims=["x"])


def test_times(tmp_path: Path, stores: Stores, store_uri: str) -> None:
    text = "x,t,u,d\n1,31.12.2025 23:30,2026-01-01T00:00:00,24.12.2025\n"
    text += "2,01.07.2026 00:15,2026-07-01T12:00:00,01.01.2026\n"
    options: dict[str, Any] = {"times": ["%d.%m.%Y %H:%M", "%d.%m.%Y"]}
    array = from_csv(store_uri, put(tmp_path, text), dims=["x"], **options)
    assert {a.name: a.dtype for a in array.schema.attrs} == dict.fromkeys("tud", "datetime64[s]")
    local = from_csv(stores("l"), put(tmp_path, text), dims=["x"], timezone="Europe/Berlin", **options)
    assert local.read()["t"].astype(str).tolist() == ["2025-12-31T22:30:00", "2026-06-30T22:15:00"]
    assert local.read()["u"].astype(str).tolist() == ["2025-12-31T23:00:00", "2026-07-01T10:00:00"]
    attrs = [gs.Attr("t", "datetime64[ms]"), gs.Attr("u", "datetime64[us]"), gs.Attr("d", "datetime64[D]")]
    schema = gs.Schema([gs.Dim("x", (0, 9))], attrs, sparse=True)
    given = from_csv(stores("g"), put(tmp_path, text), schema=schema, **options)
    assert given.read()["d"].astype(str).tolist() == ["2025-12-24", "2026-01-01"]
    # A day is the same day in any zone, with words for its form and without.
    for form, first, second in ((options, "24.12.2025", "01.01.2026"), ({}, "2025-12-24", "2026-01-01")):
        days = put(tmp_path, f"x,d\n1,{first}\n2,{second}\n")
        schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("d", "datetime64[D]")], sparse=True)
        made = from_csv(stores(f"d{len(form)}"), days, schema=schema, timezone="Europe/Berlin", **form)
        assert made.read()["d"].astype(str).tolist() == ["2025-12-24", "2026-01-01"]
    # Offsets in the text win over the zone.
    zoned = put(tmp_path, "x,t\n1,2026-01-01T00:00:00+05:00\n2,2026-01-01T00:00:00Z\n")
    found = from_csv(stores("z"), zoned, dims=["x"], timezone="Europe/Berlin").read()["t"]
    assert found.astype(str).tolist() == ["2025-12-31T19:00:00", "2026-01-01T00:00:00"]


def test_dates_far_away(tmp_path: Path, stores: Stores, store_uri: str) -> None:
    """Beyond what nanoseconds of 64 bits reach; and dates beside times in one column."""
    text = "d,v\n0001-01-01,1\n9999-12-31,2\n2026-01-01,3\n"
    for block_bytes in (1, 1 << 20):
        array = from_csv(store_uri, put(tmp_path, text), dims=["d"], overwrite=True, block_bytes=block_bytes)
        assert array.domain == ((np.datetime64("0001-01-01"), np.datetime64("9999-12-31")),)
        assert columns(array)["v"] == [1, 3, 2]
    mixed = put(tmp_path, "d,v\n9999-12-31,1\n2026-01-01T00:00:00.000000001,2\n")
    with pytest.raises(gs.errors.InputError, match="column 'd'"):
        from_csv(stores("m"), mixed, dims=["d"], block_bytes=1)


@pytest.mark.parametrize("moment", ["2026-03-29T02:30:00", "2026-10-25T02:30:00"])
def test_times_that_clocks_skip_or_repeat(tmp_path: Path, stores: Stores, store_uri: str, moment: str) -> None:
    file = put(tmp_path, f"x,t\n1,2026-01-01T00:00:00\n2,{moment}\n")
    with pytest.raises(gs.errors.InputError, match=r"line 3, column 't'.*Europe/Berlin"):
        from_csv(store_uri, file, dims=["x"], timezone="Europe/Berlin")
    kept = from_csv(store_uri, file, dims=["x"], timezone="Europe/Berlin", on_error="skip")
    assert kept.stats["rows_rejected"] == 1 and columns(kept)["x"] == [1]
    assert len(from_csv(stores("u"), file, dims=["x"], timezone="UTC").read()) == 2


SCHEMA = gs.Schema(
    [gs.Dim("x", (0, 9)), gs.Dim("y", (0.0, 1.0), 0.5, "float64")],
    [gs.Attr("v", "int8"), gs.Attr("s", "string"), gs.Attr("n", "float32", nullable=True)],
    sparse=True, duplicates=True,
)  # fmt: skip
MESSY = (
    b"x,y,v,s,n\n"
    b"1,0.5,1,a,0.5\n"  # 2: good
    b"1,0.5,1,a\n"  # 3: too short
    b"2,0.5,200,b,1\n"  # 4: v too large
    b'2,0.5,2,"two\nlines",\n'  # 5 and 6: good
    b"\n"
    b'4,0.5,x,"two\nlines",1\n'  # 8 and 9: v is no number
    b"5,,1,c,1\n"  # 10: no y
    b"6,nan,1,c,1\n"  # 11: NaN
    b"70,0.5,1,c,1\n"  # 12: outside
    b"7,0.5,,c,1\n"  # 13: v is null
    b"8,0.5,1,\xff,1\n"  # 14: not UTF-8
    b"9,0.5,1,,zz\n"  # 15: n is no number
    b"9,1.0,-5,z,\n"  # 16: good
    b"9,1.0,-5,z,,,\n"  # 17: too long
)
BAD_LINES = [3, 4, 8, 10, 11, 12, 13, 14, 15, 17]
BAD_COLUMNS = ["", "v", "v", "y", "y", "x", "v", "s", "n", ""]


@pytest.mark.parametrize("block_bytes", [1, 30, 80, 1 << 20])
def test_rows_are_collected(tmp_path: Path, store_uri: str, block_bytes: int, caplog: pytest.LogCaptureFixture) -> None:
    rejected: list[Rejected] = []
    array = from_csv(
        store_uri, put(tmp_path, MESSY), schema=SCHEMA, on_error="collect", rejected=rejected, block_bytes=block_bytes
    )
    assert array.stats["rows_rejected"] == 10 and "10 rows" in caplog.text
    assert columns(array)["x"] == [1, 2, 9] and columns(array)["s"] == ["a", "two\nlines", "z"]
    assert [row.line for row in rejected] == BAD_LINES and [row.column for row in rejected] == BAD_COLUMNS
    assert rejected[2].text == '4,0.5,x,"two\nlines",1' and "'x' is no int8" in rejected[2].reason
    assert "4 values" in rejected[0].reason and "UTF-8" in rejected[7].reason and rejected[0].file.endswith("a.csv")
    # With an array that is there, and one that is replaced: counted once, though there are two passes.
    again: list[Rejected] = []
    file = tmp_path / "a.csv"
    from_csv(store_uri, file, schema=SCHEMA, on_error="collect", rejected=again, block_bytes=block_bytes, grow=False)
    assert again == rejected
    again.clear()
    made = from_csv(store_uri, file, schema=SCHEMA, overwrite=True, on_error="collect", rejected=again)
    assert again == rejected and made.stats["rows_rejected"] == 10 and len(made.read()) == 3


def test_rows_are_written_to_a_file(tmp_path: Path, store_uri: str) -> None:
    target = tmp_path / "bad.csv"
    from_csv(store_uri, put(tmp_path, MESSY), schema=SCHEMA, on_error="collect", rejected=target)
    with target.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == list(Rejected._fields) and [int(row[1]) for row in rows[1:]] == BAD_LINES
    from_csv(
        store_uri, put(tmp_path, "x,y,v,s,n\n"), schema=SCHEMA, overwrite=True, on_error="collect", rejected=target
    )
    assert target.read_text().count("\n") == 1


def test_rows_are_skipped_and_counted(tmp_path: Path, store_uri: str) -> None:
    array = from_csv(store_uri, [put(tmp_path, MESSY), put(tmp_path, MESSY, "b.csv")], schema=SCHEMA, on_error="skip")
    assert array.stats["rows_rejected"] == 20 and len(array.read()) == 6
    with pytest.raises(gs.errors.InputError, match=r"a\.csv, line 3"):
        from_csv(store_uri, put(tmp_path, MESSY))


def test_rows_of_an_inferred_schema(tmp_path: Path, stores: Stores, store_uri: str) -> None:
    text = "x,v\n1,2\n,3\n4\n5,six\n7,8,9\n"
    rejected: list[Rejected] = []
    for budget in ("1GiB", "1MiB"):
        rejected.clear()
        options: dict[str, Any] = {"on_error": "collect", "rejected": rejected, "context": gs.Context(budget)}
        array = from_csv(store_uri, put(tmp_path, text), dims=["x"], overwrite=True, **options)
        assert columns(array) == {"x": [1, 5], "v": ["2", "six"]} and array.domain == ((1, 5),)
        assert [(row.line, row.column) for row in rejected] == [(3, "x"), (4, ""), (6, "")]
    with pytest.raises(gs.errors.InputError, match="no rows"):
        from_csv(stores("n"), put(tmp_path, "x,v\n,1\n"), dims=["x"], on_error="skip")
    assert not gs.exists(stores("n"))


def test_long_values_and_carriage_returns(tmp_path: Path, store_uri: str) -> None:
    """Values longer than Python's reader takes by itself, and lines that end within values in every way."""
    rejected: list[Rejected] = []
    long = "z" * 300_000
    text = (
        f'x,y,v,s,n\r\n1,0.5,1,{long},\r\n2,0.5,1,"a\rb\r\nc\nd",\n,0.5,1,{long},\n3,0.5,no,"\r\r\n",\n4,0.5,1,"\r",\n'
    )
    limit = csv.field_size_limit()
    for block_bytes in (7, 1 << 20):
        rejected.clear()
        array = from_csv(
            store_uri, put(tmp_path, text), schema=SCHEMA, overwrite=True, on_error="collect", rejected=rejected,
            block_bytes=block_bytes,
        )  # fmt: skip
        assert columns(array)["s"] == [long, "a\rb\r\nc\nd", "\r"]
        assert [(row.line, row.column) for row in rejected] == [(7, "x"), (8, "v")]
        assert len(rejected[0].text) == 1000
        with pytest.raises(gs.errors.InputError, match=r"line (7, column 'x'|8, column 'v')"):
            from_csv(store_uri, put(tmp_path, text), block_bytes=block_bytes)
    assert csv.field_size_limit() == limit
    with pytest.raises(gs.errors.InputError, match="no line feed"):
        from_csv(store_uri, put(tmp_path, text.replace("\n", "\r") * 4), block_bytes=7)


values = st.one_of(st.integers(-200, 200).map(str), st.text("ab\"',;#\\\r\n 0.-", max_size=6), st.just(""))


@given(
    rows=st.lists(st.lists(values, min_size=1, max_size=4), max_size=25),
    block_bytes=st.sampled_from([1, 13, 64, 1 << 20]),
    marks=st.sampled_from(
        [(",", '"', None, None), (";", "'", None, None), (",", '"', "#", None), (",", '"', None, "\\")]
    ),
)
def test_what_is_loaded_and_what_is_left_out_are_all_rows(
    tmp_path: Path,
    stores: Stores,
    rows: list[list[str]],
    block_bytes: int,
    marks: tuple[str, str, str | None, str | None],
) -> None:
    delimiter, quote, comment, escape = marks
    text = text_io.StringIO()
    writer = csv.writer(
        text, delimiter=delimiter, quotechar=quote, quoting=csv.QUOTE_ALL, lineterminator="\n", escapechar=escape,
        doublequote=escape is None,
    )  # fmt: skip
    writer.writerow(["x", "v", "s"])
    writer.writerows(rows)
    schema = gs.Schema(
        [gs.Dim("x", (0, 150))], [gs.Attr("v", "int8"), gs.Attr("s", "string")], sparse=True, duplicates=True
    )
    uri, rejected = stores(), []
    try:
        options: dict[str, Any] = {"delimiter": delimiter, "quote": quote, "comment": comment, "rejected": rejected}
        options["escape"] = escape
        file = put(tmp_path, text.getvalue())
        array = from_csv(uri, file, schema=schema, on_error="collect", block_bytes=block_bytes, **options)
        found = columns(array)
    finally:
        if gs.exists(uri):
            gs.delete(uri)

    def good(row: list[str]) -> bool:
        if len(row) != 3:
            return False
        try:
            int_of = [
                pa.array([item]).cast(kind)[0].as_py() for item, kind in zip(row, (pa.int64(), pa.int8()), strict=False)
            ]
        except pa.ArrowInvalid:
            return False
        return 0 <= int_of[0] <= 150

    expected = sorted((int(row[0]), int(row[1]), row[2]) for row in rows if good(row))
    assert sorted(zip(found["x"], found["v"], found["s"], strict=True)) == expected
    assert len(rejected) == len(rows) - len(expected)


@given(st.text(alphabet="\r\na", max_size=12).map(str.encode), st.integers(1, 5), st.integers(0, 12))
def test_lines_are_counted_whatever_ends_them(data: bytes, portion: int, end: int) -> None:
    end = min(end, len(data))
    with patch.object(rows, "_PORTION", portion):
        found = rows.line_breaks(data, end)
    assert found == data[:end].count(b"\n") + data[:end].count(b"\r") - data[:end].count(b"\r\n")


JUDGED: dict[str, tuple[list[str], list[str]]] = {
    "uint8[3]": (
        ["[1, 2, 3]", "[0,0,255]"],
        ["[1, 2", "[1, 2]", "[1, 2, 300]", "[1, 2, null]", "7", "{}", "[[1, 2, 3]]"],
    ),
    "float32[2,2]": (["[[1, NaN], [0.5, -Infinity]]"], ["[1, 2, 3, 4]", '[[1, "a"], [1, 2]]', "null", "[" * 9_000]),
    "list[int16]": (["[]", "[1]", "[1, 2, 3]"], ["[1, 2", "x", "[1.5]", "[40000]", "[[1]]", '["1"]', "true"]),
    "list[bool]": (["[true, false]"], ["[1, 2]", "[true, 0.5]", "[maybe]"]),
    "complex64": (["1+2j", "[1, 2]", "-3j"], ["1+2i", "[1]", "[1, 2, 3]", "j+"]),
    "list[complex128]": (["[[1, 2], [3, 4]]"], ["[1+2j]", "[[1]]"]),
    "bytes[2]": (["ab", "a"], ["abc", "0123456789"]),
    "float16": (["0.5", "65504"], ["1e6", "-70000"]),
    "datetime64[h]": (["2026-03-01T05:00"], ["2026-03-01T05:30"]),
    "datetime64[D]": (["2026-03-01", "2026-03-02 00:00:00"], ["2026-03-01T05:30", "2026-03-01 00:00:01"]),
}


@pytest.mark.parametrize("dtype", JUDGED)
@pytest.mark.parametrize("nullable", [False, True], ids=["plain", "nullable"])
@pytest.mark.parametrize("block_bytes", [40, 1 << 20])
def test_rows_whose_text_makes_no_value(
    tmp_path: Path, stores: Stores, store_uri: str, dtype: str, nullable: bool, block_bytes: int
) -> None:
    """Vectors, lists and others that Arrow has no text for: told by line and column, left out where they may be."""
    good, wrong = JUDGED[dtype]
    texts = [*good, *wrong, *good, *wrong[:1], *([""] if nullable else []), *good]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerows([["x", "v", "n"], *([i, text, i] for i, text in enumerate(texts))])
    schema = gs.Schema(
        [gs.Dim("x", (0, len(texts) - 2))], [gs.Attr("v", dtype, nullable=nullable), gs.Attr("n", "int8")], sparse=True
    )
    bad = [i for i, text in enumerate(texts) if text in wrong]
    outside = [len(texts) - 1]
    rejected: list[Rejected] = []
    array = from_csv(
        store_uri, tmp_path / "a.csv", schema=schema, on_error="collect", rejected=rejected, block_bytes=block_bytes
    )
    assert array.stats["rows_rejected"] == len(bad) + 1
    assert [(row.line, row.column) for row in rejected] == [(i + 2, "v") for i in bad] + [(i + 2, "x") for i in outside]
    assert [row.reason for row in rejected if row.column == "v" and f" is no {dtype}; " not in row.reason] == []
    left = [i for i in range(len(texts)) if i not in bad + outside]
    assert array.read()["x"].tolist() == left == array.read()["n"].tolist()
    if nullable:
        assert array.read(where="v is null")["x"].tolist() == [texts.index("")]
    skipped = from_csv(stores("s"), tmp_path / "a.csv", schema=schema, on_error="skip", block_bytes=block_bytes)
    assert skipped.stats["rows_rejected"] == len(bad) + 1 and len(skipped.read()) == len(left)
    with pytest.raises(gs.errors.InputError, match=rf"a\.csv, line {bad[0] + 2}, column 'v': .* is no "):
        from_csv(stores("f"), tmp_path / "a.csv", schema=schema, block_bytes=block_bytes)
    assert not gs.exists(stores("f"))


def test_a_row_is_rejected_once(tmp_path: Path, store_uri: str) -> None:
    """What is wrong in several columns, or in a dimension and an attribute, is one row; coordinates are judged too."""
    schema = gs.Schema(
        [gs.Dim("t", ("2026-01-01T00", "2026-12-31T23"), dtype="datetime64[h]")],
        [gs.Attr("v", "list[int8]"), gs.Attr("z", complex)], sparse=True,
    )  # fmt: skip
    text = (
        "w,t,v,z\n1,2026-01-01T01:30,[1,1j\n2,2026-01-01T02:30,[1],1j\n3,2027-01-01T00:00,[],x\n"
        '4,2026-01-01T04:00,"[1, 2]",[1]\n'
        "5,2026-01-01T05:00,,1+1j\n"
    )
    rejected: list[Rejected] = []
    array = from_csv(store_uri, put(tmp_path, text), schema=schema, on_error="collect", rejected=rejected)
    assert [(row.line, row.column) for row in rejected] == [(2, "t"), (3, "t"), (4, "z"), (5, "z")]
    assert [v.tolist() for v in array.read()["v"]] == [[]] and array.read()["z"].tolist() == [1 + 1j]


def test_a_place_for_rejected_rows_that_cannot_be_written_is_told_first(tmp_path: Path) -> None:
    file, uri = put(tmp_path, MESSY), tmp_path / "a.gs"
    for target, kind, word in [
        (tmp_path / "missing" / "rows.csv", gs.errors.NotFoundError, "create it first"),
        (tmp_path, gs.errors.InputError, "is a folder"),
        (tmp_path / ("x" * 300), gs.errors.StorageError, "cannot be written"),
    ]:
        with pytest.raises(kind, match=word):
            from_csv(uri, file, schema=SCHEMA, on_error="collect", rejected=target)
        assert not gs.exists(uri)
    good = tmp_path / "rows.csv"
    from_csv(uri, file, schema=SCHEMA, on_error="collect", rejected=good)
    assert good.exists() and not list(tmp_path.glob("*.part"))


def test_rejected_rows_that_cannot_be_written_in_the_end(
    tmp_path: Path, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, uri = put(tmp_path, MESSY), stores("a")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gridstone.io.rejects._write", full)
    with pytest.raises(gs.errors.StorageError, match="is loaded and committed"):
        from_csv(uri, file, schema=SCHEMA, on_error="collect", rejected=tmp_path / "rows.csv")
    assert gs.open(uri).version > 1
