"""How commands end: a code for each command that can give it, errors as JSON, and standard streams that fail."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

import gridstone as gs
from gridstone import cli, errors
from gridstone.cli import outcome


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a sparse and a dense array, a group, and files that fit and that do not."""
    monkeypatch.chdir(tmp_path)
    schema = gs.Schema([gs.Dim("x", (0, 99))], [gs.Attr("v", "float64")], sparse=True)
    gs.create("a.gs", schema).write_cells({"x": [1, 2, 3]}, {"v": [1.5, 2.5, 3.5]})
    gs.array("d.gs", np.arange(12.0).reshape(3, 4), dims=["y", "x"], name="v")
    gs.group("g.gs", mode="a").create("one", schema)
    Path("good.csv").write_text("x,v\n5,1.5\n")
    Path("bad.csv").write_text("x,v\n5,1.5\nsix,2\n")
    Path("schema.json").write_text(schema.to_json())
    return tmp_path


# A command, and what its error says.

USAGE = [
    (["read", "a.gs", "--attr", "w"], "'w'"),
    (["read", "a.gs", "--box", "q=1:2"], "'q'"),
    (["read", "a.gs", "--box", "x=one:2"], "one"),
    (["read", "a.gs", "--where", "w > 1"], "w"),
    (["read", "a.gs", "--where", "v >"], "expected"),
    (["read", "a.gs", "--timestamp", "yesterday"], "yesterday"),
    (["read", "a.gs", "--limit", "-1"], "--limit"),
    (["query", "a.gs", "w > 1"], "w"),
    (["sql", "select w from 'a.gs'"], "w"),
    (["aggregate", "a.gs", "max(w)"], "w"),
    (["filter", "a.gs", "w > 1", "--to", "f.gs"], "w"),
    (["export", "a.gs", "o.csv", "--where", "w > 1"], "w"),
    (["export", "a.gs", "o.xml"], "no format is known"),
    (["load", "new.gs", "good.csv"], "--dims"),
    (["load", "new.gs", "good.csv", "--dims", "lat"], "lat"),
    (["load", "a.gs", "bad.csv"], "line 3"),
    (["write", "a.gs", "bad.csv"], "line 3"),
    (["delete", "a.gs"], "--coord"),
    (["delete", "a.gs", "--where", "w > 1"], "w"),
    (["delete", "a.gs", "--coord", "x=1000"], "outside its domain"),
    (["delete", "a.gs", "--all"], "give --yes"),
    (["delete", "g.gs", "--all", "--path", "/one"], "give --yes"),
    (["create", "n.gs", "--dim", "x:int64:9:0", "--attr", "v:int8"], "x"),
    (["alter", "a.gs", "--drop", "w"], "w"),
    (["resize", "a.gs", "x=5:6"], "only grows"),
    (["resize", "a.gs", "q=5:6"], "'q'"),
    (["diff", "a.gs"], "give B"),
    (["vacuum", "a.gs", "--keep", "ever"], "ever"),
    (["tag", "a.gs", "--delete"], "NAME"),
    (["consolidate", "a.gs", "--fragment", "zz"], "zz"),
    (["consolidate", "a.gs", "--box", "q=1:2"], "'q'"),
    (["copy", "a.gs", "c.gs", "--type", "v"], "NAME=VALUE"),
    (["advise", "good.csv", "--dims", "q"], "q"),
    (["nothing"], "nothing"),
    (["info"], "URI"),
]
ABSENT = [
    *(
        [[name, "no.gs"], "no.gs"]
        for name in ("info", "ls", "read", "history", "vacuum", "verify", "repair", "upgrade")
    ),
    *([[name, "no.gs"], "no.gs"] for name in ("consolidate", "tag")),
    (["read", "a.gs", "--version", "99"], "99"),
    (["read", "a.gs", "--version", "good"], "good"),
    (["info", "a.gs", "--path", "/no"], "/no"),
    (["read", "g.gs"], "its arrays"),
    (["query", "no.gs", "v > 1"], "no.gs"),
    (["sql", "from 'no.gs'"], "no.gs"),
    (["aggregate", "no.gs", "max(v)"], "no.gs"),
    (["filter", "no.gs", "v > 1", "--to", "f.gs"], "no.gs"),
    (["export", "no.gs", "o.csv"], "no.gs"),
    (["export", "a.gs", "no/o.csv"], "no folder"),
    (["load", "new.gs", "no.csv", "--dims", "x"], "no.csv"),
    (["write", "a.gs", "no.csv"], "no.csv"),
    (["create", "n.gs", "--schema", "no.json"], "no.json"),
    (["delete", "a.gs", "--csv", "no.csv"], "no.csv"),
    (["delete", "no.gs", "--all", "--yes"], "no.gs"),
    (["delete", "g.gs", "--all", "--path", "/no", "--yes"], "/no"),
    (["alter", "no.gs", "--drop", "v"], "no.gs"),
    (["resize", "no.gs", "x=0:9"], "no.gs"),
    (["copy", "no.gs", "c.gs"], "no.gs"),
    (["move", "g.gs", "/no", "/yes"], "/no"),
    (["diff", "a.gs", "no.gs"], "no.gs"),
    (["tag", "a.gs", "good", "--delete"], "good"),
    (["attach", "n.gs", "no.h5"], "no.h5"),
    (["advise", "no.csv"], "no.csv"),
    (["plot", "no.gs", "o.png"], "no.gs"),
]
CONFLICT = [
    (["create", "a.gs", "--dim", "x:int64:0:9", "--attr", "v:int8"], "exists"),
    (["filter", "a.gs", "v > 1", "--to", "d.gs"], "exists"),
    (["copy", "a.gs", "d.gs"], "already"),
    (["move", "g.gs", "/one", "/two"], "already"),
    (["tag", "a.gs", "taken"], "taken"),
]


def _told(call, arguments: list[str], code: int, message: str) -> None:
    """The command ends with the code, as lines and as JSON, and changes nothing on standard output."""
    found, out, err = call(*arguments)
    assert (found, out) == (code, "") and message in err and "Traceback" not in err, (found, out, err)
    found, out, err = call(*arguments, "--json")
    told = json.loads(err.splitlines()[-1])
    assert (found, out, set(told)) == (code, "", {"error"}), (found, out, err)
    assert told["error"]["exit_code"] == code and message in told["error"]["message"], told
    assert set(told["error"]) == {"kind", "message", "exit_code"}
    assert "Usage:" not in err and "error:" not in err


def _name(case: list[str] | str) -> str:
    return " ".join(case) if isinstance(case, list) else ""


@pytest.mark.parametrize(("arguments", "message"), USAGE, ids=_name)
def test_2_what_was_asked_for_is_wrong(call, arguments: list[str], message: str) -> None:
    _told(call, arguments, 2, message)


@pytest.mark.parametrize(("arguments", "message"), ABSENT, ids=_name)
def test_4_it_is_not_there(call, arguments: list[str], message: str) -> None:
    _told(call, arguments, 4, message)


@pytest.mark.parametrize(("arguments", "message"), CONFLICT, ids=_name)
def test_5_it_is_there_already(call, arguments: list[str], message: str) -> None:
    gs.group("g.gs", mode="a").group("two")
    gs.tag("a.gs", "taken")
    _told(call, arguments, 5, message)


def test_3_what_was_looked_for_is_found(call, here: Path) -> None:
    assert call("diff", "a.gs", "a.gs")[0] == 0
    gs.open("d.gs", mode="r+")[0, 0] = 7.0
    assert call("diff", "d.gs", "--version", "1")[0] == call("diff", "d.gs", "--version", "1", "--json")[0] == 3
    assert call("verify", "d.gs")[0] == call("verify", "d.gs", "--store")[0] == 0
    big = gs.array("big.gs", np.random.default_rng(0).random(40_000), name="v")
    file = max((path for path in (here / "big.gs").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    assert not gs.open(big.uri).verify().ok
    for arguments in (["verify", "big.gs"], ["verify", "big.gs", "--store"], ["repair", "big.gs"]):
        code, out, err = call(*arguments)
        assert (code, err) == (3, "") and "damage" in out, (code, out, err)
        code, out, err = call(*arguments, "--json")
        assert (code, err) == (3, "") and json.loads(out)
    # A read that meets damage has failed: it was not asked to look for any.
    code, out, err = call("read", "big.gs", "--limit", "40000", "--json")
    assert code == 1 and json.loads(err)["error"]["kind"] == "Corruption"


def test_1_the_work_failed(call, monkeypatch: pytest.MonkeyPatch) -> None:
    for raised, kind in (
        (errors.StorageError("the disk is full"), "Storage"), (errors.BudgetError("too large"), "Budget"),
        (errors.UnsupportedError("not yet"), "Unsupported"), (errors.AccessError("no key"), "Access"),
        (errors.CorruptionError("damaged"), "Corruption"), (PermissionError(13, "Permission denied", "a"), "Access"),
        (OSError(5, "Input/output error", "a"), "Storage"), (errors.CommitUnknownError("unknown"), "CommitUnknown"),
        (errors.SourceChangedError("changed"), "SourceChanged"),
    ):  # fmt: skip

        def failing(*_: object, error: BaseException = raised, **__: object) -> None:
            raise error

        monkeypatch.setattr(gs.Array, "scan", failing)
        code, out, err = call("read", "a.gs", "--json")
        assert (code, out) == (1, "") and json.loads(err)["error"]["kind"] == kind
        assert call("read", "a.gs")[0] == 1


def test_every_class_of_errors_has_a_code_and_a_kind() -> None:
    wanted = {
        "NotFoundError": 4,
        "MissingNameError": 4,
        "SnapshotExpiredError": 4,
        "ExistsError": 5,
        "ConflictError": 5,
    }
    usage = ("InputError", "SchemaError", "BoundsError", "MissingAttributeError", "MissingColumnError")
    wanted |= dict.fromkeys((*usage, "MissingLabelError"), 2)
    for name in errors.__all__:
        error = getattr(errors, name)("said")
        assert outcome.code_of(error) == wanted.get(name, 1), name
        assert outcome.kind_of(error) == name.removesuffix("Error")
    assert outcome.code_of(FileNotFoundError(2, "No such file", "f")) == 4
    assert outcome.message_of(FileNotFoundError(2, "No such file", "f")) == "f: no such file"
    assert outcome.kind_of(click.BadParameter("x")) == "Usage"


def test_130_interrupted(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gs.Array, "scan", interrupted)
    code, out, err = call("read", "a.gs", "--json")
    assert (code, out) == (130, "") and json.loads(err)["error"]["kind"] == "Interrupted"


def test_messages_do_not_act_on_a_terminal(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise errors.StorageError("file a\x1b[2J\u202e\x9bb\nsecond line")

    monkeypatch.setattr(gs.Array, "scan", failing)
    _, _, err = call("read", "a.gs")
    assert "a\\x1b[2J\\u202e\\x9bb\nsecond line\n" in err
    _, _, err = call("read", "a.gs", "--json")
    assert json.loads(err)["error"]["message"] == "file a\\x1b[2J\\u202e\\x9bb\nsecond line"


def test_json_escapes_what_acts_and_reads_back(call) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("s", "string")], sparse=True)
    text = "a\x1b[31m\x9b\x7f\u2028\u202eé"
    gs.create("t.gs", schema).write_cells({"x": [1]}, {"s": [text]})
    _, out, _ = call("read", "t.gs", "--json")
    assert out.count("\n") == 1 and json.loads(out)["s"] == text
    assert not set(out) & set("\x1b\x9b\x7f\u2028\u202e") and "é" in out


def test_an_option_after_two_dashes_asks_for_nothing() -> None:
    assert outcome.is_asked_for_json(["read", "a", "--json"]) and outcome.is_asked_for_json(
        ["read", "--format", "json"]
    )
    assert outcome.is_asked_for_json(["read", "--format=json"])
    assert not outcome.is_asked_for_json(["read", "--", "--json"]) and not outcome.is_asked_for_json(
        ["--format", "csv"]
    )


def test_help_names_the_codes(call) -> None:
    code, out, _ = call("--help")
    assert code == 0
    for number in ("0 ", "1 ", "2 ", "3 ", "4 ", "5 ", "130 ", "141 "):
        assert any(line.strip().startswith(number) for line in out.splitlines()), number
    for name in ("diff", "verify", "repair"):
        assert "exit code 3" in " ".join(call(name, "--help")[1].split())


# Standard streams. A process for each group of cases, since it is a process that has them.

_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(gs.__file__).parents[1])}
_PROGRAM = f"{sys.executable} -m gridstone"


def _shell(command: str) -> subprocess.CompletedProcess[str]:
    line = ["bash", "-c", command.replace("gridstone", _PROGRAM, 1)]
    return subprocess.run(line, env=_ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="the shell of POSIX")
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("gridstone sql 'select i from range(1000000) t(i)' --csv | head -1; exit ${PIPESTATUS[0]}", 141, None),
        ("gridstone read a.gs >&-", 1, "standard output cannot be written: it is closed"),
        ("gridstone read a.gs <&- 2>&- ", 0, None),
        ("gridstone load new.gs good.csv --dims x --json >&-", 1, "what the command did stays done"),
    ],
)
def test_streams_that_fail(command: str, code: int, message: str | None) -> None:
    found = _shell(command)
    assert found.returncode == code, found
    assert "Traceback" not in found.stderr and "Exception ignored" not in found.stderr
    assert found.stderr == "" if message is None else message in found.stderr, found.stderr
    assert gs.open("a.gs").verify().ok and ("load" not in command or len(gs.open("new.gs").read()) == 1)


def test_the_commands_of_the_guide_end_as_it_says(call) -> None:
    page = (Path(__file__).parents[3] / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
    made = re.search(r"<!--\n```python\n(.*?)```", page, re.DOTALL)
    assert made is not None
    exec(made[1], {})
    gs.open("ships.gs", mode="r+").delete(where="sog > 100")
    run = 0
    for block in re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            said = re.fullmatch(r"gridstone (.*?)(?: +# exits (\d+))?", line)
            assert said is not None, line
            code, _, err = call(*shlex.split(said[1]))
            assert code == int(said[2] or 0), (line, err)
            run += 1
    assert run >= 10


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
@pytest.mark.parametrize("options", ["", "--json"])
def test_a_full_disk(options: str) -> None:
    found = _shell(f"gridstone read a.gs {options} >/dev/full")
    assert found.returncode == 1 and "standard output cannot be written: No space left" in found.stderr
    assert found.stderr.count("\n") == 1


def test_the_answer_no_is_no_interruption(call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    code, _, err = call("delete", "a.gs", "--all", "--json")
    assert code == 1 and json.loads(err)["error"]["kind"] == "Failed" and gs.exists("a.gs")
    assert cli.run(["delete", "a.gs", "--all", "--yes"]) == 0 and not gs.exists("a.gs")


def test_what_the_user_typed_stays_in_messages(call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = str(tmp_path / "version=3" / "x.gs")
    monkeypatch.setattr("sys.argv", ["gridstone", "info", place])
    code, _, err = call("info", place)
    assert code == 4 and place in err
    gs.create(tmp_path / "s.gs", gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")]))
    condition = "v > 3 and fill='x"
    monkeypatch.setattr("sys.argv", ["gridstone", "read", "--where", condition])
    code, _, err = call("read", tmp_path / "s.gs", "--where", condition)
    assert code == 2 and f"  {condition}\n" in err
