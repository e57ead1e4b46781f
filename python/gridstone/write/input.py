"""The input of `write_cells` and of writers as columns: arrays, dicts of arrays, tables, data frames."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.arguments import is_listed
from ..base.printable import brief
from ..column import encode
from ..column.columns import Column, Field
from ..errors import InputError
from ..schema.array_schema import Schema
from ..schema.fields import attr_field, dim_fields, field_of, has_own_fill, without_values

Columns = dict[str, Column]


def of_cells(schema: Schema, coords: Any, attrs: Any = None) -> tuple[Columns, Columns]:
    """Coordinates and attribute values of a list of cells, all of one length.

    Raises:
        InputError: unknown or missing names, types that do not fit, nulls, unequal lengths.
    """
    _check_has_coordinates(schema)
    if attrs is None:
        return _of_table(schema, coords)
    dims = coordinate_columns(schema, coords)
    values = _of_attrs(schema, attrs)
    _check_complete(schema, values)
    check_lengths({**dims, **values})
    return dims, values


def coordinate_columns(schema: Schema, coords: Any) -> Columns:
    """The coordinates of cells: a dict by dimension, an (n, ndim) array, or a sequence of ndim arrays."""
    _check_has_coordinates(schema)
    fields = dim_fields(schema)
    if is_table(coords):
        coords = named_columns(coords)
        coords = {field.name: coords[field.name] for field in fields if field.name in coords}
    if isinstance(coords, Mapping):
        _check_names(coords, [field.name for field in fields], "dimension")
        parts = [coords[field.name] for field in fields]
    elif isinstance(coords, np.ndarray) and (coords.ndim == 2 or len(fields) > 1):
        if coords.ndim != 2 or coords.shape[1] != len(fields):
            raise InputError(f"an array of coordinates has shape (n, {len(fields)}), found {coords.shape}")
        parts = [coords[:, axis] for axis in range(len(fields))]
    elif len(fields) == 1 and not (isinstance(coords, tuple | list) and len(coords) == 1 and np.ndim(coords[0]) == 1):
        parts = [coords]
    elif is_listed(coords):
        parts = list(coords)
    else:
        raise InputError(
            f"coords= takes a dict by dimension, an array of shape (n, {len(fields)}), {len(fields)} arrays, "
            f"or a table, not {brief(coords)} of type {type(coords).__name__}"
        )
    if len(parts) != len(fields):
        raise InputError(f"coordinates of {len(parts)} dimensions were given, the array has {len(fields)}")
    made = {field.name: _flat(field, part) for field, part in zip(fields, parts, strict=True)}
    check_lengths(made)
    return made


def _check_has_coordinates(schema: Schema) -> None:
    if not schema.ndim:
        raise InputError(
            "an array of no dimension has one value and no coordinates: a[()] reads it, a[()] = 1 writes it"
        )


def _of_attrs(schema: Schema, attrs: Any) -> Columns:
    if not isinstance(attrs, Mapping):
        if len(schema.attrs) != 1:
            names = [attr.name for attr in schema.attrs]
            raise InputError(f"the array has {len(names)} attributes; give a dict with the keys {names}")
        attrs = {schema.attrs[0].name: attrs}
    return {name: _flat(attr_field(schema, name), data) for name, data in attrs.items()}


def _of_table(schema: Schema, data: Any) -> tuple[Columns, Columns]:
    if not is_table(data) and not isinstance(data, Mapping):
        raise InputError(
            f"write_cells takes coordinates and attribute values, or one Arrow table or data frame with a column for "
            f"each; found only {type(data).__name__}"
        )
    named = named_columns(data)
    dims = [dim.name for dim in schema.dims]
    missing = [name for name in dims if name not in named]
    if missing:
        raise InputError(f"the table has no column for dimension {missing[0]!r}; its columns are {list(named)}")
    known = [attr.name for attr in schema.attrs]
    unknown = [name for name in named if name not in dims and name not in known]
    if unknown:
        raise InputError(
            f"the table has a column {brief(unknown[0])}, and no attribute {brief(unknown[0])} is in the array; there "
            f"are {', '.join(map(repr, known))}; evolve=True adds it (to a writer, in its first piece), or leave the "
            f"column out"
        )
    values = {name: _flat(attr_field(schema, name), named[name]) for name in named if name in known}
    made = {field.name: _flat(field, named[field.name]) for field in dim_fields(schema)}
    check_lengths({**made, **values})
    values |= _absent(schema, values, len(next(iter(made.values()))))
    _check_complete(schema, values)
    return made, {name: values[name] for name in known if name in values}


def _absent(schema: Schema, given: Columns, rows: int) -> Columns:
    """The attributes of a sparse array that the table has no column of, and that may be null or have a fill."""
    if not schema.sparse:
        return {}
    lacking = [attr for attr in schema.attrs if attr.name not in given and (attr.nullable or has_own_fill(attr))]
    if not lacking:
        return {}
    from ..column import arrow

    return {attr.name: arrow.column_of(field_of(attr), without_values(attr, rows)) for attr in lacking}


def is_table(data: Any) -> bool:
    module = type(data).__module__.partition(".")[0]
    if module == "pandas":
        return hasattr(data, "columns")
    if module == "polars":
        return hasattr(data, "__arrow_c_stream__") and hasattr(data, "columns")
    if module == "pyarrow":
        return hasattr(data, "column_names") or hasattr(data, "schema")
    return hasattr(data, "__arrow_c_stream__")


def named_columns(data: Any) -> Mapping[str, Any]:
    if isinstance(data, Mapping):
        return data
    if type(data).__module__.partition(".")[0] == "pandas":
        return {str(name): data[name] for name in data.columns}
    from ..column import arrow

    return arrow.columns_of_table(data)


def _flat(field: Field, data: Any) -> Column:
    made = encode.from_values(field, data)
    if made.offsets is None and made.values.ndim != 1:
        raise InputError(f"{field.title}: cells are a flat list, found an array of shape {made.values.shape}")
    return made


def _check_names(given: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    unknown = [name for name in given if name not in known]
    missing = [name for name in known if name not in given]
    if unknown:
        raise InputError(f"no {what} {brief(unknown[0])}; there are {', '.join(map(repr, known))}")
    if missing:
        raise InputError(f"no values for {what} {missing[0]!r}; give all of {', '.join(map(repr, known))}")


def _check_complete(schema: Schema, values: Columns) -> None:
    """A cell of a sparse array has every attribute; one of a dense array may update some of them."""
    if schema.sparse:
        _check_names(values, [attr.name for attr in schema.attrs], "attribute")
    elif not values:
        raise InputError("no attribute values were given")


def check_lengths(found: Columns) -> None:
    """An `InputError` unless all columns have one length."""
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r}: {count}" for name, count in lengths.items())
        raise InputError(f"every column needs one value per cell, found lengths {shown}")
