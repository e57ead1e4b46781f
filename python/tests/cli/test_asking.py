"""The commands `sql`, `query` and `filter`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gridstone as gs


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an array of three cells."""
    monkeypatch.chdir(tmp_path)
    schema = gs.Schema([gs.Dim("x", (0, 99))], [gs.Attr("v", "float64"), gs.Attr("s", "string")], sparse=True)
    a = gs.create("a.gs", schema)
    a.write_cells({"x": [1, 2, 3]}, {"v": [1.5, 2.5, 3.5], "s": ["a", "it's", 'c"c']})
    return tmp_path


def test_rows_as_table_json_and_csv(call) -> None:
    query = "select x, s from 'a.gs' where v > 2 order by x"
    code, out, _ = call("sql", query)
    assert code == 0 and "it's" in out and "1.5" not in out
    code, out, _ = call("sql", query, "--json")
    assert [json.loads(line) for line in out.splitlines()] == [{"x": 2, "s": "it's"}, {"x": 3, "s": 'c"c'}]
    code, out, _ = call("sql", query, "--csv")
    assert out.splitlines() == ['"x","s"', '2,"it\'s"', '3,"c""c"']
    code, out, err = call("sql", query, "--limit", 1)
    assert "c" not in out.splitlines()[-2:] and "the first 1 rows" in err
    code, out, err = call("sql", "select 1 where false")
    assert code == 0 and "no rows" in err
    assert call("sql", query, "--csv", "--out", "o.csv")[0] == 0 and Path("o.csv").read_text().count("\n") == 3
    code, out, _ = call("sql", "select count(*) n from 'a.gs' where x = ?", "-p", "2", "--json")
    assert json.loads(out) == {"n": 1}


def test_into_arrays(call) -> None:
    code, out, _ = call("sql", "select x, v * 2 as w from 'a.gs'", "--to", "o.gs:/w", "--dims", "x", "--json")
    assert code == 0 and json.loads(out)["path"] == "/w"
    assert gs.open("o.gs", path="/w").read()["w"].tolist() == [3.0, 5.0, 7.0]
    code, out, _ = call("query", "a.gs", "v > 2", "--to", "q.gs")
    assert code == 0 and len(gs.open("q.gs").read()) == 2
    code, out, _ = call("filter", "a.gs", "v > 3", "--to", "f.gs", "--attr", "s")
    assert code == 0 and gs.open("f.gs").schema_names == ["s"]
    code, out, err = call("filter", "a.gs", "--box", "x=1:2", "--to", "f.gs")
    assert code == 5 and "exists" in err
    assert call("filter", "a.gs", "--box", "x=1:2", "--to", "f.gs", "--overwrite")[0] == 0
    assert len(gs.open("f.gs").read()) == 2


def test_a_limit_holds_for_what_is_written(call) -> None:
    question = "select i, 1 v from range(5) t(i)"
    assert call("sql", question, "--to", "x.gs", "--dims", "i", "--limit", 2)[0] == 0
    assert gs.open("x.gs").read()["i"].tolist() == [0, 1]
    assert call("query", "a.gs", "select x, v from cells", "--to", "s.gs", "--dims", "x", "--limit", 1)[0] == 0
    assert gs.open("s.gs").read()["v"].tolist() == [1.5]
    assert call("sql", question, "--to", "none.gs", "--dims", "i", "--limit", 0)[0] == 0
    assert len(gs.open("none.gs").read()) == 0
    for limit, kept in ((0, []), (1, ["a"]), (2, ["a", "it's"]), (9, ["a", "it's", 'c"c'])):
        assert call("query", "a.gs", "x >= 0", "--to", f"q{limit}.gs", "--limit", limit)[0] == 0
        assert gs.open(f"q{limit}.gs").read()["s"].tolist() == kept
    values = np.ma.MaskedArray(np.arange(6.0), mask=np.arange(6) == 1)
    gs.array("dense.gs", values, dims=["x"], name="v")
    assert call("query", "dense.gs", "x >= 1", "--to", "d.gs", "--limit", 2)[0] == 0
    found = gs.open("d.gs").read()
    assert found["x"].tolist() == [1, 2] and found["v"].tolist() == [None, 2.0]


def test_mistakes_in_rows_that_are_written_are_told(call) -> None:
    question = "select i, cast(case when i = 200000 then 'a' else '1' end as int) v from range(300000) t(i)"
    code, _, err = call("sql", question, "--to", "x.gs", "--dims", "i")
    assert code == 2 and "Could not convert" in err and not Path("x.gs").exists()


@pytest.mark.parametrize("command", [["sql", "select x from 'a.gs'"], ["query", "a.gs", "x > 1"]])
@pytest.mark.parametrize(
    "pair",
    [
        ["--to", "o.gs", "--out", "o.csv"], ["--to", "o.gs", "--explain"], ["--to", "o.gs", "--analyze"],
        ["--out", "o.csv", "--explain"], ["--to", "o.gs", "--csv"], ["--explain", "--csv"],
    ],
)  # fmt: skip
def test_options_that_exclude_each_other_are_refused(call, command: list[str], pair: list[str]) -> None:
    code, out, err = call(*command, *pair)
    assert code == 2 and out == "" and ("exclude each other" in err or "leave it out" in err)
    assert not Path("o.gs").exists() and not Path("o.csv").exists()


def test_query_takes_conditions_and_sql(call) -> None:
    code, out, _ = call("query", "a.gs", "v > 2 and s = 'it''s'", "--json")
    assert code == 0 and json.loads(out) == {"x": 2, "v": 2.5, "s": "it's"}
    code, out, _ = call("query", "a.gs", "select max(v) as top from cells where x < ?", "-p", "3", "--json")
    assert json.loads(out) == {"top": 2.5}
    gs.open("a.gs", mode="r+").write_cells({"x": [9]}, {"v": [9.0], "s": ["z"]})
    code, out, _ = call("query", "a.gs", "from cells select count(*) as n", "--version", "2", "--json")
    assert json.loads(out) == {"n": 3}
    assert call("query", "a.gs", "v > 2", "--dims", "x")[0] == 2


def test_plans(call) -> None:
    code, out, _ = call("sql", "select v from 'a.gs' where x < 3", "--explain")
    assert code == 0 and "PYTHON_ARROW_SCAN" in out and "x < 3" in out
    code, out, _ = call("sql", "select v from 'a.gs' where x < 3", "--analyze", "--json")
    assert json.loads(out)["scans"][0]["stats"]["cells_returned"] == 2
    code, out, _ = call("query", "a.gs", "x < 3", "--analyze", "--json")
    assert json.loads(out)["scans"][0]["stats"]["cells_returned"] == 2
    assert "where x < 3" in call("query", "a.gs", "x < 3", "--explain")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["sql", "selec 1"], 2, "syntax error"),
        (["sql", "select sgo from 'a.gs'"], 2, "sgo"),
        (["sql", "from 'no.gs'"], 4, "no.gs"),
        (["sql", "from 'no.parquet'"], 4, "no.parquet"),
        (["sql", "select 1", "--dims", "x"], 2, "--to"),
        (["query", "no.gs", "v > 1"], 4, "no.gs"),
        (["query", "a.gs", "sgo > 1"], 2, "sgo"),
        (["query", "a.gs", "v >"], 2, "expected"),
        (["filter", "a.gs", "sgo > 1", "--to", "f.gs"], 2, "sgo"),
        (["filter", "a.gs", "v > 1"], 2, "--to"),
    ],
)
def test_exit_codes(call, arguments: list[str], code: int, message: str) -> None:
    found = call(*arguments)
    assert found[0] == code and message in found[2]


def test_errors_as_json(call) -> None:
    code, out, err = call("sql", "from 'no.gs'", "--json")
    assert code == 4 and out == "" and json.loads(err)["error"]["kind"] == "NotFound"


def test_a_query_from_a_pipe() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "gridstone", "sql", "--csv"], input="select count(*) as n\nfrom 'a.gs'\n",
        env={**os.environ, "PYTHONPATH": str(Path(gs.__file__).parents[1])},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (0, '"n"\n3\n'), found.stderr
