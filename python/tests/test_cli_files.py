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
from gridstone import cli, io

TABLE = pa.table({"x": [1, 3, 3], "y": [0.5, 1.5, 1.5], "v": [1, None, 3], "s": ["a", "b,c", ""]})


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes]):
    """Runs the command line: (exit code, standard output, standard error)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.run([str(a) for a in arguments])
        found = capfdbinary.readouterr()
        return code, found.out.decode(errors="replace"), found.err.decode()

    return run


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
    assert code == 1 and "dims" in err and not gs.exists(stores("c"))
    assert call("load", stores("c"), tmp_path / "plain.parquet", "--dims", "x,y", "--no-duplicates")[0] == 1


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
    assert call("load", stores("a"), tmp_path / "a.csv", "--dims", "x")[0] == 1
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
        (["load", "u.gs", "missing.parquet"], 1, "no file"),
        (["load", "u.gs", "a.parquet", "--delimiter", ";"], 2, "--delimiter is for CSV"),
        (["load", "u.gs", "a.parquet", "--name", "v"], 2, "--name is for npy"),
        (["load", "u.gs", "a.parquet", "a.csv"], 2, "several formats"),
        (["load", "u.gs", "a.parquet", "--format", "xml"], 2, "xml"),
        (["load", "u.gs", "a.parquet", "--format", "npy"], 1, "a.parquet is no .npy file"),
        (["load", "u.gs", "a.csv", "--format", "parquet"], 1, "a.csv is no Parquet file"),
        (["export", "t.gs", "o.parquet", "--delimiter", ";"], 2, "--delimiter"),
        (["export", "t.gs", "o.csv", "--compression", "zstd"], 2, "--compression"),
        (["export", "t.gs", "o.parquet", "--compression", "tar"], 1, "compression"),
        (["export", "t.gs", "o.csv", "--fill", "0"], 2, "--fill"),
        (["export", "t.gs", "o.npy", "--attr", "v", "--attr", "s"], 2, "one attribute"),
        (["export", "t.gs", "o.npy", "--attr", "v"], 1, "float"),
        (["export", "t.gs", "no/o.csv"], 1, "no folder 'no'"),
        (["export", "none.gs", "o.csv"], 1, "none.gs"),
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
        assert code == 1 and "cannot be written as text" in err
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
