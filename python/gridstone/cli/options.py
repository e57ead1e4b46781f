"""Options that several commands share, and how their text is parsed."""

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ..arrays.array import Array
from ..base.printable import printable
from ..column import datatype
from ..context.settings import Context
from ..errors import GridstoneError, InputError, NotFoundError
from ..io import numbers
from ..io.dimensions import Digits
from ..result.damage import CHOICES, DamageWarning
from ..result.nat import NatWarning
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from ..stores.store import open_array
from .outcome import message_of
from .output import note

_Command = TypeVar("_Command", bound=Callable[..., Any])


class InputFile(click.Path):
    """A file that is read. One that is not there is no mistake of usage, but not found."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not Path(value).exists():
            raise NotFoundError(f"there is no file {printable(str(value))!r}; it was to be read")
        return super().convert(value, param, ctx)


def confirm(question: str, yes: bool) -> None:
    """Asks whether to go on, unless `--yes` says so.

    Raises:
        click.UsageError: there is no terminal to ask at.
        click.ClickException: the answer is no.
    """
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError(f"{question} Standard input is no terminal, so there is no answer: give --yes to do it")
    if not click.confirm(question, err=True):
        raise click.ClickException("not done: the answer was no")


def version_of(_context: click.Context, _option: click.Parameter, text: str | None) -> int | str | None:
    """A version's number, or its tag."""
    return int(text) if text is not None and text.isdigit() else text


def as_json(command: _Command) -> _Command:
    """`--json`."""
    return click.option("--json", "json_out", is_flag=True, help="Print JSON.")(command)


def at_path(command: _Command) -> _Command:
    """`--path`."""
    return click.option("--path", default="/", show_default=True, help="The array's place in the store.")(command)


def at_version(command: _Command) -> _Command:
    """`--version` and `--timestamp`."""
    command = click.option("--version", callback=version_of, help="Read this version: its number, or its tag.")(command)
    return click.option("--timestamp", help="Read the last version not after this UTC time (ISO).")(command)


def within_box(command: _Command) -> _Command:
    """`--box`, once per dimension."""
    help_text = 'Part of a box: "x=1:10", both ends included; either may be left out. Once per dimension.'
    return click.option("--box", "box", multiple=True, metavar="DIM=LOW:HIGH", help=help_text)(command)


def all_columns(command: _Command) -> _Command:
    """`--all-columns`."""
    help_text = "Leave no column out of a table and cut no text, however wide it gets."
    return click.option("--all-columns", is_flag=True, help=help_text)(command)


def around_damage(command: _Command) -> _Command:
    """`--damaged`."""
    help_text = "skip: leave out what is damaged, and say what that is."
    choice = click.Choice(CHOICES)
    return click.option("--damaged", type=choice, default="error", show_default=True, help=help_text)(command)


@contextlib.contextmanager
def telling_losses() -> Iterator[None]:
    """Says beside the output what was left out because it is damaged, and what a format cannot tell apart."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DamageWarning)
        warnings.simplefilter("once", NatWarning)
        yield
    for found in caught:
        if issubclass(found.category, DamageWarning | NatWarning):
            note(str(found.message))
        else:
            warnings.warn_explicit(found.message, found.category, found.filename, found.lineno)


def with_memory(command: _Command) -> _Command:
    """`--memory` and `--threads`."""
    command = click.option("--memory", default="1GiB", show_default=True, help="The memory budget.")(command)
    return click.option("--threads", type=int, help="Worker threads.  [default: all cores]")(command)


def context_of(memory: str, threads: int | None) -> Context:
    """The context that `--memory` and `--threads` ask for; mistakes in them are mistakes of usage."""
    try:
        return Context(memory, threads)
    except GridstoneError as error:
        raise click.UsageError(message_of(error)) from error


def opened(
    uri: str, path: str, mode: str = "r", version: int | str | None = None, timestamp: str | None = None
) -> Array:
    """The array that a command is about."""
    return open_array(uri, path=path, mode=mode, version=version, timestamp=timestamp)


def box_of(array: Array, parts: Sequence[str]) -> dict[str, tuple[Any, Any]] | None:
    """The box that `--box` options make; None if there are none."""
    box: dict[str, tuple[Any, Any]] = {}
    for part in parts:
        name, equals, span = part.partition("=")
        if not equals or not span:
            raise click.BadParameter(f"{part!r} is not DIM=LOW:HIGH", param_hint="--box")
        dim = array.schema.dim(name.strip())
        low, high = _ends(span)
        box[dim.name] = (_end(dim.dtype, low, part), _end(dim.dtype, high, part))
    return box or None


def pairs_of(parts: Sequence[str], option: str) -> dict[str, str]:
    """The values by name that several `NAME=VALUE` give."""
    found: dict[str, str] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals or not name or name in found:
            raise click.BadParameter(f"{part!r} is not NAME=VALUE, each name once", param_hint=option)
        found[name] = value
    return found


def count_of(text: str, option: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no whole number", param_hint=option) from None


def domains_of(parts: Sequence[str]) -> dict[str, tuple[Any, Any]] | None:
    """The domains that `--domain` options choose, before types are known: numbers, digits, or text as it is."""
    found: dict[str, tuple[Any, Any]] = {}
    for part in parts:
        name, equals, span = part.partition("=")
        if not equals or not span or name.strip() in found:
            raise click.BadParameter(f"{part!r} is not DIM=LOW:HIGH, each dimension once", param_hint="--domain")
        low, high = _ends(span, "--domain")
        found[name.strip()] = (_plain(low), _plain(high))
    return found or None


def _plain(text: str) -> Any:
    text = text.strip()
    if _is_year_or_day(text):
        return Digits(text)
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text or None


def _ends(span: str, option: str = "--box") -> tuple[str, str]:
    """The two ends of "low:high"; times contain colons themselves, so ".." parts them too."""
    if ".." in span:
        low, _, high = span.partition("..")
        return low, high
    halves = span.split(":")
    if len(halves) == 1:
        return span, span
    if len(halves) % 2:
        raise click.BadParameter(f"{span!r}: part times with two dots: LOW..HIGH", param_hint=option)
    middle = len(halves) // 2
    return ":".join(halves[:middle]), ":".join(halves[middle:])


def _end(dtype: str, text: str, whole: str) -> Any:
    """An end of a box, which an integer dimension may have between two coordinates."""
    try:
        return _value(dtype, text, whole)
    except click.BadParameter:
        if dtype in datatype.INTEGERS:
            with contextlib.suppress(click.BadParameter):
                return _value("float64", text, whole)
        raise


def _value(dtype: str, text: str, whole: str) -> Any:
    text = text.strip()
    if not text:
        return None
    if dtype == "string":
        return text
    if datatype.is_time(dtype) and (not text.lstrip("-").isdigit() or _is_date(dtype, text)):
        return text
    # An end may lie beyond what the type holds: boxes are clipped.
    found = number_of(text) if datatype.is_float(dtype) else numbers.whole(text)
    if found is None:
        raise click.BadParameter(f"{whole!r}: {text!r} is no {dtype}", param_hint="--box")
    return found


def _is_date(dtype: str, text: str) -> bool:
    """Whether digits are a year, or a year with month and day, as everybody writes them; others are ticks."""
    return dtype.startswith("datetime64") and _is_year_or_day(text)


def _is_year_or_day(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) in (4, 8)


def number_of(text: str) -> float | None:
    """The number that a text is; None if it is none."""
    try:
        return float(numbers.number("float64", text))
    except ValueError:
        return None


def value_of(array: Array, attr: str | None, text: str) -> Any:
    """A value of an attribute (None: the first) from its text."""
    found = array.schema.attrs[0] if attr is None else array.schema.attr(attr)
    return fill_of(found.dtype, text, found.name)


def coordinates_of(array: Array, parts: Sequence[str]) -> dict[str, list[Any]]:
    """The cells that `--coord x=1,y=2` options name, by dimension."""
    found: dict[str, list[Any]] = {dim.name: [] for dim in array.schema.dims}
    for part in parts:
        pairs = dict(_pair(item, part) for item in part.split(","))
        if set(pairs) != set(found):
            raise click.BadParameter(f"{part!r} must give each of {', '.join(found)} once", param_hint="--coord")
        for dim in array.schema.dims:
            value = _value(dim.dtype, pairs[dim.name], part)
            found[dim.name].append(datatype.scalar(dim.dtype, value, f"dimension {dim.name!r}"))
    return found


def _pair(item: str, whole: str) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    if not equals or not value.strip():
        raise click.BadParameter(f"{whole!r} is not DIM=VALUE,DIM=VALUE", param_hint="--coord")
    return name.strip(), value


def schema_of(dims: Sequence[str], attrs: Sequence[str], file: Path | None, options: dict[str, Any]) -> Schema:
    """The schema from `--schema`, or from `--dim` and `--attr`."""
    if file is not None:
        if dims or attrs:
            raise click.UsageError("give --schema, or --dim and --attr, not both")
        return Schema.from_json(file.read_text())
    if not dims or not attrs:
        raise click.UsageError("give at least one --dim and one --attr, or --schema FILE")
    return Schema([dim_of(text) for text in dims], [attr_of(text) for text in attrs], **options)


_RANGE = re.compile(
    r"(?P<name>[^:]*):(?P<dtype>[^:]*):(?P<low>.*?)\.\."
    r"(?P<high>[^T :]*(?:[T ]\d\d(?::\d\d(?::\d\d(?:\.\d+)?)?)?Z?)?)(?::(?P<tile>[^:]*))?"
)
"""A dimension whose ends are parted by two dots. The colons within them are of times of day, as many as can be."""


def dim_of(text: str) -> Dim:
    """A dimension from "name:dtype:low:high[:tile]" or "name:string[:max_bytes]". Times of day have colons themselves:
    then two dots part the ends, low..high, or ";" parts everything instead of ":"."""
    found = _RANGE.fullmatch(text)
    if found is not None:
        parts = [part for part in found.groups() if part is not None]
    else:
        parts = text.split(";" if ";" in text else ":")
    if len(parts) in (2, 3) and datatype.parse(parts[1]) == "string":
        return Dim(parts[0], dtype="string", max_bytes=_value("int64", parts[2], text) if len(parts) == 3 else None)
    if len(parts) not in (4, 5):
        raise click.BadParameter(
            f'{text!r} is not "name:dtype:low:high[:tile]" or "name:string[:max_bytes]"; times of day need two dots '
            f'between them: "t:datetime64[s]:2020-01-01T00:00:00..2020-01-02T00:00:00:3600"',
            param_hint="--dim",
        )
    name, dtype, low, high = parts[:4]
    kind = datatype.parse(dtype)
    tile = _value("float64" if datatype.is_float(kind) else "int64", parts[4], text) if len(parts) == 5 else None
    return Dim(name, (_value(kind, low, text), _value(kind, high, text)), tile, kind)


def attr_of(text: str) -> Attr:
    """An attribute from "name:dtype[:nullable][:fill=…][:filters]"."""
    name, _, rest = text.partition(":")
    dtype, *flags = rest.split(":")
    if not dtype:
        raise click.BadParameter(f'{text!r} is not "name:dtype[:nullable][:fill=VALUE][:FILTERS]"', param_hint="--attr")
    kind, nullable, fill, filters = datatype.parse(dtype), False, None, []
    for flag in flags:
        if flag == "nullable":
            nullable = True
        elif flag.startswith("fill="):
            fill = fill_of(kind, flag.removeprefix("fill="), name)
        else:
            filters.append(flag)
    return Attr(name, kind, nullable=nullable, fill=fill, filters=":".join(filters) or "auto")


def fill_of(kind: str, text: str, name: str) -> Any:
    """The fill of attribute `name`, of type `kind`, from text."""
    if datatype.is_time(kind) and not text.lstrip("-").isdigit():
        return text
    return typed(kind, text, f"attribute {name!r}: the fill")


def typed(kind: str, text: str, what: str) -> Any:
    """The value of a type that a text is."""
    try:
        if kind in datatype.INTEGERS or datatype.is_float(kind):
            return numbers.number(kind, text)
        if kind == "bool" and text not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return datatype.from_text(kind, text)
    except ValueError as error:
        raise InputError(f"{what} {text!r} is no {kind}: {error}") from error
