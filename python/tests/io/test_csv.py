"""CSV in and out: inference, real files, and bad files that name the line."""

import gzip
import lzma
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone import io
from gridstone.io import from_csv, read_csv, to_csv


def put(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


SMALL = gs.Schema([gs.Dim("x", (0, 9)), gs.Dim("y", (0, 9))], [gs.Attr("v", "int16")], sparse=True)


def test_types_are_inferred(tmp_path: Path, store_uri: str) -> None:
    text = (
        "x,y,i,f,b,d,t,u,s,e\n"
        "1,-0.5,1,1,true,2026-01-01,2026-01-01T00:00:00,2026-01-01 00:00:00.5,a,\n"
        '3,2.5,,2.5,false,2026-01-02,2026-01-02T00:00:00,2026-01-01 00:00:01,"b\nc",\n'
    )
    array = from_csv(store_uri, put(tmp_path, text), dims=["x", "y"])
    assert {a.name: (a.dtype, a.nullable) for a in array.schema.attrs} == {
        "i": ("int64", True),
        "f": ("float64", False),
        "b": ("bool", False),
        "d": ("datetime64[D]", False),
        "t": ("datetime64[s]", False),
        "u": ("datetime64[us]", False),
        "s": ("string", False),
        "e": ("string", True),
    }
    assert array.domain == ((1, 3), (-0.5, 2.5)) and array.schema.duplicates
    found = array.read().to_numpy()
    assert found["s"].tolist() == ["a", "b\nc"] and found["i"].mask.tolist() == [False, True]
    assert len([v for v in array.history() if any(o["op"] != "create" for o in v.operations)]) <= 2


@pytest.mark.parametrize("block_bytes", [1, 7, 8, 1 << 20])
def test_types_widen_from_block_to_block(tmp_path: Path, store_uri: str, block_bytes: int) -> None:
    text = "x,n,s,z\n1,1,1,1\n2,2.5,true,2026-01-01\n3,,x,2026-01-01T05:00:00\n"
    array = from_csv(store_uri, put(tmp_path, text), dims=["x"], block_bytes=block_bytes)
    assert [a.dtype for a in array.schema.attrs] == ["float64", "string", "string"]
    found = array.read().to_numpy()
    assert found["s"].tolist() == ["1", "true", "x"] and found["n"].tolist() == [1, 2.5, None]
    assert found["z"].tolist() == ["1", "2026-01-01", "2026-01-01T05:00:00"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("\ufeffx,y,v\r\n1,2,3\r\n4,5,6\r\n", {}),
        ("v;y;x\n3;2;1\n6;5;4", {"delimiter": ";"}),
        ('"x","y","v"\n"1",2,3\n\n4,5,6\n\n', {}),
        ("x,y,v\n1,2,3\n4,5,6\n".encode("utf-16"), {"encoding": "utf-16"}),
        ("x,w,y,v\n1,é,2,3\n4,é,5,6\n".encode("latin1"), {"encoding": "latin1", "attrs": ["v"]}),
    ],
)
def test_dialects(tmp_path: Path, store_uri: str, text: str | bytes, options: dict[str, object]) -> None:
    found = from_csv(store_uri, put(tmp_path, text), dims=["x", "y"], **options).read().to_numpy()
    assert {n: v.tolist() for n, v in found.items()} == {"x": [1, 4], "y": [2, 5], "v": [3, 6]}


def test_lengths_of_time_are_ticks_of_their_own_unit(tmp_path: Path, stores: Stores) -> None:
    dim = gs.Dim("d", (np.timedelta64(-9, "h"), np.timedelta64(9, "h")), dtype="timedelta64[h]")
    known = [np.timedelta64(5, "m"), np.timedelta64(7, "m")]
    attrs = [gs.Attr("w", "timedelta64[D]", nullable=True), gs.Attr("c", "timedelta64[m]", categories=known)]
    attrs.append(gs.Attr("t", "timedelta64[ms]"))
    a = gs.create(stores("a"), gs.Schema([dim], attrs, sparse=True))
    days = np.ma.MaskedArray(np.array([4, 5], "m8[D]"), [False, True])
    values = {"w": days, "c": np.array([7, 5], "m8[m]"), "t": np.array([9, "NaT"], "m8[ms]")}
    a.write_cells({"d": np.array([-2, 3], "m8[h]")}, values)
    to_csv(a, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().split() == ['"d","w","c","t"', "-2,4,7,9", "3,,5,"]
    back = from_csv(stores("b"), tmp_path / "a.csv", schema=a.schema)
    assert back.read().to_arrow().equals(a.read().to_arrow()) and np.isnat(back.read()["t"][1])


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_times_of_every_unit_come_back(tmp_path: Path, stores: Stores, unit: str) -> None:
    kind = f"datetime64[{unit}]"
    times = np.array(["1961-05-04", "2020-02-29", "1970-01-01"], "datetime64[D]").astype(kind)
    attrs = [gs.Attr("v", kind), gs.Attr("n", kind, nullable=True), gs.Attr("c", kind, categories=times[::-1])]
    a = gs.create(stores("a"), gs.Schema([gs.Dim("t", (times.min(), times.max()), dtype=kind)], attrs, sparse=True))
    a.write_cells({"t": times}, {"v": times[::-1], "n": np.ma.MaskedArray(times, [True, False, False]), "c": times})
    to_csv(a, tmp_path / "a.csv")
    back = from_csv(stores("b"), tmp_path / "a.csv", schema=a.schema)
    assert back.read().to_arrow().equals(a.read().to_arrow())


def test_dates(tmp_path: Path, stores: Stores) -> None:
    """Days are written as days; midnight behind them is read, any other time refused; too far away is refused too."""
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "datetime64[D]")], sparse=True)
    a = gs.create(stores("a"), schema)
    a.write_cells({"x": [1, 2]}, {"v": np.array(["2026-01-31", "1969-12-31"], "datetime64[D]")})
    to_csv(a, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == '"x","v"\n1,2026-01-31\n2,1969-12-31\n'
    midnight = put(tmp_path, "x,v\n1,2026-01-31 00:00:00\n2,1969-12-31T00:00:00\n", "b.csv")
    back = from_csv(stores("b"), midnight, schema=schema)
    assert back.read().to_arrow().equals(a.read().to_arrow())
    with pytest.raises(gs.errors.InputError, match="2026-01-31T00:00:01"):
        from_csv(stores("c"), put(tmp_path, "x,v\n1,2026-01-31 00:00:01\n", "c.csv"), schema=schema)
    a.write_cells({"x": [3]}, {"v": np.array([2**33], "datetime64[D]")})
    with pytest.raises(gs.errors.InputError, match="cannot be written as text"):
        to_csv(a, tmp_path / "a.csv")


def test_compressed_and_several_files(tmp_path: Path, store_uri: str) -> None:
    put(tmp_path, "x,y,v\n1,1,1\n", "a1.csv")
    put(tmp_path, gzip.compress(b"v,y,x\n2,2,2\n"), "a2.csv.gz")
    put(tmp_path, lzma.compress(b"x,y,v\n3,3,3\n"), "b.csv.xz")
    array = from_csv(store_uri, [tmp_path / "a*", tmp_path / "b.csv.xz"], schema=SMALL)
    assert array.read()["v"].tolist() == [1, 2, 3]
    assert len(array.history()) == 2
    with pytest.raises(gs.errors.NotFoundError, match=r"no\*"):
        from_csv(store_uri, tmp_path / "no*")


def test_appends_to_an_array(tmp_path: Path, store_uri: str) -> None:
    from_csv(store_uri, put(tmp_path, "x,y,v\n1,2,3\n"), schema=SMALL)
    array = from_csv(store_uri, put(tmp_path, "y,x,v\n5,4,6\n"), message="more")
    assert array.read()["v"].tolist() == [3, 6] and array.history()[-1].message == "more"
    other = gs.Schema(SMALL.dims, [gs.Attr("v", "int32")], sparse=True)
    with pytest.raises(gs.errors.ExistsError, match="overwrite"):
        from_csv(store_uri, put(tmp_path, "x,y,v\n1,2,3\n"), schema=other)
    version = array.version
    with pytest.raises(gs.errors.InputError, match="line 3"):
        from_csv(store_uri, put(tmp_path, "x,y,v\n1,2,3\n1,20,3\n"), grow=False)
    with pytest.raises(gs.errors.InputError, match="line 2"):
        from_csv(store_uri, put(tmp_path, "x,y,v\n1,2,z\n"), schema=other, overwrite=True)
    assert gs.open(store_uri).version == version
    assert from_csv(store_uri, put(tmp_path, "x,y,v\n1,2,3\n"), schema=other, overwrite=True).schema == other


BAD = [
    ("", "is empty"),
    ("x,y,v\n", "no rows"),
    ("x,y,v\n1,2,3\n1,,3\n", "line 3, column 'y'"),
    ("x,y,v\n1.5,2,3\nnan,2,3\n", "line 3, column 'x'"),
    ('x,y,v\n1,2,"a\nb"\n1,2\n', "line 4: 2 values where the header has 3"),
    ("x,y,v\n1,2,3,4\n", "line 2: 4 values"),
    (b"x,y,v\n1,2,a\n1,2,\xff\n", "line 3, column 'v'.*encoding"),
    ("x,x,v\n1,2,3\n", "two columns are named 'x'"),
    ("x,v\n1,2\n", "no column 'y'; its columns are x, v"),
    ('x,y,v\n1,2,3\n1,"2,3\n1,2,3\n', "line 3: a quote"),
]


@pytest.mark.parametrize(("text", "word"), BAD)
@pytest.mark.parametrize("block_bytes", [6, 1 << 20])
def test_bad_files_name_the_line(
    tmp_path: Path, store_uri: str, text: str | bytes, word: str, block_bytes: int
) -> None:
    with pytest.raises(gs.errors.InputError, match=word) as caught:
        from_csv(store_uri, put(tmp_path, text), dims=["x", "y"], block_bytes=block_bytes)
    assert "a.csv" in str(caught.value)
    assert not gs.exists(store_uri)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x,y,v\n1,2,3\n1,2,abc\n", "line 3, column 'v': 'abc' is no int16"),
        ("x,y,v\n1,2,70000\n", "line 2, column 'v': '70000'"),
        ("x,y,v\n1,2,\n", "line 2, column 'v'"),
        ("x,y,v\n\n1,2,3\n1,10,3\n", "line 4, column 'y': 10 is outside"),
        ("x,y\n1,2\n", "no column 'v'"),
        ("x,y\n", "no column 'v'"),
        ("x,y,v\n1,1,1\n1,1,2\n", "1"),
    ],
)
def test_bad_files_for_a_schema(tmp_path: Path, store_uri: str, text: str, word: str) -> None:
    with pytest.raises(gs.errors.InputError, match=word):
        from_csv(store_uri, put(tmp_path, text), schema=SMALL)
    assert not gs.exists(store_uri)


def test_damaged_gzip(tmp_path: Path, store_uri: str) -> None:
    data = gzip.compress(b"x,y,v\n" + b"1,2,3\n" * 10_000)
    with pytest.raises(gs.errors.InputError, match="decompressed"):
        from_csv(store_uri, put(tmp_path, data[:-20], "a.csv.gz"), dims=["x", "y"])


def test_what_cannot_be_a_dimension(tmp_path: Path, store_uri: str) -> None:
    with pytest.raises(gs.errors.UnsupportedError, match="'x' is string"):
        from_csv(store_uri, put(tmp_path, "x,v\na,1\n"), dims=["x"], sparse=False)
    with pytest.raises(gs.errors.InputError, match="dims="):
        from_csv(store_uri, put(tmp_path, "x,v\n1,1\n"))
    with pytest.raises(gs.errors.InputError, match="encoding"):
        from_csv(store_uri, put(tmp_path, "x,v\n1,1\n"), dims=["x"], encoding="klingon")


def test_header_only_with_a_schema(tmp_path: Path, store_uri: str) -> None:
    assert len(from_csv(store_uri, put(tmp_path, "x,y,v\n"), schema=SMALL).read()) == 0


def test_dense(tmp_path: Path, store_uri: str) -> None:
    rows = [f"{i},{j},{i * 10 + j}" for i in range(5) for j in range(10)]
    array = from_csv(store_uri, put(tmp_path, "i,j,v\n" + "\n".join(rows[::-1])), dims=["i", "j"], sparse=False)
    assert not array.sparse
    np.testing.assert_array_equal(array[...], np.arange(50).reshape(5, 10))


def test_zones(tmp_path: Path, stores: Stores, store_uri: str) -> None:
    text = "x,t\n1,2026-01-01T00:00:00Z\n2,2026-01-01T02:00:00+01:00\n"
    array = from_csv(store_uri, put(tmp_path, text), dims=["x"])
    assert array.read()["t"].tolist() == np.array(["2026-01-01T00", "2026-01-01T01"], "M8[s]").tolist()
    again = from_csv(store_uri, put(tmp_path, text.replace("1,", "3,").replace("2,", "4,")), schema=None) \
        if array.domain[0][1] > 3 else from_csv(stores("b"), put(tmp_path, text), schema=array.schema)  # fmt: skip
    assert again.read()["t"].tolist() == array.read()["t"].tolist()


def test_small_budget_makes_fragments_but_one_commit(tmp_path: Path, store_uri: str) -> None:
    rng = np.random.default_rng(1)
    places = rng.integers(0, 1000, (60_000, 2))
    text = "x,y,v\n" + "\n".join(f"{x},{y},{i}" for i, (x, y) in enumerate(places))
    told: list[tuple[int, int]] = []
    context = gs.Context("2MB", cache=0)
    array = from_csv(
        store_uri, put(tmp_path, text), dims=["x", "y"], context=context, block_bytes="64KiB",
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert array.fragments.num_rows > 2 and len(array.history()) == 2
    found = gs.open(store_uri).read().to_numpy()
    assert len(found["v"]) == 60_000
    np.testing.assert_array_equal(places[found["v"]], np.column_stack([found["x"], found["y"]]))
    assert told == sorted(told) and told[-1][0] == told[-1][1]


REAL = [
    ("ais/AIS_2022_01_03_sample.csv.gz", ["LON", "LAT"], 99_999),
    ("ais/NYHarbor_2020_06_30_first_hour.csv", ["BaseDateTime", "MMSI"], 8_689),
    ("ais/VirginiaBeach_2020_06_04_to_06_filtered.csv.gz", ["LON", "LAT", "BaseDateTime"], 39_822),
    ("points/us_zipcodes.csv.gz", ["longitude", "latitude"], 42_049),
    ("points/earthquakes-23k.csv", ["Longitude", "Latitude"], 23_412),
    ("nasa/MOD04_L2.A2001066.0000.points.csv.gz", ["row", "col"], 27_405),
]


@pytest.mark.parametrize(("name", "dims", "rows"), REAL)
def test_real_files_there_and_back(
    test_data: Path, tmp_path: Path, stores: Stores, store_uri: str, name: str, dims: list[str], rows: int
) -> None:
    array = from_csv(store_uri, test_data / name, dims=dims)
    assert to_csv(array, tmp_path / "out.csv.gz") == rows
    back = from_csv(stores("back"), tmp_path / "out.csv.gz", schema=array.schema)
    keys = [(column, "ascending") for column in array.schema.to_arrow().names]
    assert back.read().to_arrow().sort_by(keys).equals(array.read().to_arrow().sort_by(keys))


def test_to_csv(tmp_path: Path, store_uri: str) -> None:
    array = from_csv(store_uri, put(tmp_path, "x,y,v\n1,2,3\n4,5,6\n"), schema=SMALL)
    assert to_csv(store_uri, tmp_path / "out.csv", {"x": (2, 9)}, ["v"]) == 1
    assert (tmp_path / "out.csv").read_text().splitlines() == ['"x","y","v"', "4,5,6"]
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv", "out.csv"] or not (tmp_path / "out.csv.part").exists()
    assert to_csv(array, tmp_path / "none.csv", {"x": (8, 9)}) == 0


def test_what_lies_outside_the_domain_says_how_to_widen_it(tmp_path: Path, store_uri: str) -> None:
    array = from_csv(store_uri, put(tmp_path, "x,v\n1.5,1\n3.5,2\n"), dims=["x"])
    more = put(tmp_path, "x,v\n9.5,3\n", "b.csv")
    told = r"line 2, column 'x': 9\.5 is outside the domain \(1\.5, 3\.5\); pass grow=True"
    with pytest.raises(gs.errors.InputError, match=told):
        from_csv(store_uri, more, grow=False)
    assert array.refresh() == array.version and len(array.read()) == 2
    assert from_csv(store_uri, more).read()["x"].tolist() == [1.5, 3.5, 9.5]


@pytest.mark.parametrize("name", ["a.tsv", "a.TAB", "a.tsv.gz"])
def test_tabs_by_the_name_of_the_file(tmp_path: Path, stores: Stores, name: str) -> None:
    text = "x\ty\tv\n1\t2\t3\n"
    put(tmp_path, gzip.compress(text.encode()) if name.endswith("gz") else text, name)
    a = from_csv(stores("a"), tmp_path / name, schema=SMALL)
    assert a.read()["v"].tolist() == [3]
    assert read_csv(tmp_path / name, SMALL).num_rows == 1
    to_csv(a, tmp_path / name)
    assert from_csv(stores("b"), str(tmp_path / name), dims=["x", "y"]).read()["v"].tolist() == [3]
    to_csv(a, tmp_path / name, delimiter=",")
    assert from_csv(stores("c"), tmp_path / name, dims=["x", "y"], delimiter=",").read()["v"].tolist() == [3]
    put(tmp_path, "x,y,v\n4,5,6\n")
    with pytest.raises(gs.errors.InputError, match="give delimiter="):
        from_csv(stores("d"), [tmp_path / name, tmp_path / "a.csv"], dims=["x", "y"])


def test_nulls_as_a_word(tmp_path: Path, stores: Stores) -> None:
    text = "x,v,s,t\n1,,,\n2,2,NA,2026-01-01\n3,3,,2026-01-02\n"
    a = from_csv(stores("a"), put(tmp_path, text), dims=["x"])
    assert to_csv(a, tmp_path / "b.csv", null="NA") == 3
    assert (tmp_path / "b.csv").read_text().splitlines()[1] == "1,NA,NA,NA"
    b = from_csv(stores("b"), tmp_path / "b.csv", dims=["x"], nulls=["NA"])
    assert b.read().to_arrow().to_pylist() == a.read().to_arrow().to_pylist()
    for null in ('"', "a,b", "\n", None):
        with pytest.raises(gs.errors.InputError, match="null is text without"):
            to_csv(a, tmp_path / "b.csv", null=null)
    for delimiter in ("", ";;", '"', "é"):
        with pytest.raises(gs.errors.InputError, match="delimiter is one ASCII"):
            to_csv(a, tmp_path / "b.csv", delimiter=delimiter)


def test_cells_that_a_condition_selects_are_written(tmp_path: Path, stores: Stores) -> None:
    a = from_csv(stores("a"), put(tmp_path, "x,v\n1,1\n2,2\n3,3\n"), dims=["x"])
    assert to_csv(a, tmp_path / "b.csv", {"x": (2, 3)}, where="v != 3") == 1
    assert (tmp_path / "b.csv").read_text() == '"x","v"\n2,2\n'
    assert io.to_parquet(a, tmp_path / "b.parquet", where=gs.col("v") > 1) == 2
    assert io.to_feather(a, tmp_path / "b.arrow", where="v in (1, 3)") == 2
    assert io.to_arrow(a, where="v < 3").read_all().column("x").to_pylist() == [1, 2]


def test_open_files_are_refused(tmp_path: Path, store_uri: str) -> None:
    file = put(tmp_path, "x,v\n1,1\n")
    with file.open() as text, file.open("rb") as binary:
        for source in (text, binary, StringIO("x,v\n"), [text], b"a.csv", 5, [5]):
            with pytest.raises(gs.errors.InputError, match=r"named by their paths.* give its path"):
                from_csv(store_uri, source, dims=["x"])
            with pytest.raises(gs.errors.InputError, match=r"named by their paths.* give its path"):
                io.from_parquet(store_uri, source, dims=["x"])
    a = from_csv(store_uri, file, dims=["x"])
    for write in (to_csv, io.to_parquet, io.to_feather):
        with pytest.raises(gs.errors.InputError, match=r"found an open file \(StringIO\); give its path"):
            write(a, StringIO())
