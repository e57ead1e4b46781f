"""Lazy frames of polars over an array."""

import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..base.extras import needed
from ..errors import UnsupportedError
from ..query.condition import Expression
from . import polars_filter
from .predicate import Untranslatable, condition_of, dtypes_of
from .source import Cells

if TYPE_CHECKING:
    import polars as pl


_HINT = "dynamic_pred"
"""How the text of such a hint begins."""


class _Frames:
    """What polars asks for its frames. It pickles as the cells do, so that a lazy frame can go to other processes."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, self._cells.parts

    def __call__(
        self,
        with_columns: list[str] | None,
        predicate: "pl.Expr | None",
        n_rows: int | None,
        batch_size: int | None,
    ) -> "Iterator[pl.DataFrame]":
        polars = needed("polars", "polars", "to_lazy()")
        cells = self._cells
        wanted = cells.schema.names if with_columns is None else list(with_columns)
        filters = [] if predicate is None else _without_hints(predicate)
        where: Expression | None = None
        reads = list(wanted)
        for one in filters:
            reads += [name for name in one.meta.root_names() if name not in reads]
            made = self._condition(one)
            where = made if where is None or made is None else where & made
        # A frame without columns has no rows in polars.
        reads = reads or cells.schema.names[:1]
        left = n_rows
        for batch in cells.batches(reads, where):
            frame = polars.from_arrow(pa.Table.from_batches([batch]))
            for one in filters:
                frame = frame.filter(one)
            frame = frame.select(wanted) if with_columns is not None else frame
            if left is not None:
                frame, left = frame.head(left), left - min(left, frame.height)
            yield from [frame] if batch_size is None else frame.iter_slices(batch_size)
            if left == 0:
                return

    def _condition(self, predicate: Any) -> Expression | None:
        schema = self._cells.source.schema
        node = polars_filter.node_of(predicate, dtypes_of(schema))
        try:
            return condition_of(node, schema, nan_is_greatest=True, exact=False)
        except Untranslatable:
            return None


def _again(source: Any, times: str, title: str) -> _Frames:
    return _Frames(Cells(source, times, title))


def _without_hints(predicate: "pl.Expr") -> "list[pl.Expr]":
    """The predicate without hints of polars' own, such as the least value of a top list so far, which it cannot
    evaluate outside. Only parts of the whole that stand beside the rest with `and` are hints."""
    if _HINT not in str(predicate):
        return [predicate]
    polars = needed("polars", "polars", "to_lazy()")
    left = _stripped(json.loads(predicate.meta.serialize(format="json")))
    return [] if left is None else [polars.Expr.deserialize(io.StringIO(json.dumps(left)), format="json")]


def _stripped(tree: Any) -> Any:
    """The tree without hints; None if it is one."""
    if _HINT in str(tree.get("Display", {}).get("fmt_str", "")):
        return None
    joined = tree.get("BinaryExpr", {})
    if joined.get("op") not in ("And", "LogicalAnd"):
        return tree
    left, right = _stripped(joined["left"]), _stripped(joined["right"])
    if left is None or right is None:
        return right if left is None else left
    return {"BinaryExpr": {**joined, "left": left, "right": right}}


def lazy_of(cells: Cells) -> "pl.LazyFrame":
    """The lazy frame of the cells."""
    polars = needed("polars", "polars", "to_lazy()")
    plugins = needed("polars.io.plugins", "polars", "to_lazy()")
    try:
        schema = dict(polars.from_arrow(cells.schema.empty_table()).schema)
    except Exception as error:
        # Errors of polars share no class; the message says which type it is.
        raise UnsupportedError(
            f"polars has no type for a column of {cells.title}: {error}; take to_pyarrow_dataset() and leave it out"
        ) from error
    return plugins.register_io_source(  # type: ignore[no-any-return]
        _Frames(cells), schema=schema, validate_schema=False, is_pure=True
    )
