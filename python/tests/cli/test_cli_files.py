"""`gridstone load`, `export`, `write` and `completion`: every format, options that belong to one, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import Stores

import gridstone as gs
from gridstone import io

TABLE = pa.table({"x": [1, 3, 3], "y": [0.5, 1.5, 1.5], "v": [1, None, 3], "s": ["a", "b,c", ""]})


@pytest.fixture
def store(stores: Stores) -> str:
    io.from_arrow(stores("t"), TABLE, dims=["x", "y"])
    return stores("t")


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz", "o.csv.zst", "o.parquet", "o.arrow", "o.feather", "o.parq"])
def test_export_and_load(tmp_path: Path, stores: Stores, store: str, call, name: str) -> None:
    code, out, err = call("export", store, tmp_path / name, "--json")
    assert code == 0 and err == "", err
    told = json.loads(out)
    assert told["rows"] == 3 and told["file"].endswith(name)
    code, out, err = call("load", stores("b"), tmp_path / name, "--dims", "x,y", "--json")
    assert code == 0, err
    assert json.loads(out)["cells_written"] == 3
    found = gs.open(stores("b")).read().to_arrow()
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, gs.open(store).read().to_arrow().to_pylist()))


def test_a_file_that_knows_its_schema_needs_no_dims(tmp_path: Path, stores: Stores, store: str, call) -> None:
    assert call("export", store, tmp_path / "o.parquet", "--compression", "none", "--box", "x=3")[0] == 0
    assert call("load", stores("b"), tmp_path / "o.parquet")[0] == 0
    assert gs.open(stores("b")).schema == gs.open(store).schema and len(gs.open(stores("b")).read()) == 2
    pq.write_table(TABLE, tmp_path / "plain.parquet")
    code, _, err = call("load", stores("c"), tmp_path / "plain.parquet")
    assert code == 2 and "dims" in err and not gs.exists(stores("c"))
    assert call("load", stores("c"), tmp_path / "plain.parquet", "--dims", "x,y", "--no-duplicates")[0] == 2


def test_numpy_and_matrices(tmp_path: Path, stores: Stores, call) -> None:
    values = np.arange(12.0).reshape(3, 4) - 5
    np.save(tmp_path / "v.npy", values)
    assert call("load", stores("d"), tmp_path / "v.npy", "--dims", "lat,lon", "--name", "t")[0] == 0
    array = gs.open(stores("d"))
    assert array.dims == ("lat", "lon") and array.schema_names == ["t"]
    np.testing.assert_array_equal(array[...], values)
    code, out, _ = call("export", stores("d"), tmp_path / "o.npy", "--box", "lat=1:2", "--json")
    assert code == 0 and json.loads(out)["shape"] == [2, 4]
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), values[1:])
    code, out, _ = call("export", stores("d"), tmp_path / "o.npz")
    assert code == 0 and "arrays ['t']" in out
    assert call("load", stores("e"), tmp_path / "o.npz", "--format", "npz")[0] == 0
    np.testing.assert_array_equal(gs.open(stores("e"))[...], values)
    pytest.importorskip("scipy")
    code, out, _ = call("export", stores("d"), tmp_path / "o.mtx", "--attr", "t")
    assert code == 0 and "values 11" in out
    assert call("load", stores("m"), tmp_path / "o.mtx")[0] == 0
    assert gs.open(stores("m")).sparse and call("load", stores("n"), tmp_path / "o.mtx", "--dense")[0] == 0
    np.testing.assert_array_equal(gs.open(stores("n"))[...], values)
    assert call("export", stores("m"), tmp_path / "f.npy", "--fill", "9")[0] == 0
    assert (np.load(tmp_path / "f.npy") == 9).sum() == 1


def test_csv_options(tmp_path: Path, stores: Stores, call) -> None:
    (tmp_path / "a.txt").write_text(
        "made by hand\n# a remark\n1\t'0,5'\t31.12.2025 13:00\tja\n# another\n2\t-\t01.01.2026 00:30\tnein\n"
    )
    arguments = ["--dims", "x", "--no-header", "--names", "x,v,t,b", "--delimiter", "\\t", "--quote", "'"]
    arguments += [
        "--decimal",
        ",",
        "--comment",
        "#",
        "--skip-lines",
        "1",
        "--null",
        "-",
        "--true",
        "ja",
        "--false",
        "nein",
    ]
    arguments += ["--time-format", "%d.%m.%Y %H:%M", "--timezone", "Europe/Berlin"]
    code, _, err = call("load", stores("a"), tmp_path / "a.txt", *arguments)
    assert code == 0, err
    found = gs.open(stores("a")).read().to_numpy()
    assert found["v"].tolist() == [0.5, None] and found["b"].tolist() == [True, False]
    assert found["t"].astype(str).tolist() == ["2025-12-31T12:00:00", "2025-12-31T23:30:00"]
    (tmp_path / "a.tsv").write_text("x\tv\n3\t4\n")
    assert call("load", stores("b"), tmp_path / "a.tsv", "--dims", "x")[0] == 0


def test_rows_that_are_left_out(tmp_path: Path, stores: Stores, call) -> None:
    (tmp_path / "a.csv").write_text("x,v\n1,2\n1,2,3\n,5\n7,8\n")
    assert call("load", stores("a"), tmp_path / "a.csv", "--dims", "x")[0] == 2
    code, out, err = call("load", stores("a"), tmp_path / "a.csv", "--dims", "x", "--on-error", "skip", "--json")
    assert code == 0 and json.loads(out)["rows_rejected"] == 2 and json.loads(out)["cells_written"] == 2
    rejected = tmp_path / "bad.csv"
    code, _, err = call(
        "load", stores("b"), tmp_path / "a.csv", "--dims", "x", "--on-error", "collect", "--rejected", rejected
    )
    assert code == 0, err
    assert rejected.read_text().splitlines()[0] == "file,line,column,reason,text"
    assert [line.split(",")[1] for line in rejected.read_text().splitlines()[1:]] == ["3", "4"]
    assert call("load", stores("c"), tmp_path / "a.csv", "--dims", "x", "--on-error", "collect")[0] == 2
    assert call("load", stores("c"), tmp_path / "a.csv", "--dims", "x", "--rejected", rejected)[0] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["load", "u.gs", "a.csv"], 2, "--dims"),
        (["load", "u.gs", "missing.parquet"], 4, "no file"),
        (["load", "u.gs", "a.parquet", "--delimiter", ";"], 2, "--delimiter is for CSV"),
        (["load", "u.gs", "a.parquet", "--name", "v"], 2, "--name is for npy"),
        (["load", "u.gs", "a.parquet", "a.csv"], 2, "several formats"),
        (["load", "u.gs", "a.parquet", "--format", "xml"], 2, "xml"),
        (["load", "u.gs", "a.parquet", "--format", "npy"], 2, "a.parquet is no .npy file"),
        (["load", "u.gs", "a.csv", "--format", "parquet"], 2, "a.csv is no Parquet file"),
        (["export", "t.gs", "o.parquet", "--delimiter", ";"], 2, "--delimiter"),
        (["export", "t.gs", "o.csv", "--compression", "zstd"], 2, "--compression"),
        (["export", "t.gs", "o.parquet", "--compression", "tar"], 2, "compression"),
        (["export", "t.gs", "o.csv", "--fill", "0"], 2, "--fill"),
        (["export", "t.gs", "o.npy", "--attr", "v", "--attr", "s"], 2, "one attribute"),
        (["export", "t.gs", "o.npy", "--attr", "v"], 2, "float"),
        (["export", "t.gs", "no/o.csv"], 4, "no folder 'no'"),
        (["export", "none.gs", "o.csv"], 4, "none.gs"),
        (["completion", "tcsh"], 2, "tcsh"),
    ],
)
@pytest.mark.usefixtures("store")
def test_exit_codes(
    tmp_path: Path, stores: Stores, call, monkeypatch, arguments: list[str], code: int, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x,v\n1,2\n")
    pq.write_table(TABLE, tmp_path / "a.parquet")
    found, _, err = call(*(stores(a[:-3]) if a.endswith(".gs") else a for a in arguments))
    assert found == code and word in err, err
    assert not gs.exists(stores("u")) and not (tmp_path / "o.csv.part").exists()


def test_bytes_that_are_no_text(tmp_path: Path, stores: Stores, call, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    io.from_arrow(stores("b"), pa.table({"x": [1], "b": [b"\xff"]}), dims=["x"])
    for arguments in (
        ["export", stores("b"), tmp_path / "o.csv"],
        ["read", stores("b"), "--format", "csv"],
    ):
        code, _, err = call(*arguments)
        assert code == 2 and "cannot be written as text" in err
    assert not (tmp_path / "o.csv").exists()


def test_write_takes_any_table(tmp_path: Path, store: str, call) -> None:
    pq.write_table(TABLE.slice(0, 1), tmp_path / "a.parquet")
    assert call("write", store, tmp_path / "a.parquet")[0] == 0
    assert len(gs.open(store).read()) == 4
    assert call("write", store, tmp_path / "a.parquet", "--attr", "v")[0] == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(call, shell: str) -> None:
    code, out, _ = call("completion", shell)
    assert code == 0 and "_GRIDSTONE_COMPLETE" in out and "gridstone" in out


def test_the_shell_completes() -> None:
    asked = {**os.environ, "_GRIDSTONE_COMPLETE": "bash_complete", "COMP_WORDS": "gridstone ex", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "gridstone"], env=asked, capture_output=True, text=True, timeout=60)
    assert "plain,export" in done.stdout and "load" not in done.stdout, done.stderr


def test_the_shell_completes_options() -> None:
    asked = {**os.environ, "_GRIDSTONE_COMPLETE": "bash_complete", "COMP_WORDS": "gridstone ls --r", "COMP_CWORD": "2"}
    done = subprocess.run([sys.executable, "-m", "gridstone"], env=asked, capture_output=True, text=True, timeout=60)
    assert "plain,--recursive" in done.stdout, done.stderr


def test_export_to_standard_output_is_csv(tmp_path: Path, store: str, call, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("export", store, "o.csv")[0] == 0
    assert call("export", store, "-") == (0, (tmp_path / "o.csv").read_text(), "")
    code, out, err = call("export", store, "-", "--where", "v == 3", "--attr", "s", "--delimiter", "\\t")
    assert (code, out, err) == (0, '"x"\t"y"\t"s"\n3\t1.5\t""\n', "")
    assert not (tmp_path / "-").exists()
    for arguments in (["--format", "parquet"], ["--json"]):
        code, out, err = call("export", store, "-", *arguments)
        assert code == 2 and out == "" and "standard output" in err


@pytest.mark.parametrize("name", ["o.csv", "o.tsv", "o.parquet", "o.arrow"])
def test_export_takes_a_condition(tmp_path: Path, stores: Stores, store: str, call, name: str) -> None:
    code, _, err = call("export", store, tmp_path / name, "--where", "v > 1", "--box", "x=2:")
    assert code == 0, err
    assert call("load", stores("b"), tmp_path / name, "--dims", "x,y")[0] == 0
    assert gs.open(stores("b")).read().to_arrow().to_pylist() == [{"x": 3, "y": 1.5, "v": 3, "s": ""}]
    assert call("export", store, tmp_path / name, "--where", "nonsense >")[0] == 2
    code, _, err = call("export", store, tmp_path / "o.npy", "--where", "v > 1")
    assert code == 2 and "--where is for csv and parquet and feather" in err


def test_export_says_what_nulls_are(tmp_path: Path, stores: Stores, store: str, call) -> None:
    assert call("export", store, tmp_path / "o.csv", "--null", "NA")[0] == 0
    assert "NA" in (tmp_path / "o.csv").read_text()
    assert call("load", stores("b"), tmp_path / "o.csv", "--dims", "x,y", "--null", "NA")[0] == 0
    assert sorted(gs.open(stores("b")).read()["v"].tolist(), key=str) == [1, 3, None]
    assert call("export", store, tmp_path / "o.parquet", "--null", "NA")[0] == 2


@pytest.mark.parametrize("name", ["o.xyz", "o.rar", "o.csv.7z", "o.xlsx", "o.xyz.gz", "o.gs"])
def test_formats_that_are_not_known_by_their_names(
    tmp_path: Path, stores: Stores, store: str, call, monkeypatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(b"PK")
    for command in (["load", stores("u"), name, "--dims", "x"], ["export", store, name], ["write", store, name]):
        code, _, err = call(*command)
        assert code == 2 and "no format is known by" in err and ".parquet" in err and "--format" in err, err
    assert (tmp_path / name).read_bytes() == b"PK" and not gs.exists(stores("u"))
    assert call("load", stores("u"), "*.*", "--dims", "x")[0] == 2
    if not name.endswith(".gz"):
        (tmp_path / name).write_text("x,y,v,s\n1,0.5,3,a\n")
        assert call("load", stores("u"), name, "--dims", "x,y", "--format", "csv")[0] == 0
        assert call("write", store, name, "--format", "csv")[0] == 0
        assert call("export", store, name, "--format", "csv")[0] == 0


@pytest.mark.parametrize("name", ["o", "o.csv", "o.txt", "o.dat", "o.gz", "o.TXT.gz", "o.tab"])
def test_text_is_csv(tmp_path: Path, stores: Stores, store: str, call, name: str) -> None:
    assert call("export", store, tmp_path / name)[0] == 0
    assert call("load", stores("b"), tmp_path / name, "--dims", "x,y")[0] == 0
    assert len(gs.open(stores("b")).read()) == 3


def test_patterns_have_the_format_of_the_files_that_they_name(tmp_path: Path, stores: Stores, call) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    (tmp_path / "folder").mkdir()
    assert call("load", stores("a"), tmp_path / "*", "--dims", "x,y")[0] == 0
    (tmp_path / "b.csv").write_text("x,y,v,s\n")
    code, _, err = call("load", stores("a"), tmp_path / "*")
    assert code == 2 and "several formats (csv, parquet)" in err


@pytest.mark.parametrize(
    ("dim", "domain", "tile"),
    [
        ("t:datetime64[s]:2020-01-01T00:00:00..2020-01-02T00:00:00:3600", ("2020-01-01", "2020-01-02"), 3600),
        ("t:datetime64[s]:2020-01-01T00:00..2020-01-01T01:30", ("2020-01-01", "2020-01-01T01:30:59"), None),
        ("t:datetime64[ms]:2020-01-01 00:00..2020-01-02 00:00:00.5:10", ("2020-01-01", "2020-01-02T00:00:00.5"), 10),
        ("t:datetime64[D]:2020-01-01..2020-01-31:7", ("2020-01-01", "2020-01-31"), 7),
        ("t;datetime64[s];2020-01-01T00:00:00;2020-01-02T00:00:00;3600", ("2020-01-01", "2020-01-02"), 3600),
        ("x:int64:-5..5:4", (-5, 5), 4),
        ("x:float64:-0.5..1.5", (-0.5, 1.5), None),
        ("a..b:int64:0:9", (0, 9), None),
    ],
)
def test_dimensions_of_times_of_day(
    store_uri: str, call, dim: str, domain: tuple[object, object], tile: object
) -> None:
    code, _, err = call("create", store_uri, "--dim", dim, "--attr", "v:int8", "--sparse")
    assert code == 0, err
    made = gs.open(store_uri).schema.dims[0]
    kind = np.dtype(made.dtype)
    assert made.domain == tuple(np.array(domain, kind).tolist() if kind.kind != "M" else np.array(domain, kind))
    assert tile is None or int(np.asarray(made.tile).astype(np.int64)) == tile


def test_a_dimension_of_times_with_colons_alone_says_how(store_uri: str, call) -> None:
    dim = "t:datetime64[s]:2020-01-01T00:00:00:2020-01-02T00:00:00:3600"
    code, _, err = call("create", store_uri, "--dim", dim, "--attr", "v:int8")
    assert code == 2 and "2020-01-01T00:00:00..2020-01-02T00:00:00" in err
    assert "LOW..HIGH" in call("create", "--help")[1]
