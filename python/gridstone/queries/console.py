"""Questions one after the other on one connection: a table or view that one statement makes is there for the next."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..arrays.array import Array
from ..context.settings import Context, default
from ..errors import NotFoundError
from ..result.plan import Plan
from . import catalog
from .answers import Answers
from .engine import Engine, is_file
from .parameters import parameters
from .sql import plan_of, streamed
from .statement import in_quotes
from .writing import written

_TABLES = """
select table_name as name from duckdb_tables() where not internal
union select view_name from duckdb_views() where not internal order by name
"""
_KEYWORDS = "select distinct keyword_name from duckdb_keywords() where keyword_category <> 'unreserved'"
_FUNCTIONS = """
select distinct function_name from duckdb_functions()
where schema_name = 'main' and regexp_full_match(function_name, '[a-z]\\w+') and not starts_with(function_name, 'pg_')
"""


class Statement(NamedTuple):
    """One statement."""

    text: str
    gives_rows: bool
    """Whether its rows are an answer; not those of CREATE, SET and the like."""


class Console:
    """A connection that lasts. Each statement finds arrays at the versions that are then the newest."""

    def __init__(self, context: Context | None = None) -> None:
        self.context = context or default()
        self._engine = Engine(self.context, {}, lasting=True)

    def statements(self, text: str) -> list[Statement]:
        """The statements of a text.

        Raises:
            InputError: a mistake in their syntax; there is none.
        """
        found = []
        for one in self._engine.statements(text):
            kinds = [kind.name for kind in one.expected_result_type]
            found.append(Statement(str(one.query), "NOTHING" not in kinds or one.type.name == "MULTI"))
        return found

    def ask(
        self,
        statement: Statement,
        params: Any = None,
        *,
        explain: bool | str = False,
        to: str | None = None,
        dims: Sequence[str] | None = None,
    ) -> Answers | Plan | Array | None:
        """What `gridstone.sql` gives of one statement; None if it gives no rows. A stream ends with the next call."""
        engine = self._engine
        engine.renew()
        engine.find_arrays(statement.text)
        bound = parameters(params)
        if not statement.gives_rows:
            engine.run(statement.text, bound)
            return None
        if explain:
            return plan_of(engine, statement.text, bound, analyze=explain == "analyze")
        rows = engine.run(statement.text, bound)
        if rows is None:
            return None
        answer = streamed(engine, rows)
        return answer if to is None else written(answer, to, dims, self.context)

    def names(self, uri: str | None = None) -> list[str]:
        """The arrays of the stores in the working folder, then tables and views that statements made; or the arrays
        of a store."""
        if uri is not None:
            return catalog.arrays_of_store(uri, self.context)
        arrays = catalog.arrays_in("", self.context)
        return [*arrays, *(name for name in self.tables() if name not in arrays)]

    def tables(self) -> list[str]:
        """Tables and views that statements made."""
        self._engine.renew()
        found = set(self._engine.found)
        return [name for (name,) in self._rows(_TABLES) if name not in found]

    def columns(self, name: str) -> list[tuple[str, str]]:
        """The columns of an array, table, view or file, each with its type in SQL.

        Raises:
            NotFoundError: there is none of that name.
        """
        question = f"describe from {in_quotes(name)}"
        self._engine.renew()
        if name not in self.tables() and not is_file(name) and not self._engine.find(name):
            raise NotFoundError(f"there is no array, table or file {name!r}; .tables lists those that there are")
        return [(column, kind) for column, kind, *_ in self._rows(question)]

    def names_of_columns(self, name: str) -> list[str]:
        """The names of the columns of an array, table or view."""
        if name in self.tables():
            return [column for column, _ in self.columns(name)]
        return catalog.columns_of(name, self.context)

    def words(self) -> tuple[list[str], list[str]]:
        """The keywords and the functions that DuckDB has."""
        return [name for (name,) in self._rows(_KEYWORDS)], [name for (name,) in self._rows(_FUNCTIONS)]

    def _rows(self, question: str) -> list[tuple[Any, ...]]:
        engine = self._engine
        try:
            return engine.apart(lambda: engine.con.execute(question).fetchall())
        except BaseException as error:
            raise engine.error_of(error) from error

    def close(self) -> None:
        """Ends the connection."""
        self._engine.close()
