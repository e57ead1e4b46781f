"""What a newer release wrote is called newer, what Python cannot hold is an error, and names do not act on terminals.

The stores are altered with right checksums, by the reader of the format that shares no code with the engine.
"""

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs
from gridstone.base.printable import printable
from gridstone.cli import run
from gridstone.errors import ClockWarning, CorruptionError, GridstoneError, InputError, SchemaError, UnsupportedError

sys.path.insert(0, str(Path(__file__).parents[3] / "vectors"))
from gsreader.checksums import xxh3


def made(path: Path) -> gs.Array:
    schema = gs.Schema([gs.Dim("x", (0, 999))], [gs.Attr("v", "int64")], sparse=True)
    return gs.create(path, schema, context=gs.Context(durability="close"))


def reword(path: Path, edit: Callable[[str], str]) -> None:
    """Makes the newest record of the store say something else, with a checksum that fits."""
    newest = sorted(name for name in (path / "_log").iterdir() if name.name.isdigit())[-1]
    line, rest = newest.read_bytes().split(b"\n", 1)
    edited = edit(line.decode().rstrip())
    assert edited != line.decode().rstrip()
    text = edited.encode()
    text = text.ljust(-(-(len(text) + 18) // 64) * 64 - 18)
    newest.write_bytes(text + f"\n{xxh3(text):016x}\n".encode() + rest[17:])


def reworded(path: Path, edit: Callable[[str], str]) -> gs.Array:
    """The array, after that."""
    reword(path, edit)
    found = gs.open(path, mode="r+", context=gs.Context(cache=0))
    assert isinstance(found, gs.Array)
    return found


def holding(path: Path, text: str) -> gs.Array:
    """An array with this text as the metadata at "k"."""
    made(path).meta["k"] = 1
    return reworded(path, lambda line: line.replace('["k","1"]', f'["k",{json.dumps(text)}]'))


def shell(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = run([str(argument) for argument in arguments])
    told = capsys.readouterr()
    return code, told.out + told.err


def test_someone_opens_what_a_newer_release_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "a").write_cells({"x": [1, 2]}, {"v": [3, 4]})
    with pytest.raises(UnsupportedError, match=r'newer release.*"author"'):
        reworded(tmp_path / "a", lambda line: line.replace('"ops":', '"author":"me","ops":'))
    before = {file: file.read_bytes() for file in (tmp_path / "a").rglob("*") if file.is_file()}
    for check in (gs.verify, gs.repair, lambda uri: gs.repair(uri, dry_run=False)):
        with pytest.raises(UnsupportedError, match=r"version 2.*newer release.*use a newer Gridstone"):
            check(tmp_path / "a")
    assert before == {file: file.read_bytes() for file in (tmp_path / "a").rglob("*") if file.is_file()}
    code, told = shell(capsys, "verify", tmp_path / "a", "--store")
    assert code == 1
    assert "newer release" in told
    assert "damaged" not in told


def test_a_pass_over_a_group_gives_every_child_before_it_names_what_only_a_newer_release_reads(tmp_path: Path) -> None:
    root = gs.group(tmp_path / "g", mode="a", context=gs.Context(durability="close"))
    for name in ("a", "m", "z"):
        root.create(name, made(tmp_path / name).schema)
        if name != "z":
            continue
        reword(tmp_path / "g", lambda line: line.replace('"schema":{', '"schema":{"read":["ragged"],'))
    root.group("below").create("b", made(tmp_path / "b").schema)
    root.create("0", made(tmp_path / "0").schema)
    reword(tmp_path / "g", lambda line: line.replace('"schema":{', '"schema":{"read":["ragged"],'))
    for found in (gs.open(tmp_path / "g"), gs.open(tmp_path / "g", mode="r+"), gs.open(tmp_path / "g", version=7)):
        assert isinstance(found, gs.Group)
        for items in (found.items(), ((child.path[1:], child) for child in found.values())):
            seen: dict[str, Any] = {}
            with pytest.raises(
                UnsupportedError, match=r"^2 of the 5 children of '/' .*others were given: .*/0 .*; .*/z ."
            ) as end:
                for name, child in items:
                    seen[name] = child
            assert list(seen) == ["a", "below", "m"]
            assert isinstance(end.value.__cause__, UnsupportedError)
        assert list(found) == list(found.keys()) == ["0", "a", "below", "m", "z"]
        assert [entry.name for entry in found.walk()] == ["0", "a", "below", "b", "m", "z"]
        assert "z" in found
        with pytest.raises(UnsupportedError, match="ragged"):
            _ = found["z"]
        assert [name for name, _ in found["below"].items()] == ["b"]


def test_someone_reads_around_what_a_newer_release_wrote(tmp_path: Path) -> None:
    made(tmp_path / "a").write_cells({"x": [1, 2]}, {"v": [3, 4]})
    with pytest.raises(UnsupportedError, match='"ragged"'):
        reworded(tmp_path / "a", lambda line: line.replace('"kind":"sparse"', '"kind":"ragged"')).read(damaged="skip")


def test_someone_looks_at_a_version_of_the_year_20000(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "a").write_cells({"x": [1, 2]}, {"v": [3, 4]})
    far = 18_000 * 366 * 86_400 * 1_000_000

    def later(line: str) -> str:
        at = line.index('"time_us":') + len('"time_us":')
        return f'{line[:at]}"{far}"{line[line.index(",", at) :]}'

    a = reworded(tmp_path / "a", later)
    assert a.read()["v"].tolist() == [3, 4]
    with pytest.raises(UnsupportedError, match="years 1 to 9999"):
        _ = a.timestamp
    last = a.history()[-1]
    assert (last.version, last.time_us) == (2, far)
    with pytest.raises(UnsupportedError, match="years 1 to 9999"):
        _ = last.timestamp
    shown = f"{far:,} microseconds since 1970"
    assert shown in repr(last)
    assert shown in a._repr_html_()
    for command in ("info", "history"):
        code, told = shell(capsys, command, tmp_path / "a")
        assert code == 0
        assert shown in told or f"{far:,}" in told


def test_someone_lists_a_fragment_of_more_cells_than_a_table_can_say(tmp_path: Path) -> None:
    made(tmp_path / "a").write_cells({"x": [1, 2]}, {"v": [3, 4]})
    a = reworded(tmp_path / "a", lambda line: line.replace('"cells":2', f'"cells":"{2**63 + 7}"'))
    with pytest.raises(UnsupportedError, match=r"9223372036854775815 of its cells"):
        _ = a.fragments
    assert "9,223,372,036,854,775,815" in a._repr_html_()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[" * 5_000 + "]" * 5_000, UnsupportedError),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, UnsupportedError),
        ("9" * 5_000, UnsupportedError),
        ("1e999", UnsupportedError),
        ("[-1e400]", UnsupportedError),
        ('"\\ud800"', UnsupportedError),
        ('{"\\udc00":1}', UnsupportedError),
        ("NaN", CorruptionError),
        ("[-Infinity]", CorruptionError),
        ("{", CorruptionError),
        ("", CorruptionError),
        ('{"$int":"x"}', CorruptionError),
        ('{"$int":[]}', CorruptionError),
        ('{"$bytes":"a"}', CorruptionError),
        ('{"$datetime":"never"}', CorruptionError),
        ('{"$datetime":7}', CorruptionError),
        ('{"$datetime64":[99999999999999999999,"s"]}', CorruptionError),
        ('{"$datetime64":[]}', CorruptionError),
        ('{"$timedelta64":[1,"lightyear"]}', CorruptionError),
        ('{"$dict":[]}', CorruptionError),
    ],
)
def test_someone_reads_metadata_that_python_cannot_hold(tmp_path: Path, text: str, kind: type[GridstoneError]) -> None:
    a = holding(tmp_path / "a", text)
    with pytest.raises(kind, match=r"metadata 'k'.*del meta\['k'\]"):
        _ = a.meta["k"]
    assert repr(a.meta) == f"Metadata({{'k': <{kind.__name__}>}})"
    assert list(a.meta) == ["k"]
    del a.meta["k"]
    assert dict(a.meta) == {}


def test_someone_stores_metadata_that_python_could_not_read_again(tmp_path: Path) -> None:
    a = made(tmp_path / "a")
    itself: list[Any] = []
    itself.append(itself)
    deep: Any = 1
    for _ in range(128):
        deep = [deep]
    a.meta["deep"] = deep
    assert a.meta["deep"] == deep
    named: Any = {}
    for _ in range(5_000):
        named = {"a": named}
    for value in ([deep], itself, named, {"$a": deep}):
        with pytest.raises(InputError, match="128 deep"):
            a.meta["k"] = value
    with pytest.raises(InputError, match="decimal digits"):
        a.meta["k"] = 10**5_000
    a.meta.update(big=10**4_000, odd=[float("inf"), np.float64("nan")])
    assert a.meta["big"] == 10**4_000
    assert a.meta["odd"][0] == float("inf")
    assert "k" not in a.meta


def test_someone_stores_a_time_in_units_of_several(tmp_path: Path) -> None:
    a = made(tmp_path / "a")
    a.meta["t"] = np.datetime64("2020-01-01T00:00:25", "25s")
    assert a.meta["t"] == np.datetime64("2020-01-01T00:00:25", "s")
    with pytest.raises(InputError, match="coarser unit"):
        a.meta["t"] = np.timedelta64(2**62, "25s")


def test_someone_opens_a_version_at_a_time_beyond_64_bits(tmp_path: Path) -> None:
    made(tmp_path / "a")
    with pytest.raises(InputError, match="64 bits"):
        gs.open(tmp_path / "a", timestamp=np.datetime64(2**62, "s"))


@pytest.mark.parametrize("mark", ["\0", "\n", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "\u2066"])
def test_someone_gives_a_name_that_acts_on_a_terminal(tmp_path: Path, mark: str) -> None:
    a = made(tmp_path / "a")
    group = gs.group(tmp_path / "g", mode="a")
    schemas = [
        gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr(f"v{mark}", "int8")]),
        gs.Schema([gs.Dim(f"x{mark}", (0, 9))], [gs.Attr("v", "int8")]),
    ]
    for schema in schemas:
        with pytest.raises(SchemaError, match="control characters") as refused:
            gs.create(tmp_path / "b", schema)
        assert mark not in str(refused.value)
    for refuse in (
        lambda: gs.tag(tmp_path / "a", f"n{mark}"),
        lambda: group.group(f"n{mark}"),
        lambda: gs.group(tmp_path / "g", path=f"/n{mark}/m", mode="a"),
    ):
        with pytest.raises(InputError) as wrong:
            refuse()
        assert mark not in str(wrong.value)
    with pytest.raises(SchemaError, match="control characters"):
        a.alter(rename={"v": f"v{mark}"})


def test_all_parts_agree_on_what_acts_on_a_terminal(tmp_path: Path) -> None:
    """What the core refuses in a name is what Python shows escaped, of all characters that there are."""
    made(tmp_path / "a")
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    acting = [c for c in characters if printable(c) != c]
    other = [c for c in characters if printable(c) == c and c not in "/\0"]
    assert len(acting) == 65 + 7 + 4
    for c in acting:
        with pytest.raises(InputError):
            gs.tag(tmp_path / "a", f"a{c}")
    # A name has 255 bytes at most. Names of one schema are looked at one by one.
    names = ["".join(other[start : start + 60]) for start in range(0, len(other), 60)]
    for start in range(0, len(names), 500):
        schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr(name, "int8") for name in names[start : start + 500]])
        assert gs.create("mem://names", schema, overwrite=True).schema == schema
    gs.delete("mem://names")


def test_someone_lists_names_of_an_earlier_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gs.create(tmp_path / "a", made(tmp_path / "b").schema, path="/town", context=gs.Context(durability="close"))
    named = {'"path":"/town"': '"path":"/to\\u001b[2Jwn"', '"name":"v"': '"name":"v\\u202e"'}

    def older(line: str) -> str:
        for new, old in named.items():
            line = line.replace(new, old)
        return line

    reword(tmp_path / "a", older)
    found = gs.open(tmp_path / "a", path="/to\x1b[2Jwn")
    assert isinstance(found, gs.Array)
    group = gs.open(tmp_path / "a")
    assert isinstance(group, gs.Group)
    assert [entry.name for entry in group.children()] == ["to\x1b[2Jwn"]
    told = [repr(found), found._repr_html_(), repr(group), group._repr_html_()]
    told += [shell(capsys, "info", tmp_path / "a", "--path", "/to\x1b[2Jwn")[1], shell(capsys, "ls", tmp_path / "a")[1]]
    for text in told:
        assert "\x1b[2J" not in text
        assert "\u202e" not in text
        assert "\\x1b[2J" in text


@pytest.mark.parametrize("threads", [1, None])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_warning_that_is_an_error_takes_no_commit_s_place(
    tmp_path: Path, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "a").write_cells({"x": [1]}, {"v": [3]})
    day = 86_400_000_000

    def ahead(line: str) -> str:
        record = json.loads(line)
        later = {key: value + 2 * day for key, value in record.items() if key == "time_us"}
        assert later, record
        return line.replace(f'"time_us":{record["time_us"]}', f'"time_us":{later["time_us"]}')

    reword(tmp_path / "a", ahead)
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    found = gs.open(tmp_path / "a", mode="r+", context=gs.Context(threads=threads))
    assert isinstance(found, gs.Array)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = found.version
        found.write_cells({"x": [2]}, {"v": [4]})
    assert found.version == before + 1
    assert [type(one.exc_value) for one in told] == [ClockWarning]
