"""A copy of an array whose dimensions and attributes have wider types, so that it takes what the array does not.

1. Types and lengths are checked against the schema before anything is created.
2. Cells are read as a stream and written in bounded memory; each value is checked.
3. Cells and metadata become one commit. A store that was made for the copy goes if it fails.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays.array import Array
from ..base.progress import Progress
from ..column import arrow, arrow_types, datatype
from ..column.columns import Column, Field
from ..context.settings import Context
from ..errors import GridstoneError, InputError, SchemaError
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from ..schema.fields import dim_fields, field_of
from . import store
from .transaction import transaction


def recast(
    source: Array,
    target: str | os.PathLike[str],
    path: str,
    types: Mapping[str, Any],
    max_bytes: Mapping[str, int],
    *,
    overwrite: bool,
    context: Context,
    progress: Progress,
) -> Array:
    """Copies the array to `path` of the store `target`, with these types and lengths of texts by name.

    Raises:
        InputError: a type that does not hold a value, named by column; or one that cannot be changed.
        SchemaError: a name that there is not.
        ExistsError: something lies at the path, and `overwrite` is False.
    """
    schema = recast_schema(source.schema, types, max_bytes)
    fresh = not store.exists(target, context=context)
    if fresh:
        made = store.create(target, schema, path=path, context=context)
    try:
        with transaction(target, f"a copy of {source.uri}", context=context) as copied:
            staged = copied[path] if fresh else copied.create(path, schema, overwrite=overwrite)
            _fill(source, staged, progress)
            _name(source, staged)
    except BaseException:
        # The first error is the one that is raised.
        with contextlib.suppress(GridstoneError):
            if fresh and store.open_array(target, path=path, context=context).version == made.version:
                store.delete(target, context=context)
        raise
    return store.open_array(target, path=path, mode="r+", context=context)


def recast_schema(schema: Schema, types: Mapping[str, Any], max_bytes: Mapping[str, int]) -> Schema:
    """The schema with these types and lengths; everything else stays."""
    names = [*(dim.name for dim in schema.dims), *(attr.name for attr in schema.attrs)]
    unknown = [name for name in [*types, *max_bytes] if name not in names]
    if unknown:
        raise SchemaError(f"no dimension or attribute {unknown[0]!r}; there are {', '.join(map(repr, names))}")
    dims = [_dim(dim, types.get(dim.name), max_bytes.get(dim.name)) for dim in schema.dims]
    attrs = [_attr(attr, types.get(attr.name), max_bytes.get(attr.name)) for attr in schema.attrs]
    options = {**schema._json(), "dims": [dim._json() for dim in dims], "attrs": [attr._json() for attr in attrs]}
    return Schema.from_json(json.dumps(options))


def _dim(dim: Dim, dtype: Any, longest: int | None) -> Dim:
    kind = dim.dtype if dtype is None else datatype.parse(dtype)
    if kind == "string":
        return Dim(dim.name, dtype="string", max_bytes=dim.max_bytes if longest is None else longest)
    if longest is not None:
        raise InputError(f"dimension {dim.name!r} is {kind}: max_bytes is for dimensions of texts")
    if kind == dim.dtype:
        return dim
    if dim.is_text:
        raise InputError(f"dimension {dim.name!r} is string, which does not become {kind}; load the values again")
    if datatype.is_time(kind) != datatype.is_time(dim.dtype):
        raise InputError(f"dimension {dim.name!r} is {dim.dtype}, which does not become {kind}")
    try:
        ends = _widened(dim, kind)
    except (SchemaError, OverflowError) as error:
        raise InputError(f"dimension {dim.name!r}: {kind} does not hold the domain {dim.domain}: {error}") from error
    low, high = (None if is_open else end for end, is_open in zip(ends[:2], dim.open, strict=True))
    return Dim(dim.name, (low, high), ends[2], kind)


def _widened(dim: Dim, kind: str) -> tuple[Any, Any, Any]:
    """Domain and tile in another type."""
    low, high = dim.reach
    if datatype.is_time(kind):
        unit, length = np.dtype(kind), np.dtype(kind.replace("datetime64", "timedelta64"))
        tile = None if dim.tile is None else np.array(dim.tile).astype(length)[()]
        return low.astype(unit), high.astype(unit), tile
    if datatype.is_float(kind):
        if any(float(end) != end for end in (low, high)):
            raise SchemaError("its ends would be rounded")
        return float(low), float(high), None if dim.tile is None else float(dim.tile)  # type: ignore[arg-type]
    if datatype.is_float(dim.dtype):
        raise SchemaError("coordinates of floats are no whole numbers")
    return low, high, dim.tile


def _attr(attr: Attr, dtype: Any, longest: int | None) -> Attr:
    if longest is not None:
        raise InputError(f"attribute {attr.name!r}: max_bytes is for dimensions; attributes take texts of any length")
    kind = attr.dtype if dtype is None else datatype.parse(dtype)
    if kind == attr.dtype:
        return attr
    if attr.enumeration is not None:
        raise InputError(f"attribute {attr.name!r} has categories, whose type stays; leave it out of types=")
    if any(datatype.base_of(one) != one or one == "bytes" for one in (kind, attr.dtype)) or attr.dtype == "string":
        raise InputError(f"attribute {attr.name!r} is {attr.dtype}, which does not become {kind}")
    fill = None if repr(attr.fill) == repr(datatype.default_fill(attr.dtype)) else attr.fill
    fill = str(fill) if kind == "string" and fill is not None else fill
    return Attr(attr.name, kind, nullable=attr.nullable, fill=fill, filters=attr.filters)


def _fill(source: Array, target: Array, progress: Progress) -> None:
    """Writes all cells of one array to another one with wider types."""
    schema = target.schema
    names = [attr.name for attr in schema.attrs]
    if schema.sparse:
        with target.writer(order="any", progress=progress) as cells:
            for batch in source.scan(attrs=names, order="any"):
                dims = [_column(field, batch) for field in dim_fields(schema)]
                cells.append_columns(dims, {attr.name: _column(field_of(attr), batch) for attr in schema.attrs})
        return
    ends = source.nonempty_domain
    if ends is None:
        return
    box = {dim.name: pair for dim, pair in zip(source.schema.dims, ends, strict=True)}
    wide = {dim.name: tuple(_value(dim, end) for end in box[dim.name]) for dim in schema.dims}
    with target.writer(wide, progress=progress) as values:
        for batch in source.scan(box, names, order="global"):
            values.append({attr.name: arrow.array_of(_column(field_of(attr), batch)) for attr in schema.attrs})


def _name(source: Array, target: Array) -> None:
    """Gives the copy the labels and all metadata of the array."""
    labels = {dim.name: source.dim(dim.name).labels for dim in source.schema.dims if dim._stored_labels is not None}
    if labels:
        target.alter(labels=labels)
    target.meta.update(source.meta)
    for dim in source.schema.dims:
        target.dim(dim.name).meta.update(source.dim(dim.name).meta)
    for attr in source.schema.attrs:
        target[attr.name].meta.update(source[attr.name].meta)


def _value(dim: Dim, end: Any) -> Any:
    return datatype.scalar(dim.dtype, end, f"dimension {dim.name!r}")


def _column(field: Field, batch: Any) -> Column:
    """A column of the batch in the wider type; an `InputError` names one that holds what that does not."""
    data = batch.column(field.name)
    try:
        if field.categories is None and (field.dtype == "string" or pa.types.is_boolean(data.type)):
            data = data.cast(arrow_types.type_of(field.dtype))
        return arrow.column_of(field, data)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{field.title} does not become {field.dtype}: {error}") from error
