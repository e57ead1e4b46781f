"""No column is dropped silently: files of one load with other columns, and loads of a file with a new column."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone import cli, io

InputError = gs.errors.InputError
Columns = dict[str, Any]

FORMS = ["csv", "parquet", "feather"]
LOAD: dict[str, Callable[..., gs.Array]] = {
    "csv": io.from_csv,
    "parquet": io.from_parquet,
    "feather": io.from_feather,
}


def put(folder: Path, form: str, *tables: Columns, first: int = 1) -> list[Path]:
    """Each table as a file day1, day2 …"""
    files = []
    for day, columns in enumerate(tables, first):
        table = pa.table(columns)
        file = folder / f"day{day}.{form}"
        if form == "csv":
            pyarrow.csv.write_csv(table, file)
        elif form == "parquet":
            pq.write_table(table, file)
        else:
            pyarrow.feather.write_feather(table, file)
        files.append(file)
    return files


def cells(array: gs.Array) -> dict[str, list[Any]]:
    array.refresh()
    found: dict[str, list[Any]] = array.read(order="row").to_arrow().to_pydict()
    return found


ONE = {"x": [1, 2], "v": [10, 20]}
MORE = {"x": [3, 4], "v": [30, 40], "w": ["a", "b"]}


@pytest.mark.parametrize("form", FORMS)
def test_the_next_days_file_has_a_new_column(tmp_path: Path, stores: Stores, form: str) -> None:
    one, two = put(tmp_path, form, ONE, MORE)
    a = LOAD[form](stores("a"), one, ["x"], domain={"x": (0, 99)})
    version = a.version
    with pytest.raises(InputError, match=rf"day2\.{form}.*column 'w'.*no attribute.*evolve=True \(--evolve\)"):
        LOAD[form](stores("a"), two)
    assert gs.open(stores("a")).version == version
    a = LOAD[form](stores("a"), two, evolve=True)
    assert a.version == version + 1
    w = a.schema.attr("w")
    assert (w.dtype, w.nullable) == ("string", True)
    assert cells(a) == {"x": [1, 2, 3, 4], "v": [10, 20, 30, 40], "w": [None, None, "a", "b"]}
    assert gs.open(stores("a"), version=version).schema_names == ["v"]
    # Day three lacks it again.
    three = put(tmp_path, form, {"x": [5], "v": [50]}, first=3)
    assert cells(LOAD[form](stores("a"), three, evolve=True))["w"] == [None, None, "a", "b", None]


@pytest.mark.parametrize("form", FORMS)
def test_columns_left_out_do_not_count(tmp_path: Path, stores: Stores, form: str) -> None:
    one, two = put(tmp_path, form, ONE, {**MORE, "z": [0.5, 1.5]})
    LOAD[form](stores("a"), one, ["x"], domain={"x": (0, 99)})
    a = LOAD[form](stores("a"), two, attrs=["v"])
    assert cells(a) == {"x": [1, 2, 3, 4], "v": [10, 20, 30, 40]}
    with pytest.raises(InputError, match="column 'z'"):
        LOAD[form](stores("a"), two, attrs=["v", "z"])
    a = LOAD[form](stores("a"), two, attrs=["v", "z"], evolve=True)
    assert a.schema_names == ["v", "z"]
    with pytest.raises(InputError, match="no column 'nope'"):
        LOAD[form](stores("a"), two, attrs=["v", "nope"], evolve=True)
    # What attrs= leaves out and cannot be null is named.
    with pytest.raises(InputError, match=r"leaves out column 'v'.*neither nullable nor has a fill"):
        LOAD[form](stores("a"), two, attrs=["z"])


@pytest.mark.parametrize(
    ("source", "load"),
    [
        (lambda t: t, io.from_arrow),
        (lambda t: t.to_batches()[0], io.from_arrow),
        (lambda t: t.to_reader(), io.from_arrow),
        (lambda t: pyarrow.dataset.dataset(t), io.from_arrow),
        (lambda t: t.to_pandas(), io.from_pandas),
        (lambda t: pl.from_arrow(t), io.from_polars),
        (lambda t: pl.from_arrow(t).lazy(), io.from_polars),
        (lambda t: pl.from_arrow(t), io.from_arrow),
    ],
    ids=["table", "batch", "stream", "dataset", "pandas", "polars", "lazy", "capsule"],
)
def test_frames_and_tables_with_a_new_column(store_uri: str, source: Any, load: Any) -> None:
    load(store_uri, source(pa.table(ONE)), ["x"], domain={"x": (0, 99)})
    with pytest.raises(InputError, match=r"column 'w': the array has no attribute"):
        load(store_uri, source(pa.table(MORE)))
    a = load(store_uri, source(pa.table(MORE)), evolve=True)
    assert cells(a) == {"x": [1, 2, 3, 4], "v": [10, 20, 30, 40], "w": [None, None, "a", "b"]}


@pytest.mark.parametrize("form", FORMS)
def test_only_some_of_the_new_files_have_new_columns(tmp_path: Path, store_uri: str, form: str) -> None:
    LOAD[form](store_uri, put(tmp_path, form, ONE), ["x"], domain={"x": (0, 99)})
    files = put(tmp_path, form, {"x": [3], "v": [None]}, MORE | {"x": [4, 5]}, {"u": [1], "x": [6], "v": [3]})
    a = LOAD[form](store_uri, files, evolve=True)
    assert cells(a) == {
        "x": [1, 2, 3, 4, 5, 6],
        "v": [10, 20, None, 30, 40, 3],
        "w": [None, None, None, "a", "b", None],
        "u": [None] * 5 + [1],
    }


def test_times_with_a_zone_in_some_files(tmp_path: Path, stores: Stores) -> None:
    texts = ["x,v\n1,5\n", "x,v,t\n2,6,2026-07-01T12:00:00+02:00\n", "x,u,v\n3,2026-07-01T12:00:00Z,7\n"]
    files = [tmp_path / f"{at}.csv" for at in range(3)]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    io.from_csv(stores("a"), files[0], ["x"], domain={"x": (0, 9)})
    a = io.from_csv(stores("a"), files[:2], evolve=True)
    a = io.from_csv(stores("a"), files, evolve=True)
    whole = io.from_csv(stores("b"), files, ["x"])
    for made in (a, whole):
        found = {tuple(map(str, row.values())) for row in made.read(order="row").to_arrow().to_pylist()}
        assert {("2", "6", "2026-07-01 10:00:00", "None"), ("3", "7", "None", "2026-07-01 12:00:00")} <= found


def test_a_new_column_of_every_kind_comes_back(store_uri: str) -> None:
    io.from_arrow(store_uri, pa.table(ONE), ["x"], domain={"x": (0, 99)})
    more = pa.table(
        {
            "x": [3, 4],
            "v": [1, 2],
            "when": pa.array([1, 2], pa.timestamp("ms", "Europe/Berlin")),
            "kind": pa.array(["a", "b"]).dictionary_encode(),
            "flag": [True, None],
            "many": pa.array([[1, 2], [3]], pa.list_(pa.int32())),
            "rgb": pa.array([[1, 2, 3], [4, 5, 6]], pa.list_(pa.uint8(), 3)),
            "raw": [b"x", b"y"],
        }
    )
    a = io.from_arrow(store_uri, more, evolve=True)
    assert a.schema.attr("kind").categories == ("a", "b") and all(attr.nullable for attr in a.schema.attrs[1:])
    found = cells(a)
    assert found["kind"] == [None, None, "a", "b"] and found["many"] == [None, None, [1, 2], [3]]
    assert found["rgb"][2:] == [[1, 2, 3], [4, 5, 6]] and found["flag"] == [None, None, True, None]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_files_of_one_load_with_other_columns(tmp_path: Path, store_uri: str, form: str, order: Sequence[int]) -> None:
    tables: list[Columns] = [ONE, MORE, {"u": [0.5, 1.5], "x": [5, 6]}]
    files = put(tmp_path, form, *tables)
    a = LOAD[form](store_uri, [files[place] for place in order], ["x"])
    assert cells(a) == {
        "x": [1, 2, 3, 4, 5, 6],
        **{
            name: [*dict([("v", [10, 20, 30, 40, None, None]), ("w", [None, None, "a", "b", None, None]),
                          ("u", [None] * 4 + [0.5, 1.5])])[name]]
            for name in a.schema_names
        },
    }  # fmt: skip
    assert sorted(a.schema_names) == ["u", "v", "w"] and all(attr.nullable for attr in a.schema.attrs)


@pytest.mark.parametrize("form", FORMS)
def test_files_must_have_the_same_columns_if_asked(tmp_path: Path, stores: Stores, form: str) -> None:
    files = put(tmp_path, form, ONE, MORE)
    for several, lacking in ((files, "day1"), (files[::-1], "day1")):
        with pytest.raises(InputError, match=rf"{lacking}\.{form}.* has no column 'w', as .*day2.*union=True"):
            LOAD[form](stores("a"), several, ["x"], union=False)
        assert not gs.exists(stores("a"))
    assert LOAD[form](stores("a"), files, ["x"], union=False, attrs=["v"]).schema_names == ["v"]
    with pytest.raises(InputError, match=r"day2.*has no column 'x'"):
        LOAD[form](stores("b"), put(tmp_path, form, ONE, {"v": [1]}), ["x"])


@pytest.mark.parametrize("form", FORMS)
def test_a_file_lacks_a_column_of_the_array(tmp_path: Path, stores: Stores, form: str) -> None:
    attrs = [
        gs.Attr("v", "int64"),
        gs.Attr("maybe", "float64", nullable=True),
        gs.Attr("filled", "int32", fill=-9),
        gs.Attr("said", "string", fill="none"),
    ]
    dims = [gs.Dim("x", (0, 99))]
    gs.create(stores("a"), gs.Schema(dims, attrs, sparse=True, duplicates=True))
    a = LOAD[form](stores("a"), put(tmp_path, form, ONE))
    assert cells(a) == {"x": [1, 2], "v": [10, 20], "maybe": [None] * 2, "filled": [-9] * 2, "said": ["none"] * 2}
    with pytest.raises(InputError, match=rf"day1\.{form}.* has no column 'v', and attribute 'v' is neither nullable"):
        LOAD[form](stores("a"), put(tmp_path, form, {"x": [1], "maybe": [0.5]}))
    both = put(tmp_path, form, {"x": [5], "v": [1], "maybe": [0.5], "filled": [7], "said": ["s"]}, {"x": [6], "v": [2]})
    found = cells(LOAD[form](stores("a"), both))
    assert found["filled"][2:] == [7, -9] and found["maybe"][2:] == [0.5, None] and found["said"][2:] == ["s", "none"]


def test_a_dense_array_keeps_what_a_file_does_not_have(tmp_path: Path, store_uri: str) -> None:
    attrs = [gs.Attr("v", "int64"), gs.Attr("w", "int64", nullable=True), gs.Attr("n", "int64")]
    a = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 3))], attrs))
    a.write({"v": [1, 2, 3, 4], "w": [5, 6, 7, 8], "n": [0, 0, 0, 0]})
    file = put(tmp_path, "csv", {"x": [1], "v": [20], "n": [1]})
    io.from_csv(store_uri, file)
    a.refresh()
    assert a["v"][...].tolist() == [1, 20, 3, 4] and a["w"][...].tolist() == [5, 6, 7, 8]
    with pytest.raises(InputError, match="no column 'n'"):
        io.from_csv(store_uri, put(tmp_path, "csv", {"x": [1], "v": [20]}))
    io.from_csv(store_uri, put(tmp_path, "csv", {"x": [2], "v": [30]}), attrs=["v"])
    a.refresh()
    assert a["v"][...].tolist() == [1, 20, 30, 4] and a["n"][...].tolist() == [0, 1, 0, 0]


def test_a_schema_that_is_given_chooses_columns(tmp_path: Path, stores: Stores) -> None:
    files = put(tmp_path, "csv", ONE, MORE)
    attrs = [gs.Attr("v", "int64", nullable=True)]
    schema = gs.Schema([gs.Dim("x", (0, 99))], attrs, sparse=True, duplicates=True)
    io.from_csv(stores("a"), files[1], schema=schema)
    a = io.from_csv(stores("a"), files, schema=schema)  # the same call again appends
    assert len(cells(a)["x"]) == 6 and a.schema == schema
    with pytest.raises(InputError, match="schema= says which columns"):
        io.from_csv(stores("a"), files, schema=schema, evolve=True)
    with pytest.raises(InputError, match="no column 'typo'"):
        typo = gs.Schema(schema.dims, [gs.Attr("typo", "int64", nullable=True)], sparse=True)
        io.from_csv(stores("b"), files, schema=typo)
    assert not gs.exists(stores("b"))


def test_a_table_that_knows_its_schema_has_a_column_more(stores: Stores) -> None:
    a = io.from_arrow(stores("a"), pa.table(ONE), ["x"])
    table = a.read().to_arrow().replace_schema_metadata(io.to_arrow(a).schema.metadata)
    more = table.append_column("w", pa.array(["p", None]))
    b = io.from_arrow(stores("b"), more)
    assert b.schema.dims == a.schema.dims and cells(b)["w"] == ["p", None]
    assert io.from_arrow(stores("c"), more, attrs=["v"]).schema == a.schema


@pytest.mark.parametrize("form", ["parquet", "feather"])
@pytest.mark.parametrize(
    ("one", "two", "dtype", "values"),
    [
        (pa.array([1], pa.int8()), pa.array([2], pa.int32()), "int32", [1, 2]),
        (pa.array([1], pa.uint8()), pa.array([-2], pa.int8()), "int16", [1, -2]),
        (pa.array([1], pa.int64()), pa.array([0.5], pa.float64()), "float64", [1.0, 0.5]),
        (pa.array([1], pa.int16()), pa.array([0.5], pa.float32()), "float32", [1.0, 0.5]),
        (pa.array([2**31 - 1], pa.int32()), pa.array([0.5], pa.float32()), "float64", [2.0**31 - 1, 0.5]),
        (pa.array([2**63 - 1], pa.int64()), pa.array(["a"]), "string", [str(2**63 - 1), "a"]),
        (pa.array([0.5]), pa.array(["a"], pa.large_string()), "string", ["0.5", "a"]),
        (pa.array([None], pa.null()), pa.array([3], pa.int16()), "int16", [None, 3]),
        (pa.array(["a"]).dictionary_encode(), pa.array(["b"]), "string", ["a", "b"]),
    ],
)
def test_types_of_files_widen(
    tmp_path: Path, stores: Stores, form: str, one: Any, two: Any, dtype: str, values: list[Any]
) -> None:
    files = put(tmp_path, form, {"x": [1], "v": one}, {"x": [2], "v": two})
    for name, several in (("a", files), ("b", files[::-1])):
        a = LOAD[form](stores(name), several, ["x"])
        assert a.schema.attr("v").dtype == dtype and cells(a)["v"] == values


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_types_of_files_that_have_none_in_common_are_named(tmp_path: Path, stores: Stores, form: str) -> None:
    pairs = [
        (pa.array([True]), pa.array([1])),
        (pa.array([1], pa.uint64()), pa.array([1], pa.int64())),
        (pa.array([1], pa.timestamp("s")), pa.array(["a"])),
        (pa.array([1], pa.timestamp("s")), pa.array([1], pa.timestamp("s", "UTC"))),
        (pa.array([[1]]), pa.array([1])),
    ]
    for one, two in pairs:
        files = put(tmp_path, form, {"x": [1], "v": one, "n": [1]}, {"x": [2], "v": two, "n": [2]})
        with pytest.raises(InputError, match=r"column 'v' is .* in .*day2.* and .* in .*day1"):
            LOAD[form](stores("a"), files, ["x"])
        assert not gs.exists(stores("a"))
    assert len(LOAD[form](stores("a"), files, ["x"], attrs=["n"]).read()) == 2


@pytest.mark.parametrize("form", FORMS)
def test_no_digit_is_lost_between_files(tmp_path: Path, stores: Stores, form: str) -> None:
    large = 2**53 + 1
    files = put(tmp_path, form, {"x": [1, 2], "v": [large, 5]}, {"x": [3], "v": [0.5]})
    for name, several in (("a", files), ("b", files[::-1])):
        if form == "csv":
            a = io.from_csv(stores(name), several, ["x"])
            assert a.schema.attr("v").dtype == "string" and cells(a)["v"] == [str(large), "5", "0.5"]
        else:
            with pytest.raises(InputError, match=r"day1.*row 0, column 'v': 9007199254740993"):
                LOAD[form](stores(name), several, ["x"])
    coordinates = put(tmp_path, form, {"x": [large], "v": [1]}, {"x": [0.5], "v": [1]})
    with pytest.raises((InputError, gs.errors.UnsupportedError), match="column 'x'"):
        LOAD[form](stores("c"), coordinates, ["x"])
    assert not gs.exists(stores("c"))


def test_csv_types_widen_between_files(tmp_path: Path, stores: Stores) -> None:
    tables: list[Columns] = [{"x": [1], "v": [7]}, {"x": [2], "v": [0.5]}, {"x": [3], "v": ["n/a"]}]
    files = put(tmp_path, "csv", *tables)
    for count, dtype, values in ((1, "int64", [7]), (2, "float64", [7.0, 0.5]), (3, "string", ["7", "0.5", "n/a"])):
        for at, several in enumerate(itertools.permutations(files[:count])):
            a = io.from_csv(stores(f"{count}{at}"), several, ["x"])
            assert a.schema.attr("v").dtype == dtype and cells(a)["v"] == values


TYPES: dict[str, Any] = {"i": pa.int32(), "f": pa.float64(), "s": pa.string(), "b": pa.bool_()}
VALUES: dict[str, Any] = {
    "i": st.none() | st.integers(-5, 5),
    "f": st.none() | st.sampled_from([0.25, -7.5, 1e10]),
    "s": st.none() | st.sampled_from(["a", "bc", "ä"]),
    "b": st.none() | st.booleans(),
}


@st.composite
def days(draw: st.DrawFn) -> list[Columns]:
    """Files, each with rows of its own and some of the columns."""
    tables, row = [], 0
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(1, 3))
        names = draw(st.permutations(list(TYPES)))[: draw(st.integers(1, 4))]
        columns: Columns = {"x": pa.array(range(row, row + count))}
        for name in names:
            columns[name] = pa.array(draw(st.lists(VALUES[name], min_size=count, max_size=count)), TYPES[name])
        tables.append(columns)
        row += count
    return tables


@given(days(), st.sampled_from(FORMS), st.randoms())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_files_at_once_and_one_by_one(tmp_path: Path, tables: list[Columns], form: str, r: Random) -> None:
    wanted = pa.concat_tables([pa.table(columns) for columns in tables], promote_options="default")
    names = sorted(wanted.column_names)
    files = put(tmp_path, form, *tables)
    if form == "csv":  # A column of nothing but nulls has no type in CSV.
        lost = {n for n in names if wanted.column(n).null_count == wanted.num_rows}
        names = [n for n in names if n not in lost]
    r.shuffle(files)
    for at, loads in enumerate(([files], [[file] for file in files])):
        uri = f"mem://files-{at}"
        for first, load in enumerate(loads):
            domain = {"domain": {"x": (0, 99)}} if first == 0 else {"evolve": True}
            a = LOAD[form](uri, load, ["x"], overwrite=first == 0, **domain)
            a.alter(nullable=[attr.name for attr in a.schema.attrs if not attr.nullable])
        if form != "csv" or at == 0:  # An empty column of a first file is text.
            found = cells(a)
            assert {name: found[name] for name in names} == wanted.select(names).to_pydict()
        gs.delete(uri)


def test_a_dataset_has_the_columns_of_all_its_files(tmp_path: Path, stores: Stores) -> None:
    files = put(tmp_path, "parquet", ONE, MORE)
    a = io.from_arrow(stores("a"), pyarrow.dataset.dataset([str(f) for f in files]), ["x"])
    assert cells(a) == {"x": [1, 2, 3, 4], "v": [10, 20, 30, 40], "w": [None, None, "a", "b"]}
    with pytest.raises(InputError, match=r"day1\.parquet has no column 'w'"):
        io.from_arrow(stores("b"), pyarrow.dataset.dataset([str(f) for f in files]), ["x"], union=False)
    clash = put(tmp_path, "parquet", ONE, {"x": [3], "v": [0.5]})
    with pytest.raises(InputError, match="the dataset, behind row"):
        io.from_arrow(stores("c"), pyarrow.dataset.dataset([str(f) for f in clash]), ["x"])
    assert not gs.exists(stores("c"))


def test_a_type_never_changes(tmp_path: Path, stores: Stores) -> None:
    io.from_arrow(stores("a"), pa.table({"x": [1], "v": [1], "f": pa.array([0.5], pa.float32())}), ["x"])
    wider = r"type of a column never changes: `gridstone copy \S+a\.gs \S+a-wider\.gs --type "
    for column, value, wanted in (("v", 0.5, "v=float64"), ("v", "z", "v=string"), ("f", 1e39, "f=float64")):
        row = {"x": [1], "v": [1], "f": [0.5], column: [value]}
        with pytest.raises(InputError, match=rf"row 0, column '{column}'.*{wider}{wanted}`"):
            io.from_arrow(stores("a"), pa.table(row))
        if value != 1e39:
            with pytest.raises(InputError, match=rf"line 2, column '{column}'.*{wider}{wanted}`"):
                io.from_csv(stores("a"), put(tmp_path, "csv", row))
    with pytest.raises(InputError, match=rf"row 1, column 'x'.*{wider}x=float64`"):
        io.from_pandas(stores("a"), pd.DataFrame({"x": [1, 1.5], "v": [1, 2], "f": [0.5, 1]}))
    b = gs.copy(stores("a"), stores("b"), types={"x": "float64", "v": "float64"})
    io.from_csv(b.uri, put(tmp_path, "csv", {"x": [1], "v": [0.5], "f": [0.5]}))
    assert len(gs.open(b.uri).read()) == 2


def test_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one, two = map(str, put(tmp_path, "csv", ONE, MORE))
    uri = str(tmp_path / "a.gs")

    def run(*arguments: str) -> tuple[int, str]:
        code = cli.run(list(arguments))
        return code, capfd.readouterr().err

    assert run("load", uri, one, "--dims", "x", "--domain", "x=0:99")[0] == 0
    code, said = run("load", uri, two)
    assert code == 2 and "column 'w'" in said and "--evolve" in said
    assert run("load", uri, two, "--attrs", "v")[0] == 0
    assert run("load", uri, two, "--evolve")[0] == 0
    assert len(cells(gs.open(uri))["w"]) == 6
    other = str(tmp_path / "b.gs")
    assert run("load", other, one, two, "--dims", "x", "--no-union")[0] == 2
    assert run("load", other, one, two, "--dims", "x", "--union")[0] == 0
    assert cells(gs.open(other))["w"] == [None, None, "a", "b"]
    array = str(tmp_path / "a.npy")
    assert run("load", other, array, "--evolve")[0] == 2
    assert run("load", other, one, "--domain", "x=1:2:3")[0] == 2
