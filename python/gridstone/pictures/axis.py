"""The axes of a picture: their names with units, their labels, and which way is up."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column import datatype
from ..column.datatype import AnyArray
from ..schema.dimension import Dim
from ..schema.labels import missing
from . import theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..arrays.array import Array

_NORTH = ("degrees_north", "degree_north", "degree_n", "degrees_n", "degreen", "degreesn")
_EAST = ("degrees_east", "degree_east", "degree_e", "degrees_e", "degreee", "degreese")


def units_of(meta: Mapping[str, Any]) -> str:
    """The units that metadata tell, as CF has them; "" for none, or for a count from a date, which dates replace."""
    found = meta.get("units")
    if not isinstance(found, str) or " since " in found or found.strip() in ("", "1"):
        return ""
    return found.strip()


def named(name: str, meta: Mapping[str, Any]) -> str:
    """A name with its units."""
    units = units_of(meta)
    return (f"{name} ({units})" if units else name).replace("$", r"\$")


def is_latitude(name: str, meta: Mapping[str, Any]) -> bool:
    """Whether a dimension is one of latitudes, or goes northwards on a map."""
    return (
        _says(meta, "units", _NORTH)
        or _says(meta, "standard_name", ("latitude", "grid_latitude", "projection_y_coordinate"))
        or _says(meta, "axis", ("y",))
        or name.lower() in ("lat", "latitude")
    )


def is_longitude(name: str, meta: Mapping[str, Any]) -> bool:
    """Whether a dimension is one of longitudes, or goes eastwards on a map."""
    return (
        _says(meta, "units", _EAST)
        or _says(meta, "standard_name", ("longitude", "grid_longitude", "projection_x_coordinate"))
        or _says(meta, "axis", ("x",))
        or name.lower() in ("lon", "longitude")
    )


def _says(meta: Mapping[str, Any], key: str, words: tuple[str, ...]) -> bool:
    found = meta.get(key)
    return isinstance(found, str) and found.strip().lower() in words


def goes_north(array: "Array", names: tuple[str, str]) -> bool:
    """Whether the second dimension has north up: a latitude, or y where x goes eastwards on a map."""
    x, y = ((name, array.dim(name).meta) for name in names)
    return is_latitude(*y) or (y[0].lower() == "y" and is_longitude(*x))


def drawn_of(array: "Array", free: Sequence[str]) -> tuple[str, str]:
    """Which two of these dimensions are drawn along x and y: those of a map; else the first two of a sparse array, the
    last one and the one before it of a dense one."""
    lower = {name.lower(): name for name in free}
    for x, y in (("lon", "lat"), ("longitude", "latitude"), ("x", "y")):
        if x in lower and y in lower:
            return lower[x], lower[y]
    meta = {name: array.dim(name).meta for name in free}
    east = [name for name in free if is_longitude(name, meta[name])]
    north = [name for name in free if is_latitude(name, meta[name])]
    if len(east) == len(north) == 1 and east != north:
        return east[0], north[0]
    return (free[0], free[1]) if array.sparse else (free[-1], free[-2])


def descends(array: "Array", name: str) -> bool:
    """Whether what a dimension's positions are called gets less from one to the next."""
    labels = None if array.sparse else array.dim(name).labels
    if labels is None or len(labels) < 2 or np.ma.getdata(labels).dtype.kind == "O":
        return False
    told = np.ma.getdata(labels)[~missing(labels)]
    return len(told) > 1 and bool(told[0] > told[-1])


def label(axes: "Axes", array: "Array", names: tuple[str, str]) -> None:
    """Names both axes, with units, and writes labels or dates along them."""
    from matplotlib.ticker import MaxNLocator

    shade = theme.current()
    for name, axis in zip(names, (axes.xaxis, axes.yaxis), strict=True):
        dim = array.schema.dim(name)
        axis.set_label_text(named(name, array.dim(name).meta), color=shade.text)
        labels = None if array.sparse else array.dim(name).labels
        if labels is not None:
            axis.set_major_locator(centres())
            axis.set_major_formatter(partial(position_label, labels, datatype.ticks_of(dim.reach[0])))
        elif datatype.is_time(dim.dtype):
            sparse_ticks = MaxNLocator(nbins=6, integer=True, min_n_ticks=1)
            axis.set_major_locator(sparse_ticks if array.sparse else centres())
            axis.set_major_formatter(partial(time_label, dim.dtype))
        elif not datatype.is_float(dim.dtype) and not array.sparse:
            axis.set_major_locator(centres())
            axis.set_major_formatter(coordinate_label)


def centres() -> Any:
    """Ticks in the middle of cells that reach from one whole number to the next."""
    from matplotlib.ticker import MaxNLocator

    class Centres(MaxNLocator):
        def tick_values(self, vmin: float, vmax: float) -> Any:
            return np.floor(super().tick_values(vmin, vmax)) + 0.5

    return Centres(nbins=7, integer=True, min_n_ticks=1)


def position_label(labels: AnyArray, low: int, coordinate: float, _place: float | None) -> str:
    """The label of the position that a place along an axis lies in; "" beyond the domain, and where there is none."""
    position = math.floor(coordinate) - low
    if not 0 <= position < len(labels) or missing(labels[position : position + 1])[0]:
        return ""
    return text_of(labels[position]).replace("$", r"\$")


def coordinate_label(coordinate: float, _place: float | None) -> str:
    """The whole coordinate that a place along an axis lies in."""
    return str(math.floor(coordinate))


def text_of(value: Any) -> str:
    """A label or a value for people: a float at its shortest, a time without zeros at its end."""
    if isinstance(value, np.datetime64):
        return str(value).removesuffix("T00:00:00").removesuffix("T00:00")
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    return str(value)


def time_label(dtype: str, ticks: float, _place: float | None) -> str:
    """A place along an axis of times as a date."""
    if not -(2**63) < ticks < 2**63:
        return ""
    found = datatype.from_text(dtype, str(math.floor(ticks)))
    return text_of(found) if isinstance(found, np.datetime64) else datatype.show(found)


def numbers_of(dim: Dim, values: AnyArray) -> AnyArray:
    """Coordinates along a dimension as numbers: times as ticks of its own unit, which Arrow may lack."""
    if values.dtype.kind in "mM":
        values = values.astype(datatype.numpy_of(dim.dtype)).astype(np.int64)
    made: AnyArray = values.astype(np.float64)
    return made


def range_of(dim: Dim, bounds: tuple[Any, Any]) -> tuple[float, float]:
    """The ends of an axis as numbers, of which the second is greater; those of integers reach over the last cell."""
    low, high = float(bounds[0]), float(bounds[1])
    if not datatype.is_float(dim.dtype):
        high += 1
    # A picture needs room between its ends, also where all coordinates are one float.
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = 1e-6 * max(abs(low), abs(high)) or 1.0
        low, high = low - room, high + room
    return (low, high) if high > low else (low, low + 1)
