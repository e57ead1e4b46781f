"""How the site shows docstrings: examples without a heading get one, parameters that share a line get one each, and
classes that calls give, not callers make, have no constructor."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^|\n\n)(?=>>> )")
_HEADING = re.compile(r"^Example:\n", re.MULTILINE)
_ARGUMENTS = re.compile(r"^Args:\n(?:(?: .*)?\n)*(?: .*)?", re.MULTILINE)
_SHARED = re.compile(r"^    (\w+(?:, \w+)+)(:.*(?:\n     .*)*)", re.MULTILINE)


def with_headings(text: str) -> str:
    """The docstring with its examples in sections of the name that the parser knows."""
    text = _HEADING.sub("Examples:\n", text)
    parts = _EXAMPLE.split(text)
    examples = ["\n".join("    " + line if line else "" for line in part.splitlines()) for part in parts[1:]]
    return "\n\n".join([parts[0].rstrip(), *("Examples:\n" + example for example in examples)]).strip()


def one_by_one(text: str) -> str:
    """The docstring with `a, b: as for …` of its arguments as an entry for each."""
    return _ARGUMENTS.sub(lambda section: _SHARED.sub(_each, section[0]), text)


def _each(shared: re.Match[str]) -> str:
    return "\n".join(f"    {name}{shared[2]}" for name in shared[1].split(", "))


class Docstrings(griffe.Extension):
    """Changes the docstrings before they are parsed."""

    def on_object(self, *, obj: griffe.Object, **_given: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = one_by_one(with_headings(obj.docstring.value))

    def on_class(self, *, cls: griffe.Class, **_given: Any) -> None:
        if "__init__" in cls.members and not (_takes(cls) or _takes(cls.members["__init__"])):
            cls.del_member("__init__")


def _takes(obj: Any) -> bool:
    """Whether a docstring says what is taken."""
    return obj.docstring is not None and _ARGUMENTS.search(obj.docstring.value) is not None
