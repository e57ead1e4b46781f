"""NaT and null in times: what goes out comes back equal, or the export says what it cannot tell apart."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone import cli, io

STEPS = ("Y", "M", "D", "h", "s", "ms", "us", "ns")
UNITS = [f"{kind}[{step}]" for kind in ("datetime64", "timedelta64") for step in STEPS]
WAYS: dict[str, Any] = {
    "a.csv": (io.to_csv, io.from_csv),
    "a.parquet": (io.to_parquet, io.from_parquet),
    "a.arrow": (io.to_feather, io.from_feather),
}


def made(uri: str, dtype: str) -> gs.Array:
    """An array whose nullable attribute `n` holds a time, NaT and null, whose other one, `p`, a time and NaT."""
    attrs = [gs.Attr("n", dtype, nullable=True), gs.Attr("p", dtype)]
    array = gs.create(uri, gs.Schema([gs.Dim("x", (0, 9))], attrs, sparse=True))
    values = np.array([5, "NaT", 7, "NaT"], dtype)
    array.write_cells({"x": [1, 2, 3, 4]}, {"n": np.ma.MaskedArray(values, [False, False, True, False]), "p": values})
    return array


def seen(array: gs.Array) -> dict[str, Any]:
    """All values and nulls."""
    found = array.read().to_numpy()
    made = {}
    for name, values in found.items():
        mask = np.ma.getmaskarray(values)
        made[name] = (mask.tolist(), [str(value) for value in np.ma.getdata(values)[~mask].tolist()])
    return made


@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.parametrize("end", ["csv", "tsv", "csv.gz", "csv.zst"])
@pytest.mark.parametrize("null", ["", "NA"])
def test_csv_tells_nat_from_null(tmp_path: Path, stores: Stores, dtype: str, end: str, null: str) -> None:
    a, file = made(stores("a"), dtype), tmp_path / f"a.{end}"
    assert io.to_csv(a, file, null=null) == 4
    for block_bytes in (1, 1 << 20):
        b = io.from_csv(stores(f"b{block_bytes}"), file, schema=a.schema, nulls=[null], block_bytes=block_bytes)
        assert seen(b) == seen(a)


@pytest.mark.parametrize("dtype", [unit for unit in UNITS if unit.startswith("datetime64")])
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_csv_tells_nat_from_null_without_a_schema(tmp_path: Path, stores: Stores, dtype: str, block_bytes: int) -> None:
    a, file = made(stores("a"), dtype), tmp_path / "a.csv"
    io.to_csv(a, file)
    b = io.from_csv(stores("b"), file, dims=["x"], block_bytes=block_bytes)
    found, wanted = b.read()["n"], a.read()["n"]
    assert found.mask.tolist() == wanted.mask.tolist() == [False, False, True, False]
    assert np.isnat(found.data[[0, 1, 3]]).tolist() == [False, True, True] and found[0] == wanted[0]


def test_csv_on_standard_output(stores: Stores, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    uri = stores("a")
    a = made(uri, "datetime64[s]")
    for command in (["export", uri, "-"], ["read", uri, "--format", "csv"]):
        assert cli.run(command) == 0
        rows = capfdbinary.readouterr().out.decode().split("\n")
        assert [row.split(",")[1].strip('"') for row in rows[1:5]] == ["1970-01-01 00:00:05", "NaT", "", "NaT"]
    assert len(a.read()) == 4


def test_the_word_nat_in_files(tmp_path: Path, stores: Stores) -> None:
    """A time where times are wanted or alone in a column; else a text like any other."""
    file = tmp_path / "a.csv"
    file.write_text("x,t,s,d\n1,2026-01-01T00:00:00Z,NaT,2026-01-01\n2,NaT,b,NaT\n3,,c,\n")
    found = io.from_csv(stores("a"), file, dims=["x"])
    assert [attr.dtype for attr in found.schema.attrs] == ["datetime64[s]", "string", "datetime64[s]"]
    assert found.read()["s"].tolist() == ["NaT", "b", "c"] and found.read()["t"].mask.tolist() == [False, False, True]
    zoned = io.from_csv(stores("b"), file, dims=["x"], timezone="Europe/Berlin")
    assert np.isnat(zoned.read()["d"].data[:2]).tolist() == [False, True]
    assert zoned.read()["d"].data[0] == np.datetime64("2025-12-31T23:00:00")
    for dtype in ("int64", "float64"):
        schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("t", dtype, nullable=True)], sparse=True)
        file.write_text("x,t\n1,5\n2,NaT\n")
        with pytest.raises(gs.errors.InputError, match="line 3, column 't'"):
            io.from_csv(stores(f"c{dtype}"), file, schema=schema)


@pytest.mark.parametrize("dtype", ["datetime64[s]", "datetime64[h]"])
def test_nat_is_no_coordinate(tmp_path: Path, stores: Stores, dtype: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text("t,v\n2026-01-01T00:00:00,1\nNaT,2\n")
    dim = gs.Dim("t", ("2025-01-01", "2027-01-01"), dtype=dtype)
    for name, options in (
        ("a", {"dims": ["t"]}),
        ("b", {"schema": gs.Schema([dim], [gs.Attr("v", "int8")], sparse=True)}),
    ):
        with pytest.raises(gs.errors.InputError, match=r"line 3, column 't'.*NaT"):
            io.from_csv(stores(name), file, **options)
        assert len(io.from_csv(stores(f"{name}2"), file, **options, on_error="skip").read()) == 1


@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.parametrize("end", ["parquet", "arrow"])
def test_files_of_arrow_say_that_they_cannot(tmp_path: Path, stores: Stores, dtype: str, end: str) -> None:
    a, file = made(stores("a"), dtype), tmp_path / f"a.{end}"
    write: Any = {"parquet": io.to_parquet, "arrow": io.to_feather}[end]
    read: Any = {"parquet": io.from_parquet, "arrow": io.from_feather}[end]
    with pytest.raises(gs.errors.InputError, match=r"'n' holds NaT and may hold null.*nat='null'"):
        write(a, file)
    assert not file.exists()
    with pytest.raises(gs.errors.InputError, match="nat"):
        write(a, file, nat="keep")
    assert write(a, file, nat="null") == 4 == write(a, file, attrs=["p"]) and write(a, file, nat="null") == 4
    for name, options in (("b", {}), ("c", {"dims": ["x"]})):
        b = read(stores(name), file, **options)
        assert b.schema.attr("n").nullable and not b.schema.attr("p").nullable
        assert b.read()["n"].mask.tolist() == [False, True, True, True]
        assert seen(b)["p"] == seen(a)["p"]


def test_streams_of_arrow_say_that_they_cannot(stores: Stores) -> None:
    a = made(stores("a"), "datetime64[s]")
    with pytest.raises(gs.errors.InputError, match="nat='null'"):
        io.to_arrow(a).read_all()
    assert io.to_arrow(a, nat="null").read_all().column("n").null_count == 3
    b = io.from_arrow(stores("b"), io.to_arrow(a, attrs=["p"]))
    assert seen(b)["p"] == seen(a)["p"]
    for read in (lambda: a.read().to_arrow(), lambda: a.scan().to_arrow(), lambda: a.read().to_pandas()):
        with pytest.warns(gs.NatWarning, match="'n' holds NaT and may hold null"):
            read()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", UNITS)
def test_nulls_alone_come_back_from_everywhere(tmp_path: Path, stores: Stores, dtype: str) -> None:
    a = gs.create(stores("a"), gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("n", dtype, nullable=True)], sparse=True))
    a.write_cells({"x": [1, 2]}, {"n": np.ma.MaskedArray(np.array([5, 6], dtype), [False, True])})
    for name, (write, read) in WAYS.items():
        write(a, tmp_path / name)
        assert seen(read(stores(name), tmp_path / name, schema=a.schema)) == seen(a)
    assert seen(io.from_arrow(stores("s"), a.read().to_arrow(), schema=a.schema)) == seen(a)


def test_nat_within_vectors_and_lists(tmp_path: Path, stores: Stores) -> None:
    attrs = [gs.Attr("v", "datetime64[s]", shape=(2,), nullable=True), gs.Attr("l", "list[datetime64[D]]")]
    a = gs.create(stores("a"), gs.Schema([gs.Dim("x", (0, 9))], attrs, sparse=True))
    vectors = np.ma.MaskedArray(
        np.array([["2020-01-01", "NaT"], ["NaT"] * 2, ["NaT"] * 2], "M8[s]"), [[False] * 2, [False] * 2, [True] * 2]
    )
    lists = np.empty(3, object)
    lists[:] = [np.array(["2020-01-01", "NaT"], "M8[D]"), np.array([], "M8[D]"), np.array(["NaT"], "M8[D]")]
    a.write_cells({"x": [1, 2, 3]}, {"v": vectors, "l": lists})
    for name, (write, read) in WAYS.items():
        write(a, tmp_path / name)
        assert seen(read(stores(name), tmp_path / name, schema=a.schema)) == seen(a)


def test_the_command_line_says_it_too(stores: Stores, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    uri, file = stores("a"), str(tmp_path / "a.parquet")
    made(uri, "datetime64[s]")
    assert cli.run(["export", uri, file]) == 2 and "--nat null" in capfd.readouterr().err
    assert cli.run(["export", uri, file, "--nat", "null", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["rows"] == 4
    assert cli.run(["export", uri, str(tmp_path / "a.csv"), "--nat", "null"]) == 2
    assert cli.run(["read", uri]) == 0 and "holds NaT" in capfd.readouterr().err
