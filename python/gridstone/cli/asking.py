"""The commands that ask: `sql`, `query` and `filter`."""

import functools
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from ..arrays.array import Array
from ..context.settings import default
from ..errors import ConflictError, ExistsError, GridstoneError, InputError, NotFoundError, SchemaError
from ..result.plan import Plan
from . import export, forms, options
from .dots import DotCommands, Settings
from .output import emit_json, emit_table, error_text, message_of, note

_Command = TypeVar("_Command", bound=Callable[..., Any])
_CODES: tuple[tuple[type[GridstoneError], int], ...] = (
    (NotFoundError, 4), (ExistsError, 5), (ConflictError, 5), (InputError, 2), (SchemaError, 2),
)  # fmt: skip
_ROWS_SHOWN = 100
_TABLE = "cells"
"""What the array of `query` is called in SQL."""
_IS_SQL = re.compile(r"\s*(?:select|from|with|summarize|describe|pivot|explain)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Ending:
    """What becomes of an answer."""

    form: str | None
    out: Path | None
    limit: int | None
    to: str | None
    dims: list[str] | None


def telling_errors(command: _Command) -> _Command:
    """Exit codes of what can go wrong: 2 a mistake in the question, 4 nothing there, 5 something there, else 1."""

    @functools.wraps(command)
    def told(*arguments: Any, **named: Any) -> int:
        try:
            return command(*arguments, **named) or 0
        except (GridstoneError, OSError) as error:
            if named.get("form") == "json":
                told = {"error": type(error).__name__, "message": message_of(error)}
                click.echo(json.dumps(told, ensure_ascii=False), err=True)
            else:
                click.echo(error_text(error), err=True)
            return next((code for kind, code in _CODES if isinstance(error, kind)), 1)

    return told  # type: ignore[return-value]


def as_form(command: _Command) -> _Command:
    """`--json`, `--csv`, `--out` and `--limit`."""
    limit_help = f"At most this many rows.  [default: {_ROWS_SHOWN} in a table]"
    for option in (
        click.option("--limit", type=click.IntRange(min=0), help=limit_help),
        click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write rows to this file."),
        click.option("--csv", "form", flag_value="csv", help="Print CSV."),
        click.option("--json", "form", flag_value="json", help="Print JSON: an object per row and line."),
    ):
        command = option(command)
    return command


def _as_target(command: _Command) -> _Command:
    """`--to` and `--dims`."""
    dims_help = "The columns that are dimensions of the array that --to makes: lat,lon."
    command = click.option("--dims", metavar="NAME,...", help=dims_help)(command)
    return click.option("--to", metavar="STORE[:/PATH]", help="Write the rows into this array, in one commit.")(command)


def as_plan(command: _Command) -> _Command:
    """`--explain` and `--analyze`."""
    command = click.option("--explain", is_flag=True, help="Show how it would be answered.")(command)
    return click.option("--analyze", is_flag=True, help="Answer it, and show what was read.")(command)


@click.command("sql")
@click.argument("query", required=False)
@click.option("--param", "-p", "params", multiple=True, metavar="VALUE", help="For each ? in the query, as text.")
@as_plan
@_as_target
@as_form
@telling_errors
def sql_command(
    query: str | None,
    params: Sequence[str],
    explain: bool,
    analyze: bool,
    to: str | None,
    dims: str | None,
    form: str | None,
    out: Path | None,
    limit: int | None,
) -> int:
    """Answer a question in SQL: gridstone sql "select count(*) from 'ais.gs'".

    Arrays, Parquet and CSV files are tables, named in quotes: 'ais.gs', 'store.gs:/ships', 'ais.gs@3', 'x.parquet'.
    Without QUERY statements are read from a pipe; on a terminal a shell opens. Both know dot commands: try .help
    """
    check_ending(form, out, to, is_plan=explain or analyze)
    ending = _Ending(form, out, limit, to, _dims_of(dims, to))
    asked = _asked(params, explain, analyze)
    if query is not None:
        _emit(_answer(query, asked), ending)
        return 0
    return _typed(asked, ending)


def _typed(asked: dict[str, Any], ending: _Ending) -> int:
    """Answers what is typed into a shell, or what comes from a pipe."""
    from ..queries.completion import Words
    from ..queries.console import Console
    from ..queries.shell import script, shell

    settings = Settings(ending.form or "table")
    console = Console()
    is_full = False

    def shown(found: Any) -> None:
        nonlocal is_full
        if found is not None and is_full:
            raise InputError(
                f"{str(ending.out)!r} has the answer before this one, and a file takes one: leave --out out, or ask "
                "each question by itself, with a file of its own"
            )
        _emit(found, replace(ending, form=settings.form))
        is_full = is_full or (found is not None and ending.out is not None)

    dots = DotCommands(console, settings, lambda table: shown(Batches(table)))

    def answer(text: str) -> None:
        for statement in console.statements(text):
            with settings.timed():
                shown(console.ask(statement, **asked))

    try:
        if sys.stdin.isatty():
            words = Words(console, dots.arguments())
            return shell(answer, dots.run, lambda error: click.echo(error_text(error), err=True), words)
        script(sys.stdin.read(), answer, dots.run)
    finally:
        console.close()
    return 0


@click.command("query")
@click.argument("uri", metavar="ARRAY")
@click.argument("question")
@click.option("--param", "-p", "params", multiple=True, metavar="VALUE", help="For each ? in SQL, as text.")
@options.at_path
@options.at_version
@as_plan
@_as_target
@as_form
@telling_errors
def query_command(
    uri: str,
    question: str,
    params: Sequence[str],
    path: str,
    version: int | str | None,
    timestamp: str | None,
    explain: bool,
    analyze: bool,
    to: str | None,
    dims: str | None,
    form: str | None,
    out: Path | None,
    limit: int | None,
) -> int:
    """Ask one array: for the cells of a condition, or in SQL, where it is the table `cells`.

    gridstone query ais.gs "sog > 20"

    gridstone query ais.gs "select mmsi, max(sog) from cells group by mmsi"
    """
    plan = _plan_of(explain, analyze)
    check_ending(form, out, to, is_plan=plan is not False)
    array = options.opened(uri, path, "r", version, timestamp)
    if _IS_SQL.match(question):
        ending = _Ending(form, out, limit, to, _dims_of(dims, to))
        _emit(_answer(question, _asked(params, explain, analyze), {_TABLE: array}), ending)
        return 0
    if params or dims:
        raise click.UsageError("--param and --dims are for SQL; a condition holds its values, and keeps dimensions")
    if plan is not False:
        show_plan(array.explain("scan", where=question, analyze=plan == "analyze"), form)
    elif to is not None:
        tell(array._filtered(question, to, limit=limit), form)
    else:
        show(array.scan(where=question), form, out, limit)
    return 0


@click.command("filter")
@click.argument("uri", metavar="ARRAY")
@click.argument("condition", required=False)
@click.option("--to", required=True, metavar="STORE[:/PATH]", help="The new array.")
@options.within_box
@click.option("--attr", "attrs", multiple=True, help="An attribute to keep; may be given again.  [default: all]")
@click.option("--overwrite", is_flag=True, help="Replace an array that is there.")
@options.at_path
@options.at_version
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@telling_errors
def filter_command(
    uri: str,
    condition: str | None,
    to: str,
    box: Sequence[str],
    attrs: Sequence[str],
    overwrite: bool,
    path: str,
    version: int | str | None,
    timestamp: str | None,
    form: str | None,
) -> int:
    """Write the cells of a box, or those of them that a condition selects, into a new array.

    gridstone filter ais.gs "sog > 20" --to fast.gs
    """
    array = options.opened(uri, path, "r", version, timestamp)
    within = options.box_of(array, box)
    tell(array.filter(condition, to=to, box=within, attrs=list(attrs) or None, overwrite=overwrite), form)
    return 0


def _plan_of(explain: bool, analyze: bool) -> bool | str:
    return "analyze" if analyze else explain


def check_ending(
    form: str | None, out: Path | None, to: str | None, *, is_plan: bool = False, plot: Path | None = None
) -> None:
    """A mistake of usage where options say two things of what becomes of an answer."""
    known = {"--to": to, "--plot": plot, "--out": out, "--explain or --analyze": is_plan or None}
    given = [name for name, value in known.items() if value is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other: give one of them")
    if form == "csv" and given and out is None:
        raise click.UsageError(f"--csv is a form of rows, and with {given[0]} there are none: leave it out")


def _asked(params: Sequence[str], explain: bool, analyze: bool) -> dict[str, Any]:
    """The arguments of a question in SQL, as `gridstone.sql` names them."""
    return {"params": list(params) or None, "explain": _plan_of(explain, analyze)}


def _dims_of(dims: str | None, to: str | None) -> list[str] | None:
    if dims is not None and to is None:
        raise click.UsageError("--dims says which columns are the dimensions of an array: give --to too")
    return None if dims is None else [name.strip() for name in dims.split(",")]


def _answer(query: str, asked: dict[str, Any], tables: Any = None) -> Any:
    """What `gridstone.sql` gives, rows as a stream."""
    from ..queries.sql import sql  # which takes long to load, as DuckDB and pandas do

    asked_of: Any = sql
    return asked_of(query, tables=tables, stream=asked["explain"] is False, **asked)


def _emit(found: Any, ending: _Ending) -> None:
    """Prints or writes what a question gave: rows or a plan; nothing of a statement that gives no rows."""
    if isinstance(found, Batches):
        show(found, ending.form, ending.out, ending.limit)
    elif isinstance(found, Plan):
        show_plan(found, ending.form)
    elif found is not None:
        with found:
            if ending.to is None:
                show(found, ending.form, ending.out, ending.limit)
            else:
                tell(_written(found, ending), ending.form)


def _written(rows: Any, ending: _Ending) -> Array:
    """The array that rows are written into, at most so many of them."""
    from ..queries.writing import written

    first: Any = _First(rows, ending.limit)
    return written(first, ending.to or "", ending.dims, default())


class _First:
    """The first rows of an answer, at most so many."""

    def __init__(self, rows: Any, limit: int | None) -> None:
        self.schema = rows.schema
        self._rows, self._limit = rows, limit

    def __iter__(self) -> Iterator[Any]:
        return export.limited(self._rows, self._limit)

    def close(self) -> None:
        """Ends the query early."""
        self._rows.close()


def show(rows: Any, form: str | None, out: Path | None, limit: int | None) -> None:
    """Prints rows; as a table not more than fit a screen or two."""
    form = None if form == "table" else form
    if form in forms.FORMS:
        with options.telling_losses():
            forms.write(form, rows, out, limit)
        return
    if form is not None or out is not None:
        kind = form or ("json" if out is not None and out.suffix in (".json", ".jsonl") else "csv")
        with options.telling_losses():
            export.write(rows, kind, out, limit)
        return
    most = _ROWS_SHOWN if limit is None else limit
    with options.telling_losses():
        found = list(itertools.islice(_rows(rows), most + 1))
    emit_table(None, rows.schema.names, [[None if cell is None else str(cell) for cell in row] for row in found[:most]])
    if len(found) > most:
        note(f"the first {most:,} rows; --limit shows more")
    elif not found:
        note("no rows")


class Batches:
    """The rows of a table as a stream gives them."""

    def __init__(self, table: Any) -> None:
        self.schema = table.schema
        self._batches = iter(table.to_batches())

    def _with_nat(self, how: str) -> "Batches":
        """The rows themselves: an answer has its times once, NaT as null."""
        return self

    def __iter__(self) -> Any:
        return self._batches


def _rows(batches: Any) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def show_plan(plan: Plan, form: str | None) -> None:
    """Prints a plan."""
    click.echo(plan.to_json() if form == "json" else str(plan).lstrip())


def tell(array: Array, form: str | None) -> None:
    if form == "json":
        emit_json({"uri": array.uri, "path": array.path, "version": array.version})
    else:
        click.echo(repr(array))


COMMANDS: tuple[click.Command, ...] = (sql_command, query_command, filter_command)
