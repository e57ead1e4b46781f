"""Deleting cells: by box, by condition, by coordinates."""

from typing import TYPE_CHECKING, Any

from . import cells, selection
from .errors import InputError
from .expressions import condition_json
from .selection import BoxLike

if TYPE_CHECKING:
    from .array import Array


def delete(array: "Array", box: BoxLike, where: Any, coords: Any, message: str | None) -> int:
    """Does what `Array.delete` says."""
    if coords is not None:
        if box is not None or where is not None:
            raise InputError("coords say all of what is deleted; give them without box and where")
        return _at(array, coords, message)
    if box is None and where is None:
        raise InputError(
            "say what to delete: box=, where= or coords=; a box of every cell is (...,), an array is removed with its "
            "store by gridstone.delete(uri)"
        )
    within = selection.box_of(array.schema, box)
    native = array._writable()
    if within.empty:
        return array.version
    if where is None:
        return array._commit([native.stage_delete_box(within.texts)], message)
    return native.delete_where(within.texts, condition_json(where), message)


def _at(array: "Array", coords: Any, message: str | None) -> int:
    dims = cells.coordinates(array.schema, coords)
    native = array._writable()
    if len(next(iter(dims.values()))) == 0:
        return array.version
    return array._commit([native.stage_delete([column.native() for column in dims.values()])], message)
