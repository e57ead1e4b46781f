"""The command line: what it prints, its exit codes, and that interrupting it changes nothing."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from places import Stores

import gridstone as gs
from gridstone import cli


@pytest.fixture
def loaded(tmp_path: Path, stores: Stores, call) -> str:
    """A store of four cells."""
    file = tmp_path / "a.csv"
    file.write_text("x,y,v,s\n1,2,0.5,a\n3,4,,b\n3,4,1.5,c\n9,9,2.5,\n")
    code, _, err = call("load", stores("a"), file, "--dims", "x,y")
    assert code == 0 and "duplicates" in err
    return stores("a")


def test_create(tmp_path: Path, stores: Stores, call) -> None:
    uri = stores("c")
    code, out, _ = call(
        "create", uri, "--dim", "x:int64:0:999:100", "--dim", "t;datetime64[s];2026-01-01;2026-12-31",
        "--attr", "v:float32:nullable:zstd:3", "--attr", "n:int16:fill=-1", "--sparse", "--json",
    )  # fmt: skip
    assert code == 0
    schema = gs.Schema.from_json(json.dumps(json.loads(out)["schema"]))
    assert schema == gs.open(uri).schema
    assert schema.dim("x").tile == 100 and schema.attr("v").nullable and schema.attr("n").fill == -1
    code, _, err = call("create", uri, "--dim", "x:int64:0:9", "--attr", "v:int8")
    assert code == 5 and "error:" in err
    curve = ["create", stores("h"), "--dim", "x:int64:0:9", "--dim", "y:float64:0:9", "--attr", "v:int8"]
    assert call(*curve, "--sparse", "--cell-order", "hilbert")[0] == 0
    assert gs.open(stores("h")).schema.cell_order == "hilbert"
    (tmp_path / "schema.json").write_text(schema.to_json())
    assert call("create", uri, "--schema", tmp_path / "schema.json", "--overwrite")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["create", "u.gs"],
        ["create", "u.gs", "--dim", "x", "--attr", "v:int8"],
        ["create", "u.gs", "--dim", "x:int64:a:9", "--attr", "v:int8"],
        ["load", "u.gs", "missing.csv"],
        ["read"],
        ["delete", "u.gs"],
        ["read", "u.gs", "--order", "zig"],
    ],
)
def test_usage_mistakes_exit_with_2(tmp_path: Path, monkeypatch, call, arguments: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments)
    assert code == 2 and out == "" and "Error" in err
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_exits_with_4(tmp_path: Path, stores: Stores, call) -> None:
    for arguments in (["info", stores("no")], ["load", stores("u"), tmp_path / "no.csv", "--dims", "x"]):
        code, out, err = call(*arguments)
        assert code == 4 and out == "" and "no" in err


def test_interrupt_exits_with_130(loaded: str, monkeypatch, call) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gs.Array, "scan", interrupted)
    code, _, err = call("read", loaded)
    assert code == 130 and "not committed" in err


def test_info_and_ls(loaded: str, call) -> None:
    code, out, _ = call("info", loaded)
    assert code == 0 and "sparse" in out and "fragments: 1" in out and "full" in out
    told = json.loads(call("info", loaded, "--json")[1])
    assert told["tiles"]["cells"] == 4 and told["nonempty_domain"] == [[1, 9], [2, 9]]
    assert json.loads(call("ls", loaded, "--json")[1]) == [{"name": "/", "path": "/", "kind": "array"}]
    assert "array" in call("ls", loaded)[1]


def test_info_of_a_dense_array(stores: Stores, call) -> None:
    gs.array(stores("d"), np.zeros((10, 10))).meta["unit"] = "m"
    code, out, _ = call("info", stores("d"))
    assert code == 0 and "dense" in out and "unit" in out
    gs.group(stores("g"), mode="a").create("a", gs.open(stores("d")).schema)
    assert "a" in call("info", stores("g"))[1]


@pytest.fixture
def tree(stores: Stores) -> str:
    """A store of groups: /a/b, /a/g/c, and /e without anything."""
    root = gs.group(stores("tree"), mode="a")
    root.meta["title"] = "of trees"
    array = root.create("a/b", gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int8")]))
    array.write(np.arange(10, dtype="int8"), message="numbers")
    root.create("a/g/c", array.schema)
    root.group("e")
    with gs.transaction(stores("tree"), "both") as tx:
        tx["/a/b"][0] = tx["/a/g/c"][0] = 5
    root.meta["title"] = "trees"
    gs.tag(stores("tree"), "kept", 7)
    return stores("tree")


def test_info_of_a_group(tree: str, call) -> None:
    code, out, err = call("info", tree)
    assert (code, err) == (0, "") and "group, version 9" in out and "meta title = 'trees'" in out and "/a" in out
    told = json.loads(call("info", tree, "--json")[1])
    assert (told["path"], told["version"], told["metadata"], told["key_id"]) == ("/", 9, {"title": "trees"}, None)
    assert [(c["name"], c["path"], c["kind"]) for c in told["children"]] == [("a", "/a", "group"), ("e", "/e", "group")]
    then = json.loads(call("info", tree, "--version", "3", "--path", "/a", "--json")[1])
    assert (then["path"], then["version"], then["metadata"]) == ("/a", 3, {})
    assert [child["path"] for child in then["children"]] == ["/a/b"]


def test_ls_of_all_below(tree: str, loaded: str, call) -> None:
    below = ["/a", "/a/b", "/a/g", "/a/g/c", "/e"]
    for option in ("-r", "--recursive"):
        found = json.loads(call("ls", tree, option, "--json")[1])
        assert [entry["path"] for entry in found] == below and set(found[0]) == {"name", "path", "kind"}
    assert [entry["path"] for entry in json.loads(call("ls", tree, "--json")[1])] == ["/a", "/e"]
    code, out, err = call("ls", tree, "-r", "--path", "/a")
    assert (code, err) == (0, "") and all(path in out for path in below[1:4]) and "/e" not in out
    assert call("ls", loaded, "-r", "--json")[1] == call("ls", loaded, "--json")[1]
    assert call("ls", tree, "-r", "--path", "/zz")[0] == 4


def test_history_of_a_group(tree: str, call) -> None:
    code, out, err = call("history", tree, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [(v["version"], v["message"]) for v in found] == [
        (number, {4: "numbers", 7: "both"}.get(number)) for number in range(1, 10)
    ]
    assert [operation["op"] for operation in found[6]["operations"]] == ["add_fragments"] * 2
    assert found[6]["tags"] == ["kept"] and "set_metadata" in {operation["op"] for operation in found[7]["operations"]}
    assert [v["version"] for v in json.loads(call("history", tree, "--path", "/a/b", "--json")[1])] == [3, 4, 7]
    assert json.loads(call("history", tree, "--path", "/e", "--json")[1]) == found
    code, out, _ = call("history", tree, "--path", "/a/g")
    assert code == 0 and "both" in out and "numbers" in out and "create" in out
    assert call("history", tree, "--path", "/zz")[0] == 4


def test_what_needs_an_array_names_those_in_a_group(tree: str, call) -> None:
    for command in (["read", tree], ["consolidate", tree], ["verify", tree]):
        code, out, err = call(*command)
        assert (code, out) == (4, "") and "its arrays: ['/a/b', '/a/g/c']" in err


def test_read(loaded: str, tmp_path: Path, call) -> None:
    code, out, _ = call("read", loaded, "--box", "x=3:9", "--format", "csv")
    assert code == 0 and out.splitlines()[1:] == ['3,4,,"b"', '3,4,1.5,"c"', "9,9,2.5,"]
    rows = [json.loads(line) for line in call("read", loaded, "--json", "--attr", "v", "--limit", "2")[1].splitlines()]
    assert rows == [{"x": 1, "y": 2, "v": 0.5}, {"x": 3, "y": 4, "v": None}]
    assert call("read", loaded, "--format", "arrow", "--out", tmp_path / "o.arrow")[0] == 0
    assert pa.ipc.open_stream(tmp_path / "o.arrow").read_all().num_rows == 4
    code, out, err = call("read", loaded, "--limit", "3")
    assert code == 0 and out.count("\n") >= 5 and "first 3" in err
    assert call("read", loaded, "--version", "1", "--json")[1] == ""
    code, out, _ = call("read", loaded, "--where", "v > 1 and x < 9", "--format", "csv")
    assert code == 0 and out.splitlines()[1:] == ['3,4,1.5,"c"']
    code, out, err = call("read", loaded, "--box", "x=3:9", "--where", "velocity > 1")
    assert code == 2 and "velocity" in err and out == ""
    for box in ("x", "x=a:b", "q=1:2"):
        assert call("read", loaded, "--box", box)[0] == 2


def test_write_and_delete(loaded: str, tmp_path: Path, call) -> None:
    (tmp_path / "b.csv").write_text("y,x,s,v\n5,5,d,1\n")
    code, out, _ = call("write", loaded, tmp_path / "b.csv", "-m", "more", "--json")
    assert code == 0 and json.loads(out)["cells_written"] == 1
    assert call("delete", loaded, "--coord", "x=3,y=4")[0] == 0
    assert gs.open(loaded).read()["x"].tolist() == [1, 5, 9]
    assert call("delete", loaded, "--csv", tmp_path / "b.csv")[0] == 0
    assert call("delete", loaded, "--box", "x=3:4", "--where", "y > 1000000")[0] == 0
    assert call("delete", loaded, "--where", "nobody > 3")[0] == 2
    assert call("delete", loaded, "--where", "x > 3", "--coord", "x=3,y=4")[0] == 2
    assert gs.open(loaded).read()["x"].tolist() == [1, 9]
    history = json.loads(call("history", loaded, "--json")[1])
    assert [v["version"] for v in history] == [1, 2, 3, 4, 5] and history[2]["message"] == "more"
    assert "more" in call("history", loaded)[1]
    assert call("delete", loaded, "--coord", "x=3")[0] == 2


def test_write_npy(tmp_path: Path, stores: Stores, call) -> None:
    gs.array(stores("d"), np.zeros((4, 5)))
    np.save(tmp_path / "v.npy", np.ones((2, 5)))
    assert call("write", stores("d"), tmp_path / "v.npy", "--box", "d0=1:2")[0] == 0
    assert gs.open(stores("d"))[...].sum(axis=1).tolist() == [0, 5, 5, 0]
    code, _, err = call("write", stores("d"), tmp_path / "v.npy")
    assert code == 2 and "(2, 5)" in err
    schema = gs.Schema([gs.Dim("x", (0, 19), 5)], [gs.Attr("v", "float32"), gs.Attr("w", "int32", fill=-1)])
    gs.create(stores("two"), schema)
    np.save(tmp_path / "n.npy", np.arange(20))
    assert call("write", stores("two"), tmp_path / "n.npy", "--attr", "v")[0] == 0
    assert gs.open(stores("two"))["v"][...].tolist() == list(range(20))
    assert gs.open(stores("two"))["w"][...].tolist() == [-1] * 20
    code, _, err = call("write", stores("two"), tmp_path / "n.npy")
    assert code == 2 and "say which one" in err
    (tmp_path / "bad.npy").write_bytes(b"no array")
    assert call("write", stores("d"), tmp_path / "bad.npy")[0] == 2


class Terminal(io.StringIO):
    """Standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_delete_a_store(loaded: str, call, monkeypatch) -> None:
    code, _, err = call("delete", loaded, "--all")
    assert code == 2 and "give --yes" in err and gs.exists(loaded)
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    code, _, err = call("delete", loaded, "--all")
    assert code == 1 and "the answer was no" in err and gs.exists(loaded)
    monkeypatch.setattr("click.confirm", lambda *_, **__: (_ for _ in ()).throw(cli.click.Abort()))
    assert call("delete", loaded, "--all")[0] == 130
    assert gs.exists(loaded)
    assert call("delete", loaded, "--all", "--yes", "--json")[0] == 0
    assert not gs.exists(loaded)
    assert call("delete", loaded, "--all", "--yes")[0] == 4


def test_plot(loaded: str, tmp_path: Path, stores: Stores, call) -> None:
    pytest.importorskip("matplotlib")
    for extra in ([], ["--mbrs", "--fragments"], ["--box", "x=1:5", "--dims", "y,x"]):
        code, out, _ = call("plot", loaded, tmp_path / "p.png", *extra)
        assert code == 0 and out.strip().endswith("p.png")
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    gs.array(stores("d"), np.arange(2000).reshape(40, 50))
    assert call("plot", stores("d"), tmp_path / "d.png", "--fragments")[0] == 0
    assert call("plot", stores("d"), tmp_path / "d.docx")[0] == 2
    assert call("plot", stores("d"), tmp_path / "no" / "d.png")[0] == 2


def test_cells_are_corrected(stores: Stores, loaded: str, call) -> None:
    code, out, _ = call(
        "update", loaded, "--set", "v=v * 10", "--set", "s='it''s = 1'", "--where", "x == 3", "--dry-run"
    )
    assert code == 0 and out == "2 cells would change; version 2 stays the newest\n"
    change = ["update", loaded, "--set", "v=v * 10", "--set", "s='it''s = 1'", "--box", "x=3:3", "-m", "wrong unit"]
    assert call(*change)[:2] == (0, "version 3: 2 cells changed\n")
    a = gs.open(loaded)
    assert sorted(a.read(where="x == 3")["v"].filled(-1)) == [-1, 15] and a.history()[-1].message == "wrong unit"
    assert a.read({"x": (3, 3)})["s"].tolist() == ["it's = 1"] * 2
    code, out, _ = call("update", loaded, "--set", "v=0", "--where", "x > 100", "--json")
    assert code == 0 and json.loads(out) == {"version": 3, "cells": 0, "dry_run": False}
    for mistake, said in (("v", "NAME=VALUE"), ("s=moored", "'moored'"), ("x=1", "dimension"), ("no=1", "no attribute"),
                          ("s=", "''"), ("v=mean(v)", "gridstone aggregate")):  # fmt: skip
        code, _, err = call("update", loaded, "--set", mistake)
        assert code in (1, 2) and said in err and "gs." not in err and gs.open(loaded).version == 3
    code, out, _ = call("update", loaded, "--set", "v=NULL", "--where", "x == 3", "--dry-run", "--json")
    assert code == 0 and json.loads(out)["cells"] == 2
    for chosen, cells in ((["--where", "v is null"], 1), (["--box", "x=3:9"], 3), (["--coord", "x=3,y=4"], 2)):
        code, out, _ = call("delete", loaded, *chosen, "--dry-run")
        assert code == 0 and out == f"{cells} cells would go; version 3 stays the newest\n"
    assert call("delete", loaded, "--all", "--dry-run")[0] == 2 and gs.open(loaded).count() == 4
