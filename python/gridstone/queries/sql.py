"""`gridstone.sql` and `gridstone.connect`."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from ..arrays.array import Array
from ..base.arguments import among, checked, flag, place, text
from ..base.printable import brief
from ..context.settings import Context, default
from ..errors import InputError
from ..result.cells import Result
from ..result.plan import Plan
from . import answers, spans
from .answers import Answers
from .engine import Engine, all_tables, duckdb_module
from .parameters import parameters
from .places import arrays_of
from .plan import scans_of, tree_of
from .writing import written

if TYPE_CHECKING:
    import duckdb

_BATCH_ROWS = 1 << 17


def _explained(what: str, value: Any) -> None:
    if not (isinstance(value, bool) or among(value, ("analyze",))):
        raise InputError(f'{what}= is True, False or "analyze", found {brief(value)}')


@overload
def sql(
    query: str,
    params: Any = ...,
    *,
    tables: Mapping[str, Any] | None = ...,
    explain: Literal[False] = ...,
    stream: Literal[False] = ...,
    to: None = ...,
    dims: None = ...,
    context: Context | None = ...,
    **frames: Any,
) -> Result: ...
@overload
def sql(
    query: str,
    params: Any = ...,
    *,
    tables: Mapping[str, Any] | None = ...,
    explain: Literal[False] = ...,
    stream: Literal[True],
    to: None = ...,
    dims: None = ...,
    context: Context | None = ...,
    **frames: Any,
) -> Answers: ...
@overload
def sql(
    query: str,
    params: Any = ...,
    *,
    tables: Mapping[str, Any] | None = ...,
    explain: Literal[False] = ...,
    stream: Literal[False] = ...,
    to: str | os.PathLike[str],
    dims: Sequence[str] | Mapping[str, Any] | None = ...,
    context: Context | None = ...,
    **frames: Any,
) -> Array: ...
@overload
def sql(
    query: str,
    params: Any = ...,
    *,
    tables: Mapping[str, Any] | None = ...,
    explain: Literal[True, "analyze"],
    stream: Literal[False] = ...,
    to: None = ...,
    dims: None = ...,
    context: Context | None = ...,
    **frames: Any,
) -> Plan: ...
@checked(query=text, explain=_explained, stream=flag, to=place)
def sql(
    query: str,
    params: Any = None,
    *,
    tables: Mapping[str, Any] | None = None,
    explain: bool | str = False,
    stream: bool = False,
    to: str | os.PathLike[str] | None = None,
    dims: Sequence[str] | Mapping[str, Any] | None = None,
    context: Context | None = None,
    **frames: Any,
) -> Any:
    """Answers a question in SQL, in DuckDB's dialect, over arrays, files and data frames.

        gs.sql("select mmsi, max(sog) as top from 'ais.gs' where lon > ? group by mmsi", [8.0]).to_pandas()

    An array is a table with a column per dimension and attribute, named in quotes: `'ais.gs'`, `'store.gs:/ships'`, at
    a version or tag `'ais.gs@3'`, `'store.gs:/ships@tag'`. All arrays of one store are of one version. Columns that
    are not asked for are not read; conditions reach the array, which leaves out what they rule out.

    Args:
        query: one statement, or several parted by semicolons, of which the last one's rows are the answer.
        params: a list for `?` and `$1`, or a mapping for `$name`. Values are bound, never pasted into the text.
        tables: further tables by name: arrays, results, data frames, Arrow tables and data sets.
        explain: True: a `Plan` of how it would be answered. "analyze": answer it, and tell what was read.
        stream: give rows as they come, in bounded memory, instead of all at once.
        to: write the rows into an array, in one commit: a store, or `'store.gs:/path'`. An array that is there is
            appended to.
        dims: with `to`: the columns that are dimensions, as for `gridstone.io.from_arrow`.
        context: opens the arrays; its memory budget, or 64 MiB if that is more, is DuckDB's too, which spills what
            passes it to temporary files.
        frames: as `tables`, by keyword.

    Returns:
        A `Result` of columns; with `stream` a stream of Arrow batches; with `to` the array; with `explain` a `Plan`.

    Whole numbers of more than 64 bits, as sums of integers have, become int64; in a `Result` uint64 if that alone holds
    them. Decimals become float64, intervals of days and hours timedelta64[us]. With `to` an answer without rows makes
    an array without cells.

    Raises:
        InputError: a mistake in the query, which DuckDB's message shows; a number of the answer that does not fit, a
            time that is infinite, or an interval of months; a stream that is read twice; a parameter that DuckDB does
            not have exactly.
        NotFoundError: an array or file that is not there.
        BudgetError: the query needs more memory than the budget, and cannot spill.
        UnsupportedError: DuckDB is missing (`pip install 'gridstone[sql]'`); a column that no result can hold.
    """
    if sum((explain is not False, stream, to is not None)) > 1:
        raise InputError("explain=, stream= and to= say what becomes of the answer: give one of them")
    if dims is not None and to is None:
        raise InputError("dims= says which columns are the dimensions of an array: give to= too")
    used = context or default()
    engine = Engine(used, all_tables(tables, frames))
    try:
        last = _last_of(engine, query)
        bound = parameters(params)
        if explain:
            return plan_of(engine, last, bound, analyze=explain == "analyze")
        rows = engine.run(last, bound)
        if rows is None:
            rows = engine.run("select true as done", None)
        if stream:
            made = streamed(engine, rows)
            # The stream closes the engine.
            engine = None  # type: ignore[assignment]
            return made
        if to is not None:
            return written(streamed(engine, rows), os.fspath(to), dims, used)
        kinds = answers.kinds_of(rows)
        found = _fetched(engine, spans.in_parts(rows, kinds))
        return answers.result_of(found, kinds, engine.stats(), used.memory_budget)
    finally:
        if engine is not None:
            engine.close()


def _last_of(engine: Engine, query: str) -> str:
    """The last statement of a query, whose arrays are known to the connection; those before it are carried out."""
    *before, last = engine.statements(query)
    for one in before:
        engine.find_arrays(one.query)
        rows = engine.run(one.query, None)
        if rows is not None:
            _fetched(engine, rows)
    engine.find_arrays(last.query)
    return str(last.query)


def _fetched(engine: Engine, rows: Any) -> Any:
    """All rows of a relation as an Arrow table."""
    try:
        return engine.apart(rows.to_arrow_table)
    except BaseException as error:
        raise engine.error_of(error) from error


def streamed(engine: Engine, rows: Any) -> Answers:
    """The rows of a relation as they come."""
    try:
        kinds = answers.kinds_of(rows)
        reader = engine.apart(lambda: spans.in_parts(rows, kinds).to_arrow_reader(_BATCH_ROWS))
        return Answers(reader, kinds, engine)
    except BaseException as error:
        raise engine.error_of(error) from error


def plan_of(engine: Engine, query: str, bound: Any, *, analyze: bool) -> Plan:
    """How a statement would be answered; with `analyze` how it was."""
    options = "analyze, format json" if analyze else "format json"
    try:
        rows = engine.apart(lambda: engine.con.execute(f"explain ({options}) {query}", bound).fetchall())
    except BaseException as error:
        raise engine.error_of(error) from error
    tree = tree_of(rows[0][1])
    return Plan(tree, scans_of(tree, engine.datasets, engine.scans if analyze else None))


@checked()
def connect(
    uri: str | os.PathLike[str], *, version: int | str | None = None, context: Context | None = None
) -> "duckdb.DuckDBPyConnection":
    """A connection of DuckDB in which the arrays of one version of a store are views.

        con = gs.connect("store.gs")
        con.sql('select count(*) from ships join "north/buoys" using (day)')

    Views are named by path, `ships`, `"a/b"`; an array at the root by the store's file name without `.gs`. The
    connection is DuckDB's own: it has tables in memory beside the views, and knows files and data frames. A cursor
    (`con.cursor()`) does not see the views.

    Args:
        uri: the store.
        version: its version, by number or tag; None: the newest one now. Later commits do not show.
        context: opens the arrays; None: the process's default. Its memory budget, or 64 MiB if that is
            more, is DuckDB's too.

    Raises:
        NotFoundError: there is no store or version.
        InputError: the paths of two arrays differ in case alone, which DuckDB does not tell apart.
        UnsupportedError: DuckDB is missing (`pip install 'gridstone[sql]'`).
    """
    duckdb = duckdb_module("gs.connect()")
    used = context or default()
    found = arrays_of(os.fspath(uri), version, used)
    names: dict[str, str] = {}
    for name in found:
        if names.setdefault(name.casefold(), name) != name:
            raise InputError(
                f"the arrays {names[name.casefold()]!r} and {name!r} of {os.fspath(uri)!r} differ in case alone, which "
                f"DuckDB does not tell apart; name them in gs.sql(…, tables={{…}})"
            )
    con = duckdb.connect(":memory:", config={"memory_limit": f"{max(used.memory_budget, 64 << 20)}B"})
    for name, array in found.items():
        con.register(name, array.to_pyarrow_dataset())
    return con  # type: ignore[no-any-return]
