"""The shell of `gridstone sql`: statements over lines, dot commands, completion, and what comes from a pipe."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridstone as gs
from gridstone.errors import GridstoneError
from gridstone.queries import completion, shell, statement
from gridstone.queries.console import Console

Typed = str | type[BaseException]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an array of three cells, a group of two arrays, and a store in a folder."""
    monkeypatch.chdir(tmp_path)
    schema = gs.Schema([gs.Dim("x", (0, 99))], [gs.Attr("v", "float64"), gs.Attr("group", "string")], sparse=True)
    gs.create("a.gs", schema).write_cells({"x": [1, 2, 3]}, {"v": [1.5, 2.5, 3.5], "group": ["a", "it's|z", 'c"c']})
    group = gs.group("store.gs", mode="a")
    for path in ("ports", "b/it's q"):
        group.create(path, gs.Schema([gs.Dim("port", (0, 9))], [gs.Attr("name", "string")], sparse=True))
    (tmp_path / "data").mkdir()
    gs.create("data/deep.gs", schema)
    return tmp_path


@pytest.fixture
def piped(call, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs `gridstone sql` over what a pipe gives."""

    def run(text: str, *arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        return call("sql", *arguments)

    return run


def _typed(monkeypatch: pytest.MonkeyPatch, *lines: Typed) -> tuple[list[str], list[str], list[str]]:
    """What the shell asks for, carries out and tells when these lines are typed."""
    left: Iterator[Typed] = iter([*lines, EOFError])
    asked: list[str] = []
    commands: list[str] = []
    told: list[str] = []

    def read(prompt: str) -> str:
        found = next(left)
        if isinstance(found, str):
            return found
        raise found

    def answer(query: str) -> None:
        asked.append(query)
        if "bad" in query:
            raise GridstoneError("it is bad")
        if "long" in query:
            raise KeyboardInterrupt

    def command(line: str) -> bool:
        commands.append(line)
        return line != ".exit"

    monkeypatch.setattr(shell, "_reader", lambda words, before: read)
    assert shell.shell(answer, command, lambda error: told.append(str(error))) == 0
    return asked, commands, told


def test_statements_end_with_a_semicolon(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, _, told = _typed(
        monkeypatch, "select 1;", "", "select", "  ';' as a -- ; no", ";", "bad;", "dropped", KeyboardInterrupt,
        "long;", "/* ; ", "*/ select 2; ", "select $$;", "$$;", "last",
    )  # fmt: skip
    assert asked == [
        "select 1;", "select\n  ';' as a -- ; no\n;", "bad;", "long;", "/* ; \n*/ select 2; ", "select $$;\n$$;",
        "last",
    ]  # fmt: skip
    assert told == ["it is bad", "interrupted"]


def test_dot_commands_are_lines_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, commands, _ = _typed(monkeypatch, ".help", "-- a remark", ".mode csv", "select", ".5;", ".exit", "never;")
    assert commands == [".help", ".mode csv", ".exit"]
    assert asked == ["select\n.5;"]


@given(st.text("'\"$-/*;\n ab", max_size=40))
def test_pieces_are_the_whole_text(text: str) -> None:
    found = list(statement.pieces(text))
    assert "".join(text[one.start : one.end] for one in found) == text
    assert all(one.end > one.start for one in found)
    assert statement.quoted(statement.in_quotes(text)) == [text]


def test_a_file_takes_one_answer(piped) -> None:
    code, _, err = piped("create view b as from 'a.gs'; select x from b where x < 3;\n", "--csv", "--out", "o.csv")
    assert (code, err) == (0, "") and Path("o.csv").read_text() == '"x"\n1\n2\n'
    code, _, err = piped("select 1 as a;\nselect 2 as a;\n", "--csv", "--out", "o.csv")
    assert code == 2 and "--out" in err and Path("o.csv").read_text() == '"a"\n1\n'


def test_each_statement_is_written_up_to_the_limit(piped) -> None:
    text = "select i from range(5) t(i);\nselect i + 7 as i from range(5) t(i);\n"
    code, out, err = piped(text.replace("i from", "i, 1 as v from"), "--to", "o.gs", "--dims", "i", "--limit", "2")
    assert (code, err) == (0, "") and out.count("o.gs") == 2
    assert gs.open("o.gs").read()["i"].tolist() == [0, 1, 7, 8]


def test_tables_and_columns_are_listed(piped) -> None:
    code, out, _ = piped(".tables\n.tables store.gs;\n")
    assert code == 0
    assert out.splitlines() == [
        "a.gs",
        "store.gs:/b/it's q",
        "store.gs:/ports",
        "store.gs:/b/it's q",
        "store.gs:/ports",
    ]
    code, out, _ = piped(".mode json\n.schema 'a.gs'\n")
    assert [tuple(json.loads(line).values()) for line in out.splitlines()] == [
        ("a.gs", "x", "BIGINT"), ("a.gs", "v", "DOUBLE"), ("a.gs", "group", "VARCHAR"),
    ]  # fmt: skip
    code, out, _ = piped(".mode csv\n.schema\n")
    assert code == 0 and out.count("\n") == 8 and '"store.gs:/b/it\'s q","name","VARCHAR"' in out
    assert [piped(f".{command} no.gs")[0] for command in ("schema", "tables")] == [4, 4]


def test_an_array_that_cannot_be_opened_hides_no_other(piped, here: Path) -> None:
    for file in (here / "data" / "deep.gs").rglob("*"):
        if file.is_file():
            file.write_bytes(b"no")
    (here / "data" / "deep.gs").rename("broken.gs")
    code, out, _ = piped(".tables\n.mode csv\n.schema\n")
    assert code == 0 and "a.gs\n" in out and '"a.gs","v","DOUBLE"' in out


def test_modes(piped) -> None:
    query = "select v, \"group\" from 'a.gs' where x > 1 order by x;\n"
    assert piped(f".mode csv\n{query}")[1].splitlines() == ['"v","group"', '2.5,"it\'s|z"', '3.5,"c""c"']
    assert json.loads(piped(f".mode JSON\n{query}")[1].splitlines()[0]) == {"v": 2.5, "group": "it's|z"}
    assert piped(f".mode line\n{query}")[1].splitlines()[:3] == ["    v = 2.5", "group = it's|z", ""]
    assert piped(f".mode markdown\n{query}")[1].splitlines() == [
        "| v | group |", "| --- | --- |", "| 2.5 | it's\\|z |", '| 3.5 | c"c |',
    ]  # fmt: skip
    assert piped(f".mode csv\n.mode table\n{query}", "--json")[1] == piped(query)[1]
    assert piped(".mode\n", "--csv")[1] == "mode: csv\n"
    assert piped(f".mode line\n{query}", "--limit", 1)[1].count("v = ") == 1
    assert piped(f".mode markdown\n{query}", "--out", "o.md")[0] == 0 and Path("o.md").read_text().count("\n") == 4


def test_the_timer(piped) -> None:
    _, out, err = piped(".timer\n.timer on\nselect 1; select 2;\n.timer off\nselect 3;\n", "--csv")
    assert out.startswith("timer: off\n") and err.count("time: ") == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (".nothing", "no command '.nothing'; there are .exit, .help, .mode, .quit, .schema, .tables, .timer"),
        (".", "no command '.'"),
        (".mode xml", ".mode takes table, csv, json, line or markdown, found 'xml'"),
        (".timer maybe", ".timer takes on or off, found 'maybe'"),
        (".help me", ".help takes nothing, found 'me'"),
    ],
)
def test_mistakes_in_dot_commands(piped, line: str, message: str) -> None:
    code, out, err = piped(f"{line}\nselect 1;")
    assert code == 2 and out == "" and message in err


def test_help_names_every_command(piped) -> None:
    _, out, _ = piped(".help\n.exit\nselect 1;")
    assert [line.split()[0] for line in out.splitlines()] == [
        ".exit", ".help", ".mode", ".quit", ".schema", ".tables", ".timer",
    ]  # fmt: skip


def test_tables_and_views_stay_for_the_next_statement(piped) -> None:
    text = "create table t as from 'a.gs' where x < 3;\ncreate view w as select max(v) as top from 'a.gs';\n"
    code, out, err = piped(f"{text}select count(*) n from t; from w;\n.tables\n.schema w\n", "--csv")
    assert (code, err) == (0, "")
    assert out.splitlines()[:4] == ['"n"', "2", '"top"', "3.5"]
    assert out.splitlines()[-4:] == ["t", "w", '"table","column","type"', '"w","top","DOUBLE"']
    assert piped(f"{text}from t;", "--to", "o.gs", "--dims", "x")[0] == 0 and len(gs.open("o.gs").read()) == 2


def test_a_pipe_ends_at_the_first_error(piped) -> None:
    code, out, err = piped("select 1 as a;\nselect sgo from 'a.gs';\nselect 2 as a;", "--csv")
    assert code == 2 and out == '"a"\n1\n' and "sgo" in err
    assert piped("-- nothing\n")[0] == 2
    assert piped("select 1 -- no semicolon", "--csv")[0] == 0


def test_a_console_sees_later_versions() -> None:
    console = Console()

    def count(text: str) -> Any:
        (one,) = console.statements(text)
        found: Any = console.ask(one)
        return None if found is None else found.to_arrow().column(0).to_pylist()

    assert count("create view w as select count(*) from 'a.gs'") is None
    assert count("from w") == count("select count(*) from 'a.gs'") == [3]
    gs.open("a.gs", mode="r+").write_cells({"x": [9]}, {"v": [9.0], "group": ["z"]})
    assert count("from w") == count("select count(*) from 'a.gs'") == [4]
    gs.delete("a.gs")
    with pytest.raises(GridstoneError, match=r"a\.gs"):
        count("from w")
    assert count("select 1") == [1]
    console.close()


def test_a_half_read_answer_leaves_the_console_in_order() -> None:
    wide = gs.array("wide.gs", np.arange(400_000).reshape(-1, 4), dims=["row", "column"])
    console = Console()
    for _ in range(3):
        (one,) = console.statements(f"select * from 'wide.gs', range({wide.size})")
        with console.ask(one) as rows:  # type: ignore[union-attr]
            assert next(iter(rows)).num_rows > 0
        (one,) = console.statements("select 42")
        assert console.ask(one).to_arrow().column(0).to_pylist() == [42]  # type: ignore[union-attr]
    console.close()


# Completion.


@pytest.fixture
def words() -> Iterator[completion.Words]:
    console = Console()
    yield completion.Words(console, {".help": (), ".mode": ("table", "csv"), ".schema": None})
    console.close()


@pytest.mark.parametrize(
    ("before", "line", "rest", "wanted"),
    [
        ("", ".", "", [".help", ".mode", ".schema"]),
        ("-- a remark\n", ".m", "", [".mode"]),
        ("", ".mode c", "", ["csv"]),
        ("", ".schema store.gs:/p", "", ["store.gs:/ports"]),
        ("", "from ", "", ["'a.gs'", "'store.gs:/b/it''s q'", "'store.gs:/ports'"]),
        ("", "from a", "", ["'a.gs'"]),
        ("", "from 'st", "", ["store.gs:/b/it''s q'", "store.gs:/ports'"]),
        ("", "from 'a", "'", ["a.gs"]),
        ("", "from 'da", "", ["data/"]),
        ("", "from 'data/", "", ["data/deep.gs'"]),
        ("", "from 'store.gs:/b/it''", "", ["store.gs:/b/it''s q'"]),
        ("", "select ", " from 'a.gs'", ["x", "v", '"group"']),
        ("", 'select "gr', " from 'a.gs'", ['group"']),
        ("select v\n", "from 'a.gs' as a where a.", "", ["x", "v", '"group"']),
        ("", "from 'no.gs' where no", "", ["none", "not"]),
        ("", "SEL", "", ["SELECT"]),
        ("", "select 1 -- fr", "", []),
        ("select /* a\n", "sel", "", []),
    ],
)
def test_completion(words: completion.Words, before: str, line: str, rest: str, wanted: list[str]) -> None:
    found = words.after(before, line, rest)
    assert found.words[: len(wanted)] == wanted and (wanted or not found.words)
    if wanted:
        assert line[len(line) - found.length :].lstrip("\"'").casefold() in wanted[0].casefold()


def test_completion_knows_tables_and_functions(words: completion.Words) -> None:
    (one,) = words._console.statements('create table "my ships" as select 1 as knots')
    words._console.ask(one)
    assert words.after("", "from my", "").words[0] == '"my ships"'
    assert words.after("", "select kno", ' from "my ships"').words == ["knots"]
    assert "median" in words.after("", "select med", "").words


def test_the_terminal_completes(words: completion.Words) -> None:
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.document import Document
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    known = completion.completer(words, ["from 'a.gs'"])
    first = next(iter(known.get_completions(Document("where gr"), None)))
    assert (first.text, first.start_position) == ('"group"', -2)
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        read = shell._reader(words, ["select *"])
        keys.send_text("from 'a.gs';\r")
        assert read("...> ") == "from 'a.gs';"


def test_the_shell_reads_plainly_without_prompt_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    assert shell._reader(None, []) is input
