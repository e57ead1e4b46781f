"""Arrays to be written to files, given as handles or as the places of stores."""

from typing import Any

from ..arrays.array import Array
from ..base.arguments import place
from ..stores import store


def stored(what: str, value: Any) -> None:
    """An array, or the store of one."""
    if not isinstance(value, Array):
        place(what, value)


def opened(array: Array | store.Uri) -> Array:
    """The array itself, or the one of a store."""
    return array if isinstance(array, Array) else store.open_array(array)
