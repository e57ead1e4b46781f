"""Compares two arrays, or two versions of one: their schemas, then their cells."""

import os
from collections.abc import Sequence
from typing import Any

from ..arrays.array import Array
from ..base.arguments import among, checked, several
from ..base.printable import brief
from ..base.progress import Progress, reporting
from ..column import datatype
from ..context.settings import Context
from ..errors import InputError
from ..query.box import BoxLike, Room, box_of
from ..schema.array_schema import Schema
from ..stores import store
from .cells import compare
from .report import Changed, Difference


@checked()
def diff(
    a: "Array | str | os.PathLike[str]",
    b: "Array | str | os.PathLike[str]",
    *,
    path: str = "/",
    b_path: str | None = None,
    box: BoxLike = None,
    attrs: Sequence[str] | str | None = None,
    examples: int = 10,
    context: Context | None = None,
    progress: Progress = None,
) -> Difference:
    """Compares two arrays, or two versions of one (`gs.diff(a.at(version=3), a)`), in bounded memory.

    Cells are compared by their coordinates, wherever and in whatever order they are stored. NaN equals NaN, null equals
    null, 0.0 equals -0.0. Where duplicates are allowed, the cells at one place are a multiset: those with the same
    values are the same cell. As many of the others as both have differ, the rest is only in one. Dense arrays are
    compared in the box around all that is written in either.

    Args:
        a, b: arrays, or the stores that they are in.
        path: the place of the arrays in their stores, where these are given.
        b_path: that of `b`, if it is another.
        box: compare cells in this box only, given as for `read`; it may reach beyond both domains.
        attrs: compare these attributes only; None: all that both have, of one type.
        examples: so many cells that differ are shown.
        context: None: the process's default, for stores that are opened here.
        progress: True for a bar, or a callable `f(done, total)`: boxes.

    Raises:
        InputError: an attribute that one of them has not; something else than arrays or stores.

    Example:
        >>> b = gs.copy("sea.gs", "other.gs")
        >>> b[0, 2, :5] = -1
        >>> found = gs.diff("sea.gs", b)
        >>> dict(found.values)
        {'v': 5}
    """
    first, second = _opened(a, path, context), _opened(b, path if b_path is None else b_path, context)
    found = Difference(_name(first), _name(second), _schemas(first.schema, second.schema))
    found.attrs = _common(first.schema, second.schema, attrs)
    found.compared = first.sparse == second.sparse and _dims(first.schema) == _dims(second.schema)
    if found.compared:
        found.values = dict.fromkeys(found.attrs, 0)
        within = None if box is None else box_of(first.schema, box, Room.TYPE)
        with reporting(progress, "comparing", "boxes") as report:
            compare(first, second, within, found, examples, report)
    return found


def _opened(given: "Array | str | os.PathLike[str]", path: str, context: Context | None) -> "Array":
    if isinstance(given, Array):
        return given
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"diff() takes arrays, or the stores that they are in, not {type(given).__name__}")
    return store.open_array(given, path=path, context=context)


def _name(array: "Array") -> str:
    place = array.uri if array.path == "/" else f"{array.uri} {array.path}"
    return f"{place}, version {array.version}"


def _dims(schema: Schema) -> list[tuple[str, str]]:
    return [(dim.name, dim.dtype) for dim in schema.dims]


def _common(a: Schema, b: Schema, wanted: Sequence[str] | str | None) -> tuple[str, ...]:
    kinds = [{attr.name: attr.dtype for attr in schema.attrs} for schema in (a, b)]
    if wanted is None:
        return tuple(name for name, kind in kinds[0].items() if kinds[1].get(name) == kind)
    several("attrs", wanted)
    names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    for name in names:
        if not all(among(name, have) for have in kinds) or kinds[0][name] != kinds[1][name]:
            raise InputError(f"attrs= names attributes of one type in both arrays; {brief(name)} is not one")
    return names


_ATTR_PARTS = ("dtype", "nullable", "fill", "filters", "categories", "ordered", "codes")


def _schemas(a: Schema, b: Schema) -> tuple[Changed, ...]:
    found = []
    for name in ("sparse", "capacity", "tile_order", "cell_order", "duplicates", "coord_filters"):
        ours, theirs = getattr(a, name), getattr(b, name)
        if ours != theirs and not (name == "capacity" and not a.sparse and not b.sparse):
            found.append(Changed(name, ours, theirs))
    found += _order("dimensions", [d.name for d in a.dims], [d.name for d in b.dims])
    for name, ours, theirs in _pairs(a.dims, b.dims):
        found += _parts(f"dimension {name}", ours, theirs, ("dtype", "domain", "tile", "max_bytes"))
    for name, ours, theirs in _pairs(a.attrs, b.attrs):
        found += _parts(f"attribute {name}", ours, theirs, _ATTR_PARTS)
    return tuple(found)


def _order(what: str, ours: list[str], theirs: list[str]) -> list[Changed]:
    return [Changed(what, ours, theirs)] if ours != theirs and sorted(ours) == sorted(theirs) else []


def _pairs(ours: Sequence[Any], theirs: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    first, second = ({part.name: part for part in parts} for parts in (ours, theirs))
    return [(name, first.get(name), second.get(name)) for name in {**first, **second}]


def _parts(what: str, ours: Any, theirs: Any, names: tuple[str, ...]) -> list[Changed]:
    if ours is None or theirs is None:
        return [Changed(what, ours and ours.dtype, theirs and theirs.dtype)]
    found = []
    for name in names:
        pair = [getattr(part, name) for part in (ours, theirs)]
        if _plain(name, ours.dtype, pair[0]) != _plain(name, theirs.dtype, pair[1]):
            found.append(Changed(f"{what}: {name}", *pair))
    return found


def _plain(name: str, dtype: str, value: Any) -> Any:
    """Something that can be compared: NaN and NaT are themselves."""
    if name == "fill":
        return datatype.show(value, dtype)
    return [datatype.show(v, dtype) for v in value] if name in ("domain", "categories") and value is not None else value
