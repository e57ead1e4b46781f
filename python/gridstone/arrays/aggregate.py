"""Questions to an array: aggregates of cells, by groups."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

import numpy as np

from .. import _native
from ..base.arguments import checked, flag, mapping, place, several, utf8, whole
from ..base.extras import needed
from ..base.printable import brief
from ..base.progress import Progress, reporting
from ..column.datatype import is_time
from ..errors import InputError
from ..query.box import BoxLike, region_of
from ..query.condition import Where, condition_of
from ..result.answer import answer_of, named_columns, stream_of
from ..result.cells import Result
from ..result.stream import Stream
from ..schema.array_schema import Schema
from .noting import Looking

if TYPE_CHECKING:
    import pyarrow as pa

_Found = TypeVar("_Found")

By = str | Mapping[str, Any] | Sequence[Any] | None
Keys = list[tuple[str, str, int | float | None]]


class Askable(Looking):
    """The part of an array that answers questions."""

    @overload
    def aggregate(
        self,
        aggregates: Mapping[str, str],
        by: By = ...,
        box: BoxLike = ...,
        where: Where | None = ...,
        having: Where | None = ...,
        order: str | Sequence[str] | None = ...,
        limit: int | None = ...,
        *,
        stream: Literal[False] = ...,
        to: None = ...,
        progress: Progress = ...,
    ) -> Result: ...
    @overload
    def aggregate(
        self,
        aggregates: Mapping[str, str],
        by: By = ...,
        box: BoxLike = ...,
        where: Where | None = ...,
        having: Where | None = ...,
        order: str | Sequence[str] | None = ...,
        limit: int | None = ...,
        *,
        stream: Literal[True],
        to: None = ...,
        progress: Progress = ...,
    ) -> Stream: ...
    @overload
    def aggregate(
        self,
        aggregates: Mapping[str, str],
        by: By = ...,
        box: BoxLike = ...,
        where: Where | None = ...,
        having: Where | None = ...,
        order: str | Sequence[str] | None = ...,
        limit: int | None = ...,
        *,
        stream: Literal[False] = ...,
        to: str | os.PathLike[str],
        progress: Progress = ...,
    ) -> Self: ...
    @overload
    def aggregate(
        self,
        aggregates: Mapping[str, str],
        by: By = ...,
        box: BoxLike = ...,
        where: Where | None = ...,
        having: Where | None = ...,
        order: str | Sequence[str] | None = ...,
        limit: int | None = ...,
        *,
        stream: bool,
        to: None = ...,
        progress: Progress = ...,
    ) -> Result | Stream: ...
    @checked(aggregates=mapping, stream=flag, to=place)
    def aggregate(
        self,
        aggregates: Mapping[str, str],
        by: By = None,
        box: BoxLike = None,
        where: Where | None = None,
        having: Where | None = None,
        order: str | Sequence[str] | None = None,
        limit: int | None = None,
        *,
        stream: bool = False,
        to: str | os.PathLike[str] | None = None,
        progress: Progress = None,
    ) -> "Result | Stream | Self":
        """Aggregates of the cells of a box, by groups: a row per group, its keys first.

            a.aggregate({"n": "count(*)", "top": "max(sog)"}, by=["ship", {"t": "1h"}], where="sog > 0.5")

        Args:
            aggregates: names of columns, and what they hold: `count(*)`, or `count sum mean min max var std var_pop
                std_pop any_value first last arg_max arg_min count_distinct approx_count_distinct median quantile
                quantile_disc` of expressions, such as "mean(sog * 1.852)", "arg_max(lat, t)" and "quantile(sog, 0.9)".
            by: what cells are grouped by: names of attributes and dimensions, or a mapping of names to widths of bins
                (`{"lon": 0.5, "t": "1h"}`), or a list of both. A bin begins at a whole multiple of its width (times: at
                whole hours, days, weeks from Monday, months, years); the key is its low edge. None: one group.
            box: as for `read`.
            where: as for `read`.
            having: a condition on the columns of the answer.
            order: names of columns of the answer, each with " desc" or without; None: ascending by the keys; "any":
                whatever is quickest.
            limit: so many groups at most.
            stream: the answer as a stream of batches in bounded memory; all cells are read before it is given.
            to: write the groups into a new array, in one commit: a store, or `'store.gs:/path'`. It is sparse: the keys
                are its coordinates, the aggregates its attributes.
            progress: True for a bar, or a callable `f(done, total)`. With `to` each key of texts is read once more,
                for its longest, and begins anew.

        Nulls are left out of aggregates, as in SQL, and are a group of their own as keys. NaN counts as a number: it
        makes sums, means, least and greatest values NaN, as in NumPy, and is one group.

        Groups beyond a share of the context's memory budget are written to files beside the array, which go at the end;
        `stats["bytes_spilled"]` counts their bytes.

        Returns:
            A `Result`; with `stream` a `Stream` of Arrow batches; with `to` the new array.

        Raises:
            InputError: a name, an aggregate or a width that does not fit; a sum of integers that does not fit 64 bits.
                With `to` also: no key, a key whose type is no dimension's, or one that is null, NaN or infinite.
            ExistsError: something lies at `to`.
            BoundsError: the box is not inside the domain.
            BudgetError: the answer, or what `order` sorts of it, passes the memory budget: use `stream`, `to` or
                `limit`.
        """
        check_ending(stream, to)

        def look(schema: Schema) -> Any:
            keys, asked = keys_of(schema, by), texts_of(aggregates)
            if to is not None:
                # Before a cell is read.
                check_keys(schema, keys, asked)
            region = region_of(schema, box)
            self._note_cut(region)
            condition = None if where is None else condition_of(where)
            kept = None if having is None else condition_of(having)
            # Groups that ascend are not sorted when they are written.
            orders = orders_of(None if to is not None and order == "any" else order)
            ending = (kept, orders, None if limit is None else whole("limit", limit))
            answer = _native.answers if stream or to is not None else _native.aggregate
            with reporting(progress, "reading") as report:
                found = answer(self.native, region.native, condition, keys, asked, ending, report)
            budget = self._context.memory_budget
            if isinstance(found, tuple):
                _, named, categories, self._stats = found
                return answer_of(named_columns(schema, named, categories), self._stats, budget)
            made = stream_of(schema, found, budget)
            self._stats = made.stats
            return made if to is None else self._written(made, keys, os.fspath(to), (box, where, order), progress)

        made: Result | Stream | Self = self._retry_if_schema_moved(look)
        return made

    def _written(
        self, stream: Stream, keys: Keys, to: str, asked: tuple[BoxLike, Where | None, Any], progress: Progress
    ) -> Self:
        """The array of the groups of a stream."""
        from .answered import written

        (box, where, order), names = asked, [name for name, _, _ in keys]
        longest = {name: self._longest(name, box, where, progress) for name in names if _is_text(stream, name)}
        # The counters are those of the question, not of its longest texts.
        self._stats = stream.stats
        made: Self = written(self, stream, names, to, longest, ascends=not orders_of(order))
        return made

    def _longest(self, name: str, box: BoxLike, where: Where | None, progress: Progress) -> int:
        """Bytes of the longest text among the values of a key."""
        asked = {f"cells of {name}": "count(*)"}
        with closing(self.aggregate(asked, name, box, where, stream=True, progress=progress)) as stream:
            longest = 0
            while (found := stream._next_columns()) is not None:
                offsets: Any = found[name].offsets
                longest = max(longest, int(np.diff(offsets).max()))
        return longest

    @checked(aggregates=mapping)
    def partial(
        self,
        aggregates: Mapping[str, str],
        by: By = None,
        box: BoxLike = None,
        where: Where | None = None,
        *,
        progress: Progress = None,
    ) -> "pa.Table":
        """The partial result of a question, as an Arrow table that can be sent to another machine.

        Arguments and errors as of `aggregate`. `gridstone.partials.merge` merges those of parts of the cells, in any
        order, and `gridstone.partials.finish` makes the answer of one. Where aggregates need all values at once
        (`median`, `quantile`, `count_distinct`) the table has a row per group and value.

            parts = [a.partial({"m": "mean(v)"}, by="k", box=box) for box in boxes]
            gs.partials.finish(gs.partials.merge(parts))
        """
        needed("pyarrow", "pyarrow", "partial()")
        from .partials import table_of

        def look(schema: Schema) -> "pa.Table":
            keys, asked = keys_of(schema, by), texts_of(aggregates)
            region = region_of(schema, box)
            self._note_cut(region)
            condition = None if where is None else condition_of(where)
            with reporting(progress, "reading") as report:
                tables, stats = _native.partial(self.native, region.native, condition, keys, asked, report)
            self._stats = stats
            return table_of(schema.to_json(), keys, asked, tables)

        return self._retry_if_schema_moved(look)


def check_ending(stream: bool, to: Any) -> None:
    """An `InputError` if an answer is to be two things."""
    if stream and to is not None:
        raise InputError("stream= and to= say what becomes of the answer: give one of them")


def check_keys(schema: Schema, keys: Keys, texts: list[tuple[str, str]]) -> None:
    """An `InputError` unless the keys of an answer can be dimensions."""
    from . import answered

    answered.check_keys(answer_schema(schema, keys, texts), [name for name, _, _ in keys])


def _is_text(stream: Stream, name: str) -> bool:
    attr = stream._array_schema.attr(name)
    return attr.dtype == "string" and attr.enumeration is None


def answer_schema(schema: Schema, keys: Keys, texts: list[tuple[str, str]]) -> Schema:
    """The columns of an answer: that of no cells has them, and names what does not fit."""
    _, found, categories, stats = _native.finish_partials(schema.to_json(), keys, texts, [])
    return answer_of(named_columns(schema, found, categories), stats, 1 << 20)._schema


def texts_of(aggregates: Mapping[Any, Any]) -> list[tuple[str, str]]:
    """Names and texts of aggregates for the core."""
    for name, text in aggregates.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InputError(
                f'aggregates= has names of columns and texts such as "mean(v)", found {brief(name)}: {brief(text)}'
            )
        utf8("aggregates", name)
        utf8("aggregates", text)
    return list(aggregates.items())


def orders_of(order: str | Sequence[str] | None) -> list[tuple[str, bool]] | None:
    """Columns, and whether each descends; None: any order will do."""
    if order is None:
        return []
    if isinstance(order, str) and order == "any":
        return None
    several("order", order)
    made = []
    for one in [order] if isinstance(order, str) else order:
        if not isinstance(one, str):
            raise InputError(f'order= names columns of the answer, such as "n desc", not {brief(one)}')
        utf8("order", one)
        name, _, way = one.rpartition(" ")
        known = way.lower() in ("asc", "desc") and name != ""
        made.append((unquoted(name.strip() if known else one), known and way.lower() == "desc"))
    return made


def keys_of(schema: Schema, by: By) -> Keys:
    """Keys for the core: name, text of the value, width of bins."""
    return [_key(schema, name, width) for name, width in _flat(by)]


def _flat(by: By) -> Iterator[tuple[str, Any]]:
    if by is None:
        return
    if isinstance(by, str):
        yield by, None
    elif isinstance(by, Mapping):
        yield from by.items()
    elif isinstance(by, Sequence):
        for one in by:
            yield from _flat(one)
    else:
        raise InputError(f"by= takes names, a mapping of names to widths of bins, or a list of both, not {brief(by)}")


def quoted(name: str) -> str:
    """A name as expressions have it: in quotes, since some words are no names without them."""
    return '"' + name.replace('"', '""') + '"'


def unquoted(name: str) -> str:
    """A name that was given in quotes, as expressions have it, without them."""
    inner = name[1:-1]
    is_quoted = len(name) > 2 and name[0] == name[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted else name


def _key(schema: Schema, name: Any, width: Any) -> tuple[str, str, int | float | None]:
    if not isinstance(name, str):
        raise InputError(f"by= takes names, and widths of bins by name, not {brief(name)}")
    utf8("by", name)
    known = {dim.name for dim in schema.dims} | {attr.name for attr in schema.attrs}
    if name not in known and unquoted(name) in known:
        name = unquoted(name)
    text = quoted(name) if name in known else name
    if width is None:
        return name, text, None
    if isinstance(width, np.timedelta64):
        width = _period(name, width)
    if isinstance(width, str):
        utf8("by", width)
        length = width.replace("'", "''")
        return name, f"period({text}, '{length}')", None
    is_number = isinstance(width, int | float | np.integer | np.floating) and not isinstance(width, bool)
    if not is_number or not 0 < width < 2**63:
        raise InputError(
            f'by={{{name!r}: …}}: the width of a bin is a number from 0 to 2^63, or a length of time such as "1h", not '
            f"{brief(width)}"
        )
    dtype = schema.dim(name).dtype if name in {d.name for d in schema.dims} else _dtype(schema, name)
    if dtype is not None and is_time(dtype):
        raise InputError(f'by={{{name!r}: {width!r}}}: {dtype} has bins such as "1h", "1D" or "1M"')
    return name, text, int(width) if float(width).is_integer() else float(width)


def _dtype(schema: Schema, name: str) -> str | None:
    return next((attr.dtype for attr in schema.attrs if attr.name == name), None)


def _period(name: str, width: np.timedelta64) -> str:
    unit, count = np.datetime_data(width.dtype)
    if unit == "generic" or np.isnat(width):
        raise InputError(f'by={{{name!r}: {width!r}}}: the width has no unit of time; write "1h"')
    return f"{int(width.astype(np.int64)) * count}{unit}"
