"""What a caller says of the dimensions of a new array: `dims=` as a mapping, `domain=`; room for longer texts."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone import cli, io

InputError = gs.errors.InputError
TABLE = pa.table({"LON": [1.5, 2.5], "t": pa.array([0, 3600], pa.timestamp("s")), "id": [7, 8], "v": [1, 2]})


def both(tmp_path: Path, stores: Stores, table: pa.Table, dims: Any, **options: Any) -> list[gs.Array]:
    """The array made of a table, and of a CSV file of it."""
    file = tmp_path / "t.csv"
    table.to_pandas().to_csv(file, index=False)
    return [
        io.from_arrow(stores("arrow"), table, dims, overwrite=True, **options),
        io.from_csv(stores("csv"), file, dims, overwrite=True, **options),
    ]


def test_domains_are_chosen(tmp_path: Path, stores: Stores) -> None:
    domain = {"LON": (-180, 180), "t": ("1970-01-01", None)}
    for a in both(tmp_path, stores, TABLE, ["LON", "t", "id"], domain=domain):
        assert a.domain[0] == (-180.0, 180.0) and a.domain[2] == (7, 8)
        assert [str(end) for end in a.domain[1]] == ["1970-01-01T00:00:00", "1970-01-01T01:00:00"]
        assert len(a.read()) == 2
    for options in ({"domain": {"LON": (0, 2)}}, {}):
        dims: Any = ["LON", "id"] if options else {"LON": (0, 2), "id": None}
        for load, word in (
            (io.from_arrow, "row 1, column 'LON': 2.5 is outside"),
            (io.from_csv, "line 3, column 'LON'"),
        ):
            source: Any = TABLE if load is io.from_arrow else tmp_path / "t.csv"
            with pytest.raises(InputError, match=word):
                load(stores("new"), source, dims, attrs=["v"], **options)
            assert not gs.exists(stores("new"))


def test_tiles_of_a_chosen_domain(store_uri: str) -> None:
    table = pa.table({"lon": [4.0], "n": [7], "v": [1]})
    a = io.from_arrow(store_uri, table, {"lon": (-180, 180), "n": (0, 999)})
    lon, n = a.schema.dims
    assert lon.tile == 90.0 and n.tile == 250  # one cell tells nothing: 4 x 4 tiles of the domain
    more = pa.table({"lon": [4.0, 5.0], "n": [7, 8], "v": [1, 2]})
    a = io.from_arrow(store_uri, more, {"lon": (-180, 180), "n": (0, 999)}, overwrite=True)
    assert a.schema.dims[0].tile == 0.25 and a.schema.dims[1].tile == 1  # where the data lies


def test_a_mapping_says_types_domains_and_dims(tmp_path: Path, stores: Stores) -> None:
    t = gs.Dim("t", ("1970-01-01", "1970-12-31"), np.timedelta64(1, "D"), "datetime64[s]")
    dims = {"id": "float64", "LON": (-180, 180), "t": t}
    for a in both(tmp_path, stores, TABLE, dims):
        assert a.dims == ("id", "LON", "t") and a.schema.dims[2] == t
        assert [dim.dtype for dim in a.schema.dims] == ["float64", "float64", "datetime64[s]"]
        assert a.domain[0] == (7.0, 8.0) and a.domain[1] == (-180.0, 180.0) and a.read()["v"].tolist() == [1, 2]
    (a, b) = both(tmp_path, stores, TABLE, {"id": np.int16, "LON": None}, domain={"id": (0, 100)})
    for made in (a, b):
        assert made.schema.dims[0].dtype == "int16" and made.domain == ((0, 100), (1.5, 2.5))
    made = io.from_arrow(stores("list"), TABLE, [gs.Dim("id", (0, 9)), "LON"])
    assert made.domain == ((0, 9), (1.5, 2.5))


def test_numbers_become_texts_if_asked(tmp_path: Path, store_uri: str) -> None:
    file = tmp_path / "plz.csv"
    file.write_text("plz,v\n01067,1\n99999,2\n")
    a = io.from_csv(store_uri, file, {"plz": "string"})
    assert a.read().to_numpy()["plz"].tolist() == ["01067", "99999"] and a.schema.dims[0].max_bytes == 32


def test_what_is_no_dimension_is_named(tmp_path: Path, stores: Stores) -> None:
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ({"LON": 3.5}, {}, "'LON' takes a datatype"),
        ({"LON": "flaot64"}, {}, "'LON' takes a datatype"),
        ({"LON": slice(0, 3)}, {}, "not a slice"),
        ({"LON": (1, 2, 3)}, {}, "a pair"),
        ({"LON": gs.Dim("lon", (0, 9))}, {}, "under 'LON'"),
        ({"LON": (0, 9)}, {"domain": {"LON": (0, 9)}}, "give one of them"),
        (["LON"], {"domain": {"lat": (0, 9)}}, "'lat', and the dimensions are 'LON'"),
        (["LON"], {"domain": [(0, 9)]}, "domain= is a dict"),
        ({"nope": (0, 9)}, {}, "no column 'nope'"),
        ({}, {}, "dims="),
        ("LON", {}, r"dims=\['LON'\]"),
    ]
    for dims, options, word in wrong:
        with pytest.raises(InputError, match=word):
            io.from_arrow(stores("a"), TABLE, dims, **options)
    with pytest.raises(gs.errors.GridstoneError, match="id"):
        io.from_arrow(stores("a"), TABLE, ["id"], domain={"id": ("x", "y")})
    with pytest.raises(InputError, match="dims= of this load is a list"):
        io.from_scipy(stores("a"), scipy.sparse.eye_array(3, format="csr"), {"a": None, "b": None})  # type: ignore[arg-type]
    texts = pa.table({"s": ["a"], "v": [1]})
    with pytest.raises(InputError, match="'s' is text, which has no domain"):
        io.from_arrow(stores("a"), texts, ["s"], domain={"s": ("a", "b")})
    assert not gs.exists(stores("a"))


def test_an_array_that_is_there_has_its_own_dimensions(tmp_path: Path, store_uri: str) -> None:
    kept: dict[str, Any] = {"attrs": ["v"]}
    io.from_arrow(store_uri, TABLE, ["LON", "id"], domain={"LON": (-180, 180)}, **kept)
    io.from_arrow(store_uri, TABLE, ["LON", "id"], domain={"LON": (-180, 180)}, **kept)
    io.from_arrow(store_uri, TABLE, {"id": "int64", "LON": (0, 10)}, **kept)
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (["LON", "t"], {}, "dims= names 'LON', 't', and the array has the dimensions 'LON', 'id'"),
        (None, {"domain": {"LON": (-200, 0)}}, "larger with resize"),
        (None, {"domain": {"t": (0, 1)}}, "'t', and the array has"),
        ({"LON": "float32", "id": None}, {}, "'LON' is float32, and in the array it is float64"),
        ({"LON": None, "id": gs.Dim("id", (0, 99))}, {}, "dims= says Dim"),
    ]
    for dims, options, word in wrong:
        with pytest.raises(InputError, match=word):
            io.from_arrow(store_uri, TABLE, dims, **options, **kept)
    assert len(gs.open(store_uri).read()) == 6


def test_domains_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    TABLE.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    uri = str(tmp_path / "a.gs")
    options = ["--domain", "LON=-180:180", "--domain", "t=1970-01-01..1971-01-01", "--domain", "id=0:"]
    assert cli.run(["load", uri, str(tmp_path / "t.csv"), "--dims", "LON,t,id", *options]) == 0
    a = gs.open(uri)
    assert a.domain[0] == (-180.0, 180.0) and a.domain[2] == (0, 8) and str(a.domain[1][1]).startswith("1971")
    capfd.readouterr()


@pytest.mark.parametrize(
    ("span", "ends"),
    [
        ("2026:2027", ("2026-01-01", "2027-12-31")),
        ("2026:", ("2026-01-01", "2026-03-01")),
        ("20260228:20270101", ("2026-02-28", "2027-01-01")),
        ("2026-02..2027", ("2026-02-01", "2027-12-31")),
        ("2026..2027-02", ("2026-01-01", "2027-02-28")),
    ],
)
def test_years_alone_are_years_in_domains_as_in_boxes(
    span: str, ends: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("t,n,v\n2026-02-28,2026,1\n2026-03-01,2030,2\n")
    uri = str(tmp_path / "a.gs")
    load = ["load", uri, str(tmp_path / "t.csv"), "--dims", "t,n", "--domain", "n=2026:2030", "--domain", f"t={span}"]
    assert cli.run(load) == 0, capfd.readouterr().err
    a = gs.open(uri)
    assert [str(end) for end in a.domain[0]] == list(ends) and a.domain[1] == (2026, 2030), (
        "of numbers they are numbers"
    )
    # A domain that is there is compared with what is asked for, in the same words.
    assert cli.run(load) == 0
    assert cli.run([*load[:-1], "t=2025:2026"]) == 2 and "resize" in capfd.readouterr().err
    capfd.readouterr()
    assert cli.run(["delete", uri, "--box", f"t={span}", "--dry-run"]) == 0
    assert capfd.readouterr().out.startswith("4 cells would go")


@given(st.lists(st.integers(0, 300), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_texts_have_room(lengths: list[int]) -> None:
    uri = "mem://room-of-texts"
    table = pa.table({f"s{at}": ["x" * length] for at, length in enumerate(lengths)} | {"v": [1]})
    words = sum(max(1, -(-length // 8)) for length in lengths)
    if words > 32:
        with pytest.raises(gs.errors.GridstoneError):
            io.from_arrow(uri, table, table.column_names[:-1], overwrite=True)
        return
    a = io.from_arrow(uri, table, table.column_names[:-1], overwrite=True)
    for length, dim in zip(lengths, a.schema.dims, strict=True):
        wanted = min(256, max(32, -(-2 * length // 8) * 8))
        assert dim.max_bytes is not None and length <= dim.max_bytes <= wanted and dim.max_bytes % 8 == 0
        if len(lengths) == 1:
            assert dim.max_bytes == wanted


def test_a_text_that_is_too_long_says_how_to_widen(tmp_path: Path, stores: Stores) -> None:
    file = tmp_path / "a.csv"
    file.write_text("s,v\nabc,1\n")
    io.from_csv(stores("a"), file, ["s"])
    file.write_text(f"s,v\nabc,1\n{'x' * 33},2\n")
    told = r"line 3, column 's': 'x+' is 33 bytes of UTF-8 long, the dimension takes 32; .*`gridstone copy .*"
    with pytest.raises(InputError, match=told + r"--max-bytes s=72`"):
        io.from_csv(stores("a"), file)
    b = gs.copy(stores("a"), stores("b"), max_bytes={"s": 72})
    io.from_csv(b.uri, file)
    assert len(gs.open(b.uri).read()) == 3
