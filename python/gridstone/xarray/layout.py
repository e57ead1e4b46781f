"""How the array of a variable is cut into tiles and compressed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.printable import brief
from ..column import datatype
from ..errors import InputError
from ..schema.tile_shape import auto_tile, open_tile
from .form import Form


@dataclass(frozen=True)
class Layout:
    """Extents of tiles by axis, and filters."""

    tile: tuple[int, ...] = ()
    filters: Any = "auto"


def layout_of(shape: Sequence[int], form: Form, asked: Mapping[str, Any] | None, grows: bool) -> Layout:
    """The layout that `encoding=` asks for, else tiles of about 2 MiB. Where the whole array fits into one, the first
    dimension has room to grow in its tile.

    Raises:
        InputError: not one extent for each dimension.
    """
    given = asked or {}
    return Layout(_tile(shape, form, given), _filters(given))


def _tile(shape: Sequence[int], form: Form, given: Mapping[str, Any]) -> tuple[int, ...]:
    key = next((key for key in ("tile", "chunks", "chunksizes") if given.get(key) is not None), None)
    if key is not None:
        return _extents(shape, key, given[key])
    if not shape:
        return ()
    itemsize = max(1, datatype.numpy_of(form.dtype).itemsize)
    sides = [max(1, size) for size in shape]
    tile = auto_tile(sides, itemsize)
    room = open_tile(sides[1:], 1, itemsize)
    return (max(room, tile[0]), *tile[1:]) if tuple(tile) == tuple(sides) else tile


def _extents(shape: Sequence[int], key: str, given: Any) -> tuple[int, ...]:
    sides = [given] * len(shape) if isinstance(given, int) else list(given)
    if len(sides) != len(shape) or not all(isinstance(side, int) and side > 0 for side in sides):
        raise InputError(
            f"encoding= has {key!r} {brief(given)}; it takes one extent of 1 or more for each of {len(shape)} "
            f"dimensions"
        )
    return tuple(sides)


def _filters(given: Mapping[str, Any]) -> Any:
    """The filters of an attribute; those of HDF5's names as the filters of ours that do the same."""
    if given.get("filters") is not None:
        return given["filters"]
    if not given.get("zlib"):
        return ["shuffle"] if given.get("shuffle") else "auto"
    level = given.get("complevel", 4)
    return [*(["shuffle"] if given.get("shuffle", True) else []), f"gzip:{level}"]
