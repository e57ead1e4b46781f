"""Results with the labels of their positions: as tables, and as arrays of xarray."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..base.extras import needed
from ..column import datatype, encode
from ..column.columns import Column, Field
from ..column.datatype import AnyArray
from ..errors import UnsupportedError
from ..query.box import Box
from ..query.grid import dropped_of, positions_along
from ..schema.array_schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

_UNITS = ("s", "ms", "us", "ns")
"""Those of times that xarray has."""


class Source(Protocol):
    """The array that a result was read of, in the version of the read."""

    def labels(self, axis: int) -> AnyArray | None:
        """The labels of all positions along a dimension; None if it has none."""

    def meta(self, name: str | None) -> dict[str, Any]:
        """The metadata of the array, or of a dimension or attribute."""


class Labelled(Protocol):
    """A result of a dense array."""

    _schema: Schema
    _box: Box
    _names: tuple[str, ...]
    _columns: dict[str, Column]
    _shape: tuple[int, ...] | None
    _source: Source | None

    def _dense_column(self, name: str) -> AnyArray: ...


def labels_along(result: Labelled, axis: int) -> AnyArray | None:
    """The labels along one dimension of a dense box, or of the cells of a list; None if there are none."""
    dim = result._schema.dims[axis]
    if result._source is None or dim._stored_labels is None:
        return None
    found = result._source.labels(axis)
    if found is None:
        return None
    if result._shape is not None:
        made: AnyArray = found[positions_along(result._box, axis)]
        return made
    values = result._columns[dim.name].values
    ticks = values.view(np.int64) if values.dtype.kind in "mM" else values
    low = datatype.ticks_of(dim.reach[0])
    places = ticks.astype(np.int64) - low if -(2**63) <= low < 2**63 else (ticks - np.uint64(low)).astype(np.int64)
    listed: AnyArray = found[places]
    return listed


def label_column(name: str, values: AnyArray) -> Column:
    """Labels as a column; missing ones are null, NaN or NaT."""
    dtype = "string" if values.dtype.kind == "O" else datatype.parse(values.dtype)
    return encode.from_values(Field(name, dtype, np.ma.isMaskedArray(values), "labels of"), values)


def arrow_schema(result: Labelled) -> "pa.Schema":
    """The Arrow schema of a result as a table, in which labels stand in the place of coordinates."""
    from ..column.arrow_types import field_of

    made = result._schema._arrow_of(result._names)
    for axis, dim in enumerate(result._schema.dims):
        values = labels_along(result, axis)
        if values is not None:
            dtype = "string" if values.dtype.kind == "O" else datatype.parse(values.dtype)
            made = made.set(axis, field_of(dim.name, dtype, np.ma.isMaskedArray(values)))
    return made


def to_xarray(result: Labelled) -> Any:
    """See `Result.to_xarray`."""
    xarray = needed("xarray", "xarray", "to_xarray()")
    if result._shape is None:
        raise UnsupportedError(
            "to_xarray() shows a dense box; this is a list of cells: read a box without a condition, or use "
            "to_pandas() or to_dense()"
        )
    coords = _coordinates(result)
    dims = [dim.name for dim, drop in zip(result._schema.dims, dropped_of(result._box), strict=True) if not drop]
    meta = result._source.meta if result._source is not None else _no_meta
    made = {name: _variable(result, name, dims, meta(name)) for name in result._names}
    if len(made) != 1:
        return xarray.Dataset(made, coords, meta(None))
    name, (sides, values, attrs) = next(iter(made.items()))
    return xarray.DataArray(values, coords, sides, name, {**meta(None), **attrs})


def _no_meta(name: str | None) -> dict[str, Any]:
    return {}


def _coordinates(result: Labelled) -> dict[str, Any]:
    """Labels by dimension, or coordinates where there are none; single ones of dimensions that the result lacks."""
    found: dict[str, Any] = {}
    drops = dropped_of(result._box)
    for axis, (dim, drop) in enumerate(zip(result._schema.dims, drops, strict=True)):
        values = labels_along(result, axis)
        plain = _plain(result._box.coordinates(axis) if values is None else values, f"dimension {dim.name!r}")
        attrs = {} if result._source is None else result._source.meta(dim.name)
        found[dim.name] = ((), plain[0], attrs) if drop else (dim.name, plain, attrs)
    return found


def _variable(result: Labelled, name: str, dims: list[str], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """Sides, values and attributes; a vector has sides of its own behind those of its cells."""
    values = result._dense_column(name)
    inner = [f"{name}_{side}" for side in range(values.ndim - len(dims))]
    return [*dims, *inner], _plain(values, f"attribute {name!r}"), attrs


def _plain(values: AnyArray, what: str) -> AnyArray:
    """Values as xarray takes them: times in a unit that it has, missing numbers as NaN, missing texts as None."""
    if values.dtype.kind in "mM":
        values = _in_unit(values, what)
    if not np.ma.isMaskedArray(values):
        return values
    mask = np.ma.getmaskarray(values)
    if not mask.any():
        return np.ma.getdata(values)
    if values.dtype.kind in "iub":
        values = _as_floats(values, what)
    missing = {"f": np.nan, "c": np.nan, "M": np.datetime64("NaT"), "m": np.timedelta64("NaT")}
    made: AnyArray = np.array(np.ma.getdata(values))
    made[mask] = missing.get(made.dtype.kind)
    return made


def _in_unit(values: AnyArray, what: str) -> AnyArray:
    """Times in a unit that xarray has; an `UnsupportedError` if it has none that holds them."""
    unit, several = np.datetime_data(values.dtype)
    if several == 1 and unit in _UNITS:
        return values
    kind = "datetime64" if values.dtype.kind == "M" else "timedelta64"
    if kind == "timedelta64" and unit in ("Y", "M"):
        raise UnsupportedError(
            f"to_xarray(): {what} is {values.dtype.name}; months and years have no fixed length, so that xarray has "
            f"no such type: take the values with numpy"
        )
    near = "ns" if datatype.fineness(unit) > datatype.fineness("ns") else unit if unit in _UNITS else "s"
    made: AnyArray = values.astype(f"{kind}[{near}]")
    back = np.ma.getdata(made.astype(values.dtype)) == np.ma.getdata(values)
    wrong = ~(back | np.isnat(np.ma.getdata(values)) | np.ma.getmaskarray(values))
    if wrong.any():
        first = np.ma.getdata(values)[wrong].flat[0]
        raise UnsupportedError(
            f"to_xarray(): {what} has {first} of type {values.dtype.name}, which no unit of xarray holds (the nearest "
            f"is {near}); round the values, or take them with numpy"
        )
    return made


def _as_floats(values: AnyArray, what: str) -> AnyArray:
    """Integers as floats; an `UnsupportedError` if one that is not missing is none."""
    held: AnyArray = np.ma.getdata(values)[~np.ma.getmaskarray(values)]
    if held.dtype.kind in "iu":
        large = held[(held > 2**53) | (held < -(2**53))] if held.dtype.itemsize == 8 else held[:0]
        lost = next((one for one in large.tolist() if int(float(one)) != one), None)
        if lost is not None:
            raise UnsupportedError(
                f"to_xarray(): {what} has missing values, which xarray has as NaN among floats, and {lost}, which "
                f"float64 does not hold exactly; fill the missing values first, or take a masked array, result[name]"
            )
    made: AnyArray = values.astype(np.float64)
    return made
