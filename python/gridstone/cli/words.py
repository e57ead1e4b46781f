"""Messages in the words of the command line: options and commands in the place of Python's arguments and calls.

1. `evolve=True (--evolve)` names both: the option stays.
2. A call that a command makes too, such as `a.alter(...)`, becomes that command. Another call stays as it is.
3. An argument becomes the option of its name, with its value: `dedup="first"` is `--dedup first`.
4. Advice that no command can follow, such as `stream it with scan()`, is left out.
"""

import re
import sys
from collections.abc import Mapping, Sequence

import click

_BOTH = re.compile(r"[\w.]+(?:=\S*|\([^()]*\)) \(((?:--|gridstone )[^()]*)\)")
_CALL = re.compile(r"(?<![\w.])((?:\w+\.)*(\w+))\((?:[^()]|\([^()]*\))*\)")
_ARGUMENT = re.compile(r"""(?<![\w.'"/\\?&-])([a-z_]+)=("[^"]*"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|[\w.…]+)?""")
_QUOTES = "'\""
_CALLS = frozenset(
    {"aggregate", "alter", "resize", "verify", "repair", "delete", "vacuum", "upgrade", "consolidate", "history"}
)
"""Calls whose commands have their names."""
_ALIASES: Mapping[str, Sequence[str]] = {
    "attrs": ("--attr", "--attrs"),
    "attr": ("--attr", "--name"),
    "name": ("--name", "--attr"),
    "coords": ("--coord",),
    "categories": ("--category",),
    "target_path": ("--path",),
    "b_path": ("--path-b",),
    "times": ("--time-format",),
    "dtype": ("--type",),
    "types": ("--type",),
    "memory_budget": ("--memory",),
    "out": (),
    "fill": ("--fill",),
}
"""Options that have other names than the arguments; `out=` is an array there and a file here."""
_WITHOUT_COMMAND = (
    (re.compile(r"; of a sparse one use read\(\), write_cells\(\) or to_dense\(\)"), ""),
    (re.compile(r"another target_path"), "another --to"),
    (re.compile(r", a timedelta, or seconds"), ", or seconds"),
    (
        re.compile(r"a datetime, numpy\.datetime64, ISO text or microseconds"),
        "a time such as 2026-03-01T12:30, or microseconds",
    ),
    (re.compile(r"take it batch by batch \(stream=True\), "), ""),
    (re.compile(r",? or stream it with scan\(\)"), ""),
    (re.compile(r", stream it with scan\(\)"), ""),
    (re.compile(r" or gs\.lit\('[^']*'\)"), ""),
    (re.compile(r"gs\.lit\(('[^']*')\) is the text itself"), r"write \1 for the text itself"),
    (re.compile(r"gridstone\.open|gs\.open"), "gridstone info"),
    (re.compile(r"Context\(sources=\[[^\]]*\]\), "), ""),
    (re.compile(r'built with gs\.col\("sog"\) > 3'), "several joined with and, or"),
)


def in_options(text: str, command: click.Command | None, group: click.Group) -> str:
    """A message as the command line says it; `command`: the one that failed, if it is known. What the user has typed,
    and lines that quote it over a caret, stay as they are."""
    return "\n".join(
        line if line.startswith("  ") else _translated(line, command, group, _typed(sys.argv[1:]))
        for line in text.split("\n")
    )


def _typed(arguments: Sequence[str]) -> list[str]:
    """What of the arguments could be taken for an argument of Python, the longest first."""
    parts = {part for one in arguments for part in (one, one.partition("=")[2]) if "=" in part or "(" in part}
    return sorted(parts, key=len, reverse=True)


def _translated(text: str, command: click.Command | None, group: click.Group, typed: Sequence[str]) -> str:
    for part in typed:
        if part in text:
            before, after = text.split(part, 1)
            return f"{_translated(before, command, group, typed)}{part}{_translated(after, command, group, typed)}"
    for found, instead in _WITHOUT_COMMAND:
        text = found.sub(instead, text)
    text = _BOTH.sub(lambda found: found[1], text)
    options = [("", _options(command))] if command is not None else []
    options += [(f" of gridstone {name}" if options else "", _options(each)) for name, each in group.commands.items()]
    made, done = [], 0
    for call in _CALL.finditer(text):
        made += [_arguments(text[done : call.start()], options), _call(call)]
        done = call.end()
    return "".join([*made, _arguments(text[done:], options)])


def _options(command: click.Command) -> frozenset[str]:
    return frozenset(name for param in command.params for name in param.opts if name.startswith("--"))


def _call(found: re.Match[str]) -> str:
    name = found[2]
    is_method = found[1] != name or name in ("alter", "resize")
    return f"gridstone {name}" if name in _CALLS and is_method else found[0]


def _arguments(text: str, options: Sequence[tuple[str, frozenset[str]]]) -> str:
    return _ARGUMENT.sub(lambda found: _argument(found, options), text)


def _argument(found: re.Match[str], options: Sequence[tuple[str, frozenset[str]]]) -> str:
    name, value = found[1], found[2]
    wanted = _ALIASES.get(name, (f"--{name.replace('_', '-')}",))
    places = ((one, of) for of, known in options for one in wanted if one in known)
    option, of = next(places, (None, ""))
    if option is None:
        return found[0]
    if value is None or value == "True":
        return f"{option}{of}"
    if value in ("False", "None"):
        return f"no {option}{of}"
    return f"{option} {value.strip(_QUOTES) if value[0] in _QUOTES else value}{of}"
