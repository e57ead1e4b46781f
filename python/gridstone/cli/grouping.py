"""The command that asks for aggregates of cells by groups: `aggregate`."""

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ..arrays.aggregate import unquoted
from ..arrays.array import Array
from ..errors import InputError
from . import options
from .asking import Batches, as_form, as_plan, check_ending, show, show_plan, tell
from .output import emit_json

_NAMED = re.compile(r"\s*([^()'\"=<>!]+?)\s*=(?!=)\s*(.+)", re.DOTALL)
"""`name=aggregate`; what comes before the sign is no part of an expression."""
_BINNED = re.compile(r"(.*[^\s=<>!])\s*=\s*(.*)", re.DOTALL)
"""`name=width`, parted at the last sign that is one by itself; there may be space around it."""
_NAME = re.compile(r'[^\W\d]\w*|"(?:[^"]|"")+"')
_PERIOD = re.compile(r"\d*\s*[A-Za-z]+")
_UNITS = "ns us ms s second seconds m min minute minutes h H hour hours D d day days W w week weeks M month months Q "
_PERIODS = frozenset(f"{_UNITS}quarter quarters Y y year years".split())
"""The units of periods, as the core knows them."""


@click.command("aggregate")
@click.argument("uri", metavar="ARRAY")
@click.argument("aggregates", nargs=-1, required=True, metavar="NAME=AGGREGATE...")
@click.option("--by", multiple=True, metavar="NAME[=WIDTH]", help='A key: "kind", "lon=0.5", "t=1h"; again for more.')
@click.option("--where", metavar="CONDITION", help='Cells for which it is true: "sog > 3 and status in (1, 5)".')
@options.within_box
@click.option("--having", metavar="CONDITION", help='Groups for which it is true: "n > 20".')
@click.option("--order", multiple=True, metavar='NAME["desc"]', help='A column: "n desc"; again for more.')
@click.option("--to", metavar="STORE[:/PATH]", help="Write the groups into this array, in one commit.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Draw the groups.")
@options.at_path
@options.at_version
@as_plan
@as_form
def aggregate_command(
    uri: str,
    aggregates: Sequence[str],
    by: Sequence[str],
    box: Sequence[str],
    where: str | None,
    having: str | None,
    order: Sequence[str],
    to: str | None,
    plot: Path | None,
    path: str,
    version: int | str | None,
    timestamp: str | None,
    explain: bool,
    analyze: bool,
    form: str | None,
    out: Path | None,
    limit: int | None,
    all_columns: bool,
) -> int:
    """Aggregates of the cells of an array, by groups.

    gridstone aggregate ais.gs "n=count(*)" "top=max(sog)" --by kind --order "n desc"

    gridstone aggregate ais.gs "count(*)" --by t=1h --by lon=0.5 --by lat=0.5 --where "sog > 3" --csv

    A text without a name is the name of its column. With --to the keys are the dimensions of the new array. --plot
    draws bars for a key of texts or numbers, a line for a key of times, a heat map for two bins: as PNG, SVG or PDF.
    """
    check_ending(form, out, to, is_plan=explain or analyze, plot=plot)
    if plot is not None:
        from ..pictures.target import checked_target

        checked_target(plot)
    array = options.opened(uri, path, "r", version, timestamp)
    known = {*array.dims, *array.schema_names}
    question: dict[str, Any] = {
        "aggregates": aggregates_of(aggregates),
        "by": [key_of(text, known) for text in by],
        "box": options.box_of(array, box),
        "where": where,
        "having": having,
        "order": order[0] if len(order) == 1 else list(order) or None,
        "limit": limit,
    }
    if explain or analyze:
        show_plan(array.explain("aggregate", **question, analyze=analyze), form)
    elif to is not None:
        answer: Any = array.aggregate
        tell(answer(**question, to=to), form)
    elif plot is not None:
        _draw(array, question, plot, form)
    else:
        found = array.aggregate(**question).to_arrow()
        show(Batches(found), form, out, limit, all_columns=all_columns)
    return 0


def aggregates_of(texts: Sequence[str]) -> dict[str, str]:
    """The aggregates by name; one without a name is called as it reads."""
    found: dict[str, str] = {}
    for text in texts:
        named = _NAMED.fullmatch(text)
        name, asked = (named[1], named[2]) if named else (text.strip(), text)
        if name in found:
            raise InputError(f"two columns are called {name!r}; name each: {name}2={asked}")
        found[name] = asked
    return found


def key_of(text: str, known: Collection[str] = ()) -> str | dict[str, float | str]:
    """A key of groups: a name or an expression, or a name with the width of its bins.

    Args:
        text: what was given.
        known: the names of dimensions and attributes; words and names in quotes are names without.
    """
    text = _bare(text.strip(), known)
    binned = None if text in known else _BINNED.fullmatch(text)
    if binned is None:
        return text
    name, width = binned.groups()
    number = options.number_of(width)
    is_width = number is not None or (_is_period(width) and width not in known)
    if not is_width or not (name in known or _NAME.fullmatch(name)):
        return text
    return {_bare(name, known): width if number is None else int(number) if number.is_integer() else number}


def _bare(name: str, known: Collection[str]) -> str:
    """A name without its quotes, as the column of the answer is called."""
    return unquoted(name) if name not in known and unquoted(name) in known else name


def _is_period(text: str) -> bool:
    """Whether a text is a length of time."""
    return _PERIOD.fullmatch(text) is not None and text.lstrip("0123456789").strip() in _PERIODS


def _draw(array: Array, question: dict[str, Any], target: Path, form: str | None) -> None:
    """Answers the question and draws the groups."""
    from ..chart import chart

    keys = [key if isinstance(key, str) else next(iter(key)) for key in question["by"]]
    widths = dict(itertools.chain.from_iterable(key.items() for key in question["by"] if isinstance(key, dict)))
    found = array.aggregate(**question)
    made = chart(found, target, keys=keys, widths=widths, labels=labels_of(array, question, keys, widths))
    if form == "json":
        emit_json({"picture": str(made)})
    else:
        click.echo(str(made))


def labels_of(array: Array, question: dict[str, Any], keys: Sequence[str], widths: Mapping[str, Any]) -> dict[str, str]:
    """What is written beside axes: names, with the units that the array's metadata have."""
    found = {}
    for key in keys:
        unit, width = _unit(array, key), widths.get(key)
        said = key if width is None else f"{key}, bins of {width}"
        found[key] = f"{said} ({unit})" if unit else said
    for name, text in question["aggregates"].items():
        unit = _unit(array, *re.findall(r"(?:mean|avg|sum|min|max|median|first|last|any_value|std)\((\w+)\)", text))
        said = name if name == text else f"{name} = {text}"
        found[name] = f"{said} ({unit})" if unit else said
    return found


def _unit(array: Array, *names: str) -> str | None:
    """The unit that the metadata of an attribute or dimension give."""
    for name in names[:1]:
        known: Any = array.dim(name) if name in array.dims else array[name] if name in array.schema_names else None
        unit = None if known is None else known.meta.get("units", known.meta.get("unit"))
        return unit if isinstance(unit, str) else None
    return None


COMMANDS: tuple[click.Command, ...] = (aggregate_command,)
