"""Deleting cells: by box, by condition, by coordinates."""

from typing import TYPE_CHECKING, Any

from . import cells, selection
from .errors import InputError
from .expressions import condition_json
from .receipt import Closing, Kept, Receipt
from .selection import BoxLike

if TYPE_CHECKING:
    from .array import Array


def delete(array: "Array", box: BoxLike, where: Any, coords: Any, closing: Closing) -> int | Receipt:
    """Does what `Array.delete` says."""
    if coords is not None:
        if box is not None or where is not None:
            raise InputError("coords say all of what is deleted; give them without box and where")
        return _at(array, coords, closing)
    if box is None and where is None:
        raise InputError(
            "say what to delete: box=, where= or coords=; a box of every cell is (...,), an array is removed with its "
            "store by gridstone.delete(uri)"
        )
    within = selection.box_of(array.schema, box)
    native = array._writable()
    if where is None:
        return array._commit([] if within.empty else [native.stage_delete_box(within.texts)], closing)
    if isinstance(closing, Kept):
        raise InputError("a delete by condition is committed at once: what it deletes depends on what is there")
    return array.version if within.empty else native.delete_where(within.texts, condition_json(where), closing)


def _at(array: "Array", coords: Any, closing: Closing) -> int | Receipt:
    dims = cells.coordinates(array.schema, coords)
    native = array._writable()
    if len(next(iter(dims.values()))) == 0:
        return array._commit([], closing)
    return array._commit([native.stage_delete([column.native() for column in dims.values()])], closing)
