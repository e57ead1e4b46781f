"""Partial results of questions: Arrow tables that can be sent to another machine, merged, and finished.

A table has a column `stage`, and for each stage the columns of its groups: keys, then what the aggregates hold. Rows of
one stage are null in the columns of the others. The metadata of its schema says what was asked, of which array.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .. import _native
from ..base.arguments import checked, several
from ..base.extras import needed
from ..column import arrow, columns
from ..column.columns import Column, Field
from ..errors import InputError
from ..result.answer import answer_of, named_columns
from ..result.cells import Result
from ..schema.array_schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

_MARK: Final = b"gridstone.partial"
_VERSION: Final = 1

Tables = list[tuple[int, list[tuple[str, str, "_native._OutColumn"]]]]


def table_of(schema_json: str, keys: Any, asked: Any, tables: Tables) -> "pa.Table":
    """The Arrow table of a partial result."""
    import pyarrow as pa

    rows = [count for count, _ in tables]
    stage = np.repeat(np.arange(len(rows), dtype=np.uint8), rows)
    names, arrays, kinds = ["stage"], [pa.array(stage)], []
    for place, (_, found) in enumerate(tables):
        before, after = sum(rows[:place]), sum(rows[place + 1 :])
        for name, dtype, column in found:
            kinds.append([place, name, dtype])
            one = arrow.array_of(columns.from_native(dtype, column), keep_nat=True)
            parts = [pa.nulls(before, one.type), one, pa.nulls(after, one.type)]
            names.append(f"{place}.{name}")
            arrays.append(pa.concat_arrays(parts) if before or after else one)
    told = {"version": _VERSION, "schema": schema_json, "by": keys, "aggregates": asked, "columns": kinds}
    told["rows"] = rows
    fields = [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata={_MARK: json.dumps(told).encode()}))


def _told(table: Any) -> dict[str, Any]:
    metadata = getattr(getattr(table, "schema", None), "metadata", None) or {}
    if _MARK not in metadata:
        raise InputError(
            "this is no partial result: it lacks the metadata that partial() writes; some tools drop the metadata of a "
            "table's schema"
        )
    told: dict[str, Any] = json.loads(metadata[_MARK])
    if told.get("version") != _VERSION:
        raise InputError(
            f"this partial result is of form {told.get('version')}, this release reads form {_VERSION}; make both with "
            f"one release of Gridstone"
        )
    return told


def _tables(table: "pa.Table", told: Mapping[str, Any]) -> list[tuple[int, list[tuple[str, str, Any]]]]:
    """The tables of its stages for the core."""
    rows, kinds = told["rows"], told["columns"]
    if table.num_rows != sum(rows) or table.num_columns != len(kinds) + 1:
        raise InputError(
            f"this partial result has {table.num_rows} rows and {table.num_columns} columns, where {sum(rows)} and "
            f"{len(kinds) + 1} were written; merge it as it was made"
        )
    made: list[tuple[int, list[tuple[str, str, Any]]]] = [(count, []) for count in rows]
    for at, (place, name, dtype) in enumerate(kinds, start=1):
        before = sum(rows[:place])
        part = table.column(at).slice(before, rows[place])
        field = Field(name, dtype, True, "attribute")
        held: Column = arrow.column_of(field, part)
        made[place][1].append((name, dtype, held.native()))
    return made


def _all(tables: Iterable[Any]) -> tuple[dict[str, Any], list[Any]]:
    several("tables", tables)
    needed("pyarrow", "pyarrow", "partial results")
    given = list(tables)
    if not given:
        raise InputError("no partial result was given; there is nothing to merge")
    told = [_told(table) for table in given]
    for other in told[1:]:
        for what in ("by", "aggregates"):
            if other[what] != told[0][what]:
                raise InputError(f"these are partial results of two questions: {told[0][what]} and {other[what]}")
    longest = max(told, key=lambda one: sum(map(len, _categories(one).values())))
    for other in told:
        _check_categories(other, longest)
    return longest, [_tables(table, one) for table, one in zip(given, told, strict=True)]


def _categories(told: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The lists of categories whose codes a partial result may hold, by attribute."""
    texts = [text for _, text, *_ in told["by"]] + [text for _, text in told["aggregates"]]
    named = {name for text in texts for name in _names(text)}
    attrs = Schema.from_json(told["schema"]).attrs
    return {a.name: a.categories for a in attrs if a.categories is not None and a.name in named}


_WORD: Final = re.compile(r"""'(?:[^']|'')*'|"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|([^\W\d]\w*)""")
"""A text, or a name: in quotes of two kinds, or plain."""


def _names(text: str) -> set[str]:
    """The names in an expression; a key may also be the name of an attribute as it is."""
    quoted = {(a.replace('""', '"') or b.replace("``", "`")) for a, b, _ in _WORD.findall(text)}
    return {text, *quoted, *(plain for _, _, plain in _WORD.findall(text))} - {""}


def _check_categories(told: Mapping[str, Any], longest: Mapping[str, Any]) -> None:
    """An `InputError` unless codes mean the same in both: lists only grow at their ends."""
    mine, theirs = _categories(told), _categories(longest)
    for name in mine.keys() | theirs.keys():
        own, other = mine.get(name), theirs.get(name)
        if own is None or other is None or other[: len(own)] != own:
            raise InputError(
                f"attribute {name!r} has other categories in one of these partial results than in another: {own} and "
                f"{other}; merge those of arrays whose lists begin alike"
            )


def _keys(told: Mapping[str, Any]) -> list[tuple[str, str, int | float | None]]:
    return [tuple(key) for key in told["by"]]


def _asked(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [tuple(one) for one in told["aggregates"]]


@checked()
def merge(tables: Iterable["pa.Table"]) -> "pa.Table":
    """The partial result of all cells that some partial results of one question are of, in any order.

    Raises:
        InputError: a table that `partial` did not make, or one of another question.
    """
    told, parts = _all(tables)
    made, _ = _native.merge_partials(told["schema"], _keys(told), _asked(told), parts)
    return table_of(told["schema"], told["by"], told["aggregates"], made)


@checked()
def finish(table: "pa.Table") -> Result:
    """The answer of a partial result, groups ascending by their keys.

    Raises:
        InputError: a table that `partial` did not make; a sum of integers that does not fit 64 bits.
    """
    told, parts = _all([table])
    _, found, categories, stats = _native.finish_partials(told["schema"], _keys(told), _asked(told), parts)
    schema = Schema.from_json(told["schema"])
    return answer_of(named_columns(schema, found, categories), stats, 1 << 40)
