"""Checks of arguments by the names of parameters, which mean the same everywhere in the package.

`checked` wraps a public function or method. An argument of another type raises an error that names the parameter, what
was found and what it takes. So does text that UTF-8 cannot hold, since nothing in a store does.
"""

import functools
import inspect
import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from ..errors import InputError
from .printable import brief

Check = Callable[[str, Any], None]
_Call = TypeVar("_Call", bound=Callable[..., Any])


def _wrong(what: str, takes: str, value: Any) -> TypeError:
    return TypeError(f"{what}= takes {takes}, found {brief(value)} of type {type(value).__name__}")


def utf8(what: str, value: str) -> str:
    """The text, unless UTF-8 cannot hold it: Python's text may have halves of surrogate pairs."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{what}={brief(value)} has half a surrogate pair, which UTF-8 cannot hold; give text without it, for "
            f"example text.encode('utf-8', 'replace').decode()"
        ) from None
    return value


def text(what: str, value: Any) -> None:
    """Text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise _wrong(what, "text", value)
    utf8(what, value)


def label(what: str, value: Any) -> None:
    """A name, made of whatever has one as text."""
    try:
        name = str(value)
    except ValueError:
        # An integer, or one among others, of more digits than Python writes.
        raise _wrong(what, "text", value) from None
    utf8(what, name)


def place(what: str, value: Any) -> None:
    """Where a store is."""
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise _wrong(what, "the place of a store: text, or a path such as pathlib makes", value)
    utf8(what, found)


def file(what: str, value: Any) -> None:
    """Where a file is, or will be."""
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise _wrong(what, "a path: text, or one such as pathlib makes", value)
    if "\0" in utf8(what, found):
        raise InputError(f"{what}={brief(found)} holds a NUL character, which no path does")


def files(what: str, value: Any) -> None:
    """Where files are: a path or a pattern, or several of them."""
    for item in value if isinstance(value, list | tuple) else [value]:
        file(what, item)


def instance(kind: type, takes: str) -> Check:
    """A check that a value is of this class, which is `takes` in words."""

    def check(what: str, value: Any) -> None:
        if not isinstance(value, kind):
            raise _wrong(what, takes, value)

    return check


def number(what: str, value: Any) -> None:
    """A whole number of 64 bits, 0 or more."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise _wrong(what, "a whole number", value)
    if not 0 <= value < 2**63:
        raise InputError(f"{what}= takes a whole number from 0 to 2**63 - 1, not {brief(value)}")


def version(what: str, value: Any) -> None:
    """A version, by its number or its tag."""
    if isinstance(value, str):
        utf8(what, value)
    elif isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise _wrong(what, "the number of a version, or its tag as text", value)
    else:
        number(what, value)


def whole(what: str, value: Any) -> int:
    """A whole number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**63:
        raise InputError(f"{what}= is a whole number from 0 on, not {brief(value)}")
    return int(value)


def flag(what: str, value: Any) -> None:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise _wrong(what, "True or False", value)


class Settings:
    """Base of what `context=` takes; `gridstone.Context` is the only class of this kind."""

    __slots__ = ()


def context(what: str, value: Any) -> None:
    """Settings to open with."""
    if not isinstance(value, Settings):
        raise _wrong(what, "a gridstone.Context, or None for the process's default", value)


def progress(what: str, value: Any) -> None:
    """What progress is reported to."""
    if not isinstance(value, bool) and not callable(value):
        raise _wrong(what, "True, None, or a callable f(done, total)", value)


def mapping(what: str, value: Any) -> None:
    """A dict of some sort, by name. What is none is a mistake in what was asked, and so an `InputError`."""
    if not isinstance(value, Mapping):
        raise InputError(
            f"{what}= takes a dict by name, {what}={{'name': …}}, found {brief(value)} of type {type(value).__name__}"
        )


def several(what: str, value: Any) -> None:
    """Some things, or one text."""
    if isinstance(value, bytes | bytearray | Mapping) or not is_iterable(value):
        raise _wrong(what, "a list", value)


def is_iterable(value: object) -> bool:
    """Whether its items can be had, one by one: an array of no dimension says so, and has none."""
    return isinstance(value, Iterable) and not (isinstance(value, np.ndarray) and value.ndim == 0)


def is_listed(value: object) -> bool:
    """Whether it has items at places, and is no text."""
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes) and is_iterable(value)


def among(value: object, names: Container[str]) -> bool:
    """Whether it is one of these names; what is no text is none."""
    return isinstance(value, str) and value in names


def known(what: str, value: Any, values: tuple[str, ...]) -> None:
    """An `InputError` unless `value` is one of those."""
    if not among(value, values):
        raise InputError(f"{what} is one of {', '.join(map(repr, values))}, not {brief(value)}")


_CHECKS: dict[str, Check] = {
    **dict.fromkeys(("uri", "source"), place),
    **dict.fromkeys(("path", "target_path", "b_path", "name", "text", "message", "isolation", "strategy"), text),
    **dict.fromkeys(
        ("overwrite", "history", "replace", "dry_run", "cut", "commit", "sorted", "background", "store"), flag
    ),
    **dict.fromkeys(("context", "target_context"), context),
    **dict.fromkeys(("examples", "sample"), number),
    "version": version,
    "progress": progress,
}


def checked(**others: Check) -> Callable[[_Call], _Call]:
    """A function whose arguments are looked at before it is called: those of names that are known everywhere, and
    `others`. What a parameter is when it is left out is always taken."""

    def made(call: _Call) -> _Call:
        parameters = inspect.signature(call).parameters
        checks = {name: others.get(name) or _CHECKS.get(name) for name in parameters}
        usual = {name: parameter.default for name, parameter in parameters.items()}
        order = tuple((name, check) for name, check in checks.items())

        @functools.wraps(call)
        def wrapper(*args: Any, **named: Any) -> Any:
            for (name, check), value in zip(order, args, strict=False):
                if check is not None and value is not usual[name]:
                    check(name, value)
            for name, value in named.items():
                check = checks.get(name)
                if check is not None and value is not usual[name]:
                    check(name, value)
            return call(*args, **named)

        return cast("_Call", wrapper)

    return made
