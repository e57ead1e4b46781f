"""Promise: messages are in the user's words: no tick, no internal name, on the command line no word of Python.

1. The texts of all messages are read in the sources of the package and of the core.
2. Errors of every class are raised, from Python and from the command line, and what they say is read by the same rules.
"""

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from message_rules import faults

import gridstone as gs
from gridstone import cli, errors, io

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "python" / "gridstone"
CRATES = ROOT / "crates"
CLICK = {"UsageError", "BadParameter", "ClickException"}
DEBUG = set(
    re.findall(
        r"\w+",
        "asked block chunk column counts digits dim dimensions end found given id key kind left left_name lo "
        "hi max_shape name named names object pipeline place right right_name root scheme shape shown sides "
        "size sizes sought start step symbol template text twice uri value what written MARK SCALAR_AXIS "
        "other folder path level verify unit",
    )
)
"""What `{…:?}` shows in messages of the core: texts and lists of numbers, which it puts in quotes and brackets."""


def _template(node: ast.expr) -> str:
    """The text of a message, with `x` for each value in it."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_template(part) for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _template(left) + _template(right)
    return "x"


def _of_python() -> Iterator[tuple[str, str, bool]]:
    """Where a message is made, its text, and whether the command line alone makes it."""
    kinds = {*errors.__all__, *CLICK} - {"ClockWarning"}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and node.args:
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if name in kinds and (text := _template(node.args[0])) != "x":
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", text, name in CLICK


_CALL = re.compile(r'Error::(\w+)\(\s*(?:&?format!\(\s*)?"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NOT_MADE = ("tests", "testkit", "conformance.rs", "fuzz.rs", "fault.rs", "stray.rs")


def _of_core() -> Iterator[tuple[str, str]]:
    for file in sorted(CRATES.glob("*/src/**/*.rs")):
        if any(part in str(file) for part in _NOT_MADE):
            continue
        code = file.read_text().split("#[cfg(test)]\nmod tests {")[0]
        for found in _CALL.finditer(code):
            text = re.sub(r"\\\n\s*", "", found[2]).replace('\\"', '"').replace("{{", "(").replace("}}", ")")
            yield f"{file.relative_to(ROOT)}:{code.count(chr(10), 0, found.start()) + 1}", text


def _is_capital(text: str) -> bool:
    """Whether it begins as a sentence does: names such as NaN, HDF5 and `DuckDB` are none."""
    return re.match(r"[A-Z][a-z]+(?![\w.])(?! encrypts)", text) is not None


def test_texts_of_the_package() -> None:
    found = list(_of_python())
    assert len(found) > 600
    wrong = []
    for place, text, of_command in found:
        told = re.sub(r"^x(?=$|: )", "what", text)
        if said := faults(told, command_line=of_command):
            wrong.append(f"{place}: {text!r}: {said}")
        if _is_capital(text) and not text.startswith(("True", "False", "Feather", "Arrow")):
            wrong.append(f"{place}: {text!r} begins with a capital letter")
    assert not wrong, "\n".join(wrong)


def test_texts_of_the_core() -> None:
    found = list(_of_core())
    assert len(found) > 500
    wrong = []
    for place, text in found:
        shown = {name.rpartition(".")[2] for name in re.findall(r"\{([\w.]+):#?x?\?\}", text)}
        if shown - DEBUG or ":#?}" in text:
            wrong.append(f"{place}: {text!r} shows {shown - DEBUG} as a debugger does; give it a Display")
        if said := faults(re.sub(r"\{[^{}]*\}", "x", text)):
            wrong.append(f"{place}: {text!r}: {said}")
        if _is_capital(text) and not text.startswith("Python"):
            wrong.append(f"{place}: {text!r} begins with a capital letter")
    assert not wrong, "\n".join(wrong)


class World:
    """A dense array, a sparse one along time, one along texts, and a group, in the folder of a test."""

    def __init__(self) -> None:
        dims = [gs.Dim("y", (0, 9), 4), gs.Dim("x", (0, 9), 4)]
        attrs = [gs.Attr("v", "int64"), gs.Attr("s", "string", nullable=True)]
        self.dense = gs.create("d.gs", gs.Schema(dims, attrs))
        self.dense.write({"v": np.arange(100).reshape(10, 10)})
        low, high = (np.datetime64(day, "s") for day in ("2020-11-30", "2020-12-05"))
        time, kind = gs.Dim("t", (low, high), 3600, "datetime64[s]"), gs.Attr("k", "string", categories=["a", "b"])
        self.times = gs.create("t.gs", gs.Schema([time], [gs.Attr("v", "float64"), kind], sparse=True))
        self.times.write_cells({"t": _at("2020-12-01T04:49:45")}, {"v": [1.0], "k": ["a"]})
        self.texts = gs.create("s.gs", gs.Schema([gs.Dim("n", dtype="string")], [gs.Attr("v", "int64")], sparse=True))
        self.texts.write_cells({"n": ["a"]}, {"v": [1]})
        gs.group("g.gs", mode="a").create("a", self.texts.schema)
        days = gs.Dim("day", (0, 3), 2, labels=("2026-03-01", np.timedelta64(1, "D")))
        self.days = gs.create("l.gs", gs.Schema([days], [gs.Attr("v", "int64")]))


def _at(*times: str) -> Any:
    return np.array(times, "datetime64[s]")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.chdir(tmp_path)
    Path("c.csv").write_text("n,v,w\na,1,2\n")
    Path("t.csv").write_text("t,v,k\n2030-01-01T00:00:00,1,a\n")
    Path("bad.csv").write_text("t,v,k\nx,1,a\n")
    Path("k.csv").write_text("t,v,k\n2020-12-02T00:00:00,1,zz\n")
    Path("e.csv").write_text("")
    np.save("x.npy", np.zeros(3))
    return World()


def _upside_down() -> gs.Dim:
    return gs.Dim("t", (np.datetime64("2021-01-01"), np.datetime64("2020-01-01")), dtype="datetime64[s]")


_LATE = "2030-12-01T04:49:45"
OF_TIME: dict[str, tuple[type[Exception], Callable[[World], object], tuple[str, ...]]] = {
    "a cell outside": (
        errors.BoundsError,
        lambda w: w.times.write_cells({"t": _at(_LATE)}, {"v": [1.0], "k": ["a"]}),
        (_LATE, "2020-11-30", "2020-12-05"),
    ),
    "a point outside": (errors.BoundsError, lambda w: w.times.delete(coords={"t": _at(_LATE)}), (_LATE, "2020-12-05")),
    "the same cell twice": (
        errors.InputError,
        lambda w: w.times.write_cells({"t": _at(*["2020-12-01T04:49:45"] * 2)}, {"v": [1.0, 2.0], "k": ["a", "b"]}),
        ("t=2020-12-01T04:49:45", "dedup="),
    ),
    "a domain that shrinks": (
        errors.SchemaError,
        lambda w: w.times.resize(t=("2020-12-01", "2020-12-02")),
        ("(2020-11-30T00:00:00, 2020-12-05T00:00:00)", "only grows"),
    ),
    "a pair upside down": (
        errors.InputError,
        lambda w: w.times.read({"t": ("2020-12-03", "2020-12-01")}),
        ("2020-12-03", "lower end first"),
    ),
    "a domain upside down": (
        errors.SchemaError,
        lambda w: gs.create("mem://m", gs.Schema([_upside_down()], w.times.schema.attrs, sparse=True)),
        ("2021-01-01", "2020-01-01", "lower first"),
    ),
    "a label that is none": (errors.MissingLabelError, lambda w: w.times.sel(t="1990"), ("2020-11-30",)),
    "bins without a unit": (
        errors.InputError,
        lambda w: w.times.aggregate({"n": "count(*)"}, by={"t": 5}),
        ("datetime64[s]", '"1h"'),
    ),
}


@pytest.mark.parametrize("case", OF_TIME)
def test_times_are_dates(world: World, case: str) -> None:
    kind, call, words = OF_TIME[case]
    with pytest.raises(kind) as refused:
        call(world)
    text = str(refused.value)
    assert not faults(text, of_time=True), text
    assert all(word in text for word in words), text


_Case = tuple[type[Exception], Callable[[World], object], str]
ANY: dict[str, _Case] = {
    "no store": (errors.NotFoundError, lambda w: gs.open("nowhere"), "no Gridstone store in"),
    "no array": (errors.NotFoundError, lambda w: gs.open("g.gs", path="/b"), "/b"),
    "no attribute": (errors.MissingAttributeError, lambda w: w.times["q"], "'q'; there are 'v', 'k'"),
    "no column": (errors.MissingColumnError, lambda w: w.times.read()["q"], "'q'; there are 't', 'v', 'k'"),
    "no label": (errors.MissingLabelError, lambda w: w.dense.sel(x=[55]), "have no 55"),
    "no child": (errors.MissingNameError, lambda w: gs.group("g.gs")["q"], "q"),
    "a group that is none": (errors.NotFoundError, lambda w: gs.group("nowhere", mode="r"), "nowhere"),
    "an array that is there": (errors.ExistsError, lambda w: gs.create("d.gs", w.dense.schema), "overwrite=True"),
    "a handle for reading": (errors.AccessError, lambda w: gs.open("d.gs").write({"v": 1}), '"r+"'),
    "a box outside": (errors.BoundsError, lambda w: w.dense.write({"v": np.zeros((1, 1), int)}, {"x": (5, 30)}), "30"),
    "a box of texts upside down": (errors.InputError, lambda w: w.texts.read({"n": ("b", "a")}), "lower end first"),
    "the same text twice": (
        errors.InputError,
        lambda w: w.texts.write_cells({"n": ["b", "b"]}, {"v": [1, 2]}),
        'n="b"',
    ),
    "a category that is none": (
        errors.InputError,
        lambda w: w.times.write_cells({"t": _at("2020-12-01")}, {"v": [1.0], "k": ["zz"]}),
        "'zz' is none of its categories 'a', 'b'",
    ),
    "the type of a filter": (errors.SchemaError, lambda w: _made(filters="bitround:7"), "float"),
    "a filter of floats": (errors.SchemaError, lambda w: _made("float32", filters="delta"), "float values of 4 bytes"),
    "a function that is none": (errors.InputError, lambda w: w.dense.aggregate({"n": "nope(v)"}), "nope"),
    "a version that is none": (errors.NotFoundError, lambda w: w.dense.at(version=99), "99"),
    "a tag that is none": (errors.NotFoundError, lambda w: w.dense.at(version="zz"), "zz"),
    "a budget": (errors.InputError, lambda w: gs.Context(memory_budget="1").native, "memory budget"),
    "a removed array": (errors.NotFoundError, lambda w: _removed(), "array"),
    "columns of loads twice": (
        errors.InputError,
        lambda w: io.from_csv("n.gs", "c.csv", dims=["n"], attrs=["v", "v"]),
        "each column",
    ),
    "a dimension as an attribute": (
        errors.InputError,
        lambda w: io.from_csv("n.gs", "c.csv", dims=["n"], attrs=["n", "v"]),
        "'n' is a dimension",
    ),
}


def _made(dtype: str = "int64", **options: Any) -> object:
    return gs.create("mem://made", gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", dtype, **options)]), overwrite=True)


def _removed() -> None:
    a = gs.open("g.gs", path="/a", mode="r+")
    gs.delete("g.gs", path="/a")
    a.refresh()


@pytest.mark.parametrize("case", ANY)
def test_errors_of_python(world: World, case: str) -> None:
    kind, call, word = ANY[case]
    with pytest.raises(kind) as refused:
        call(world)
    text = str(refused.value)
    assert not faults(text) and word in text, text
    assert not type(refused.value).__name__.startswith("_")


COMMANDS = """
read nowhere
read g.gs
read g.gs --path /zz
read d.gs --attr q
read d.gs --attr x
read d.gs --attr v --attr v
read d.gs --box x=5:3
read d.gs --box q=5:3
read d.gs --box x=a:b
read t.gs --box t=2020-12-03..2020-12-01
read d.gs --where "q > 3"
read d.gs --where "v >"
read d.gs --where "s > 3"
read t.gs --where "t > '2020-99-99'"
read d.gs --version 99
read d.gs --version nope
read d.gs --timestamp 1990-01-01
read d.gs --timestamp xx
aggregate d.gs "n=sum(q)"
aggregate d.gs "n=nope(v)"
aggregate d.gs "n=sum(v)" --by q
aggregate t.gs "n=count(*)" --by t:5
aggregate d.gs "n=sum(v)" --order zz
aggregate d.gs "n=sum(v)" --to o.gs
load d.gs c.csv
load s.gs c.csv
load n.gs c.csv
load n.gs c.csv --dims n --attrs n
load n.gs c.csv --dims n,n
load n.gs c.csv --dims n,q
load t.gs k.csv
load t.gs bad.csv
load t.gs e.csv
load n.gs nofile.csv --dims a
load n.gs x.npy --dims a,b
write d.gs x.npy
write d.gs x.npy --attr v
write s.gs x.npy
write d.gs c.csv
delete d.gs
delete d.gs --where "q>1" --yes
create d.gs --dim x:int64:0:9 --attr v:int64
create n.gs --dim x:int64:9:0 --attr v:int64
create n.gs --dim x:float64:0:9 --attr v:int64
create n.gs --dim x:int64:0:9 --attr v:int64:zzz
resize d.gs x=0:5
resize t.gs t=2020-12-01..2020-12-02
alter d.gs --drop q
alter d.gs --add v:int64
alter t.gs --category k=a
vacuum d.gs --keep xx
tag d.gs one --version 77
copy d.gs d.gs
copy nowhere x.gs
copy s.gs d.gs
copy d.gs z.gs --type x=string
consolidate d.gs --box x=5:3
export d.gs o.npy
export s.gs o.mtx
export d.gs no/such/folder.csv
filter d.gs "v > 3" --to d.gs
filter d.gs "v >" --to f.gs
sql "select * from 'd.gs' limit 1" --to z.gs --dims q
advise c.csv --dims q
verify nowhere
ls nowhere
""".strip().splitlines()


def test_errors_of_the_command_line(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for line in COMMANDS:
        code = cli.run(shlex.split(line))
        told = capfd.readouterr().err.strip()
        text = told.partition("rror: ")[2]
        if code == 0 or not text:
            wrong.append(f"{line}: ends with {code} and {told!r}")
        elif said := faults(" ".join(text.split("\n")[:1]), command_line=True, of_time=" t.gs" in line):
            wrong.append(f"{line}: {text}: {said}")
    assert not wrong, "\n".join(wrong)


def test_options_instead_of_arguments(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    said = {
        "read d.gs --attr x": "--attr names attributes",
        "create d.gs --dim x:int64:0:9 --attr v:int64": "pass --overwrite to replace it",
        "create n.gs --dim x:float64:0:9 --attr v:int64": "use --sparse",
        "load s.gs c.csv": "--evolve adds it, --attrs says which columns to load",
        "load n.gs c.csv --dims n,n": "--dims names each dimension once",
        'aggregate d.gs "n=sum(v)" --to o.gs': "give --by too",
        "copy d.gs z.gs --type x=string": "use --sparse of gridstone create",
    }
    for line, words in said.items():
        assert cli.run(shlex.split(line)) != 0
        assert words in capfd.readouterr().err, line
