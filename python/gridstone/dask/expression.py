"""The expression of Dask's optimizer that reads cells: it takes the columns and the filters above it.

What it builds on is not public in Dask. An import that fails is noticed in `frame`, which does without it then.
"""

from typing import Any

from dask._task_spec import Task
from dask.dataframe.dask_expr import new_collection
from dask.dataframe.dask_expr._expr import Filter, Index, PartitionsFiltered, Projection, determine_column_projection
from dask.dataframe.dask_expr.io.io import BlockwiseIO

from ..errors import GridstoneError
from ..query.condition import Expression
from .cells import Cells, Parts
from .filters import split


def collection(cells: Cells, boxes: list[Parts], divisions: tuple[Any, ...], like: Any, where: str | None) -> Any:
    """The frame of these partitions."""
    return new_collection(ReadCells(cells, boxes, divisions, like, list(like.columns), where))


class ReadCells(PartitionsFiltered, BlockwiseIO):  # type: ignore[misc]
    """Reads the cells of each box. `like` is the frame without rows of all columns; `where` a condition as JSON."""

    _parameters = ["cells", "boxes", "ends", "like", "columns", "where", "_partitions"]  # noqa: RUF012
    _defaults = {"where": None, "_partitions": None}  # noqa: RUF012
    _absorb_projections = True
    _filter_passthrough = True

    @property
    def _name(self) -> str:
        return f"gridstone-cells-{self.deterministic_token}"

    @property
    def _meta(self) -> Any:
        return self.operand("like")[self.operand("columns")]

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return list(self.operand("columns"))

    def _divisions(self) -> tuple[Any, ...]:
        return tuple(self.operand("ends"))

    def _filtered_task(self, name: Any, index: int) -> Any:
        given = (self.operand("boxes")[index], self.columns, self.operand("where"), self._meta)
        return Task(name, self.operand("cells").read, *given, _data_producer=True)

    def _filter_passthrough_available(self, parent: Any, dependents: Any) -> bool:
        if not super()._filter_passthrough_available(parent, dependents):
            return False
        return self._split(parent)[0] is not None

    def _split(self, parent: Any) -> tuple[Expression | None, Any]:
        """The condition that says a filter, or a part of it, and what is left of it."""
        return split(parent.predicate, self, self.operand("cells").place.reader()._schema, self.operand("like"))

    def _simplify_up(self, parent: Any, dependents: Any) -> Any:
        if isinstance(parent, Index):
            kept = determine_column_projection(self, parent, dependents)
            columns = [name for name in self.columns if name in kept]
            return None if columns == self.columns else Index(self.substitute_parameters({"columns": columns}))
        if isinstance(parent, Projection):
            return super()._simplify_up(parent, dependents)
        if isinstance(parent, Filter) and parent.frame._name == self._name:
            return self._filtered_by(parent, dependents)
        return None

    def _filtered_by(self, parent: Any, dependents: Any) -> Any:
        """The cells that a filter selects, without the filter or with what no condition says of it."""
        if not self._filter_passthrough_available(parent, dependents):
            return None
        condition, left = self._split(parent)
        assert condition is not None
        before = self.operand("where")
        try:
            both = condition if before is None else Expression.from_json(before) & condition
        except GridstoneError:  # Together they are longer than a condition may be.
            return None
        made = self.substitute_parameters({"where": both.to_json()})
        return made if left is None else Filter(made, left.substitute(self, made))
