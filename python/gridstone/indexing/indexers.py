"""The indexers `vindex` (lists of positions point by point) and `oindex` (lists of positions per axis)."""

from typing import Any

from ..column import decode
from ..column.datatype import AnyArray
from ..schema.array_schema import Schema
from . import chosen, dense, lists, positions
from .handle import Handle


class VIndex:
    """Cells at lists of positions, point by point: `a.vindex[[1, 5], [2, 2]]` gives the cells (1, 2) and (5, 2).

    There is one integer or array of integers per dimension; they broadcast together as in NumPy's indexing, and the
    result has their shape. A boolean array of the array's shape chooses the cells where it is true. Dense: an ndarray
    (a dict of them by attribute). Sparse: a `Result` of the cells that exist.

    `a.vindex[[1, 5], [2, 2]] = values` writes the cells of a dense array in one commit; values broadcast, and of a cell
    that is named twice the last value stays.
    """

    def __init__(self, array: Handle, name: str | None = None) -> None:
        self._array, self._name = array, name

    def __repr__(self) -> str:
        return repr_of("VIndex", self._array, self._name)

    def __getitem__(self, key: Any) -> Any:
        array = self._array
        array._note_ends(key)
        if array.sparse:
            names = array.schema_names if self._name is None else [self._name]
            found = lists.read(array, lists.points_of(array._schema, key), names)
            return found if self._name is None else found[self._name]

        def look(schema: Schema) -> dict[str, AnyArray]:
            points, shape = lists.points(schema, key)
            choices = [chosen.paired(positions) for positions in points]
            return chosen.read(array, schema, _names(schema, self._name), choices, None, shape)

        made = array._retry_if_schema_moved(look)
        return lists.one_of({name: decode.one(values) for name, values in made.items()}, self._name)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array._check_dense("assignment to lists of positions")
        self._array._note_ends(key)
        points, shape = lists.points(self._array._schema, key)
        lists.assign(self._array, self._name, [chosen.paired(positions) for positions in points], shape, value)


class OIndex:
    """Lists of positions per axis: `a.oindex[[1, 5], :]` gives the rows 1 and 5.

    There is an integer (which drops its axis), a slice, a list of integers or a boolean list per dimension, each for
    its own axis; lists may be in any order and repeat. The result is an ndarray (a dict of them by attribute); of a
    sparse array a `Result` with the cells that exist there, each once, in row order.

    `a.oindex[[1, 5], :] = values` writes these cells in one commit, as a box where they make one and else one by one
    with their coordinates; values broadcast, and of a cell that is named twice the last value stays.
    """

    def __init__(self, array: Handle, name: str | None = None) -> None:
        self._array, self._name = array, name

    def __repr__(self) -> str:
        return repr_of("OIndex", self._array, self._name)

    def __getitem__(self, key: Any) -> Any:
        array = self._array
        array._note_ends(key)
        if array.sparse:
            asked = None if self._name is None else [self._name]
            cells = array._retry_if_schema_moved(lambda schema: positions.orthogonal(array, schema, key, asked))
            return cells if self._name is None else cells[self._name]

        def look(schema: Schema) -> tuple[list[lists.Part], dict[str, AnyArray]]:
            parts = lists.axis_parts(schema, key)
            return parts, lists.orthogonal(array, schema, _names(schema, self._name), parts)

        parts, made = array._retry_if_schema_moved(look)
        dropped = tuple(0 if part.drop else slice(None) for part in parts)
        dotted = any(part is Ellipsis for part in (key if isinstance(key, tuple) else (key,)))
        found = {name: values[(*dropped, ...)] for name, values in made.items()}
        return lists.one_of(
            found if dotted else {name: decode.one(values) for name, values in found.items()}, self._name
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        array, schema = self._array, self._array._schema
        array._check_dense("assignment to lists of positions")
        array._note_ends(key)
        parts = lists.axis_parts(schema, key)
        axes = [part.axis for part in parts]
        if None not in axes:
            dense.write(array, self._name, [axis for axis in axes if axis is not None], value)
            return
        shape = tuple(part.count for part in parts if not part.drop)
        lists.assign(array, self._name, [part.chosen for part in parts], shape, value)


def _names(schema: Schema, name: str | None) -> list[str]:
    return [attr.name for attr in schema.attrs] if name is None else [name]


def repr_of(kind: str, array: Handle, name: str | None) -> str:
    """What access to an array, or to one of its attributes, says that it is."""
    return f"<gridstone.{kind} of {'' if name is None else f'attribute {name!r} of '}{array!r}>"
