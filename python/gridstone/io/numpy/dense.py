"""Dense arrays loaded from arrays of NumPy in memory or mapped from files, tile by tile."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from ...arrays.array import Array
from ...base.progress import Progress, reporting
from ...column import datatype
from ...column.datatype import AnyArray
from ...context.settings import Context
from ...errors import InputError, SchemaError, UnsupportedError
from ...query import pieces
from ...query.box import BoxLike, Room, box_of
from ...schema.array_schema import Schema
from ...schema.attribute import Attr
from ...schema.dimension import Dim
from ...schema.fields import attr_field
from ...schema.tile_shape import auto_tile
from ...stores import store
from ..load import End, Keywords, Options, Place, context_or_default, created, existing_array

_PIECE_BYTES = 8 << 20


class Stacked:
    """Arrays behind one another along the first axis; records have an attribute per field."""

    def __init__(self, parts: Sequence[AnyArray], titles: Sequence[str]) -> None:
        for part, title in zip(parts, titles, strict=True):
            check_filled(part, title)
            if part.shape[1:] != parts[0].shape[1:] or part.dtype != parts[0].dtype:
                raise InputError(
                    f"{title} holds {part.dtype} of shape {part.shape}, {titles[0]} {parts[0].dtype} of shape "
                    f"{parts[0].shape}: arrays are put behind one another along the first axis only"
                )
        self._parts = parts
        self._ends = np.cumsum([len(part) for part in parts])
        self.shape = (int(self._ends[-1]), *parts[0].shape[1:])
        self.title = titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more"
        self.dtypes = _named_types(parts[0].dtype)
        self.shapes = {name: self.shape + (kind.shape if name else ()) for name, kind in self.dtypes.items()}

    def take(self, where: tuple[slice, ...]) -> dict[str | None, AnyArray]:
        """The values of a box of positions by attribute; None: the one attribute."""
        found, before = [], 0
        for part, end in zip(self._parts, self._ends, strict=True):
            low, high = max(where[0].start, before), min(where[0].stop, int(end))
            if low < high:
                found.append(part[(slice(low - before, high - before), *where[1:])])
            before = int(end)
        values = found[0] if len(found) == 1 else np.concatenate(found)
        return {name: np.asarray(values if name is None else values[name]) for name in self.dtypes}


class Beside:
    """Arrays of one shape, an attribute each."""

    def __init__(self, arrays: Mapping[str, AnyArray], title: str) -> None:
        self._arrays, self.title = arrays, title
        self.shapes: dict[str | None, tuple[int, ...]] = {name: array.shape for name, array in arrays.items()}
        self.shape = next(iter(self.shapes.values()))
        self.dtypes: dict[str | None, Any] = {name: array.dtype for name, array in arrays.items()}

    def take(self, where: tuple[slice, ...]) -> dict[str | None, AnyArray]:
        """The values of a box of positions by attribute."""
        return {name: np.asarray(array[where]) for name, array in self._arrays.items()}


def _named_types(dtype: np.dtype[Any]) -> dict[str | None, Any]:
    """The dtypes of the attributes that a dtype makes."""
    if dtype.names is None:
        return {None: dtype}
    for name in dtype.names:
        if dtype[name].base.names is not None:
            raise UnsupportedError(
                f"field {name!r} holds records in records, {dtype[name]}; make its parts fields of their own"
            )
    return {name: dtype[name] for name in dtype.names}


def load_dense(
    uri: store.Uri,
    data: Stacked | Beside,
    dims: Sequence[str] | None,
    schema: Schema | None,
    context: Context | None,
    progress: Progress,
    *,
    box: BoxLike,
    name: str | None,
    options: Options,
) -> Array:
    """Writes data into a dense array, one fragment, tile by tile."""
    used = context_or_default(context)
    place = Place(uri, dims, schema, False, options)
    existing = existing_array(place, used)
    if existing is None:
        _check_new(data, schema, box, name)
        fresh = schema or _schema_of(data, dims, name)
        return created(place, fresh, used, lambda array, end: _write(array, end, data, None, name, progress))
    _write(existing, End(options.message, options.load_key), data, box, name, progress)
    return existing


def from_array(
    uri: store.Uri,
    source: AnyArray,
    dims: Sequence[str] | None,
    schema: Schema | None,
    context: Context | None,
    progress: Progress,
    *,
    name: str | None = None,
    **options: Unpack[Keywords],
) -> Array:
    """Loads an array in memory as `from_npy` loads one in a file."""
    data = Stacked([source], ["the array"])
    return load_dense(uri, data, dims, schema, context, progress, box=None, name=name, options=Options.of(options))


def check_filled(array: AnyArray, title: str) -> None:
    if array.ndim == 0 or array.size == 0:
        raise InputError(f"{title}: an array needs at least one dimension and cell, found shape {array.shape}")


def _check_new(data: Stacked | Beside, schema: Schema | None, box: BoxLike, name: str | None) -> None:
    if box is not None:
        raise InputError("box= is for an array that is there; a new one has the shape of the data")
    if schema is not None and not schema.sparse:
        _check_shapes(data, schema, name, schema.shape, "the schema's domain")
    elif schema is None and isinstance(data, Beside) and len(set(data.shapes.values())) > 1:
        raise InputError(
            f"{data.title}: attributes of one array have one shape, found {data.shapes}; choose some with attrs="
        )


def _check_shapes(data: Stacked | Beside, schema: Schema, name: str | None, shape: tuple[int, ...], what: str) -> None:
    """Every array has this shape, behind which come the axes of vectors."""
    only = name or (schema.attrs[0].name if len(schema.attrs) == 1 else None)
    for given, found in data.shapes.items():
        if given is None and only is None:
            names = [attr.name for attr in schema.attrs]
            raise InputError(f"the array has the attributes {names}; say which one with name=")
        inner = datatype.shape_of(attr_field(schema, given or only or "").dtype)
        if found != shape + inner:
            vectors = f", and each value {inner}" if inner else ""
            raise InputError(f"{data.title} has shape {found}, {what} has shape {shape}{vectors}")


def _schema_of(data: Stacked | Beside, dims: Sequence[str] | None, name: str | None) -> Schema:
    names = [f"d{i}" for i in range(len(data.shape))] if dims is None else list(dims)
    if len(names) != len(data.shape):
        raise InputError(f"dims= names {len(names)} dimensions, {data.title} has shape {data.shape}")
    attrs = [_attr_of(given or name or "value", kind) for given, kind in data.dtypes.items()]
    width = max(datatype.numpy_of(attr.dtype).itemsize for attr in attrs)
    extents = auto_tile(data.shape, width)
    return Schema([Dim(n, (0, s - 1), t) for n, s, t in zip(names, data.shape, extents, strict=True)], attrs)


def _attr_of(name: str, kind: np.dtype[Any]) -> Attr:
    """The attribute of values of a dtype; of one with a shape, vectors."""
    try:
        return Attr(name, datatype.parse(kind))
    except SchemaError as error:
        raise SchemaError(f"field {name!r}: {error}; leave it out, or convert it first") from None


def _write(array: Array, end: End, data: Stacked | Beside, box: BoxLike, name: str | None, progress: Progress) -> None:
    array._check_dense("loading an array of values")
    schema, where = array._schema, box_of(array._schema, box, Room.DOMAIN)
    _check_shapes(data, schema, name, where.shape, f"the box {where}")
    only, ndim = name or schema.attrs[0].name, schema.ndim
    names = [given or only for given in data.dtypes]
    total, done = math.prod(where.shape), 0
    width = sum(
        max(1, np.dtype(kind).base.itemsize) * math.prod(data.shapes[given][ndim:])
        for given, kind in data.dtypes.items()
    )
    with reporting(progress, "loading", "cells") as report, array.writer(where, attrs=names, **end._asdict()) as out:
        for part in pieces.runs(schema, where, max(1, _PIECE_BYTES // width)):
            found = data.take(part)
            out.append(
                {given or only: pieces.listed(values, ndim, schema.cell_order) for given, values in found.items()}
            )
            done += math.prod(span.stop - span.start for span in part)
            if report is not None:
                report(done, total)
