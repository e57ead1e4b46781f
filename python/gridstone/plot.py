"""Pictures of arrays: density maps of sparse ones, images of dense ones, and the MBRs of their tiles."""

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .base.extras import needed
from .column import datatype
from .column.datatype import AnyArray
from .errors import InputError, UnsupportedError
from .placement import draw as draw_placement
from .query.box import Box, BoxLike, box_of, domain_of
from .schema.labels import missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from .arrays.array import Array

Target = str | os.PathLike[str]
Ends = Sequence[tuple[float, float]]
"""The low and the high end of each dimension."""

INK = "#0a1020"
PAPER = "#c9d6e8"
_GLOW = ("#0a1020", "#10284a", "#14507c", "#1c86a8", "#3fc1b0", "#b7ea9c", "#fff6c8", "#ffffff")
_WIDTH, _DPI = 12.0, 150
_IMAGE_SIDE_MAX = 2400


def plot(
    array: "Array",
    target: Target,
    *,
    attr: str | None = None,
    dims: tuple[str, str] | None = None,
    box: BoxLike = None,
    mbrs: bool = False,
    fragments: bool = False,
    placement: bool = False,
    title: str | None = None,
) -> Path:
    """Draws a sparse array as a density map, a dense one as an image, and writes a PNG.

    Args:
        array: of two or more dimensions; a dense one is shown at the low end of all but two of them.
        target: the file.
        attr: dense: the attribute to show; None: the first.
        dims: the dimensions of the x and y axes; None: those named as longitude and latitude, else (sparse) the first
            two, (dense) columns and rows.
        box: the part to show, in coordinates; None: everything written (sparse) or the domain (dense).
        mbrs: draw the bounding rectangles of the data tiles over it.
        fragments: draw the boxes of the fragments over it.
        placement: dense: draw where the cells of each tile lie, in the store, in attached files, in both or nowhere,
            in place of their values.
        title: above the picture.
    """
    needed("matplotlib.figure", "plot", "a plot")
    if array.ndim < 2:
        raise UnsupportedError("a plot needs two dimensions; the array has one")
    if placement and attr is not None:
        raise UnsupportedError("where cells lie is drawn of all attributes; leave the attribute out")
    draw = _draw_density if array.sparse else _draw_dense
    names = dims or _axes_of(array)
    where = _box(array, box)
    figure, axes = _canvas(title or f"{array.uri} · version {array.version}", _ratio(array, names, where))
    if placement:
        draw_placement(array, axes, names, where)
        _label(axes, array, names)
    else:
        draw(array, axes, names, where, attr)
    if mbrs:
        _draw_rectangles(axes, tile_rectangles(array, names, where), "#ff9e64", 0.55)
    if fragments:
        _draw_rectangles(axes, fragment_rectangles(array, names), "#f7768e", 0.9)
    return save(figure, target)


def density(array: "Array", dims: tuple[str, str], box: Box, bins: tuple[int, int]) -> AnyArray:
    """Cells per bin of two dimensions of a sparse array, as an array of `bins` (x, y), counted in bounded memory."""
    if box.empty:
        return np.zeros(bins)
    ranges = [_range(box, array, name) for name in dims]
    counts = np.zeros(bins[0] * bins[1], np.int64)
    for batch in array.scan(box, []):
        place = np.zeros(batch.num_rows, np.int64)
        for name, (low, high), count in zip(dims, ranges, bins, strict=True):
            values = _numbers(batch.column(name))
            step = np.floor((values - low) * (count / (high - low))).astype(np.int64)
            place = place * count + np.clip(step, 0, count - 1)
        counts += np.bincount(place, minlength=counts.size)
    return counts.reshape(bins)


def before_and_after(before: AnyArray, after: AnyArray, target: Target, titles: tuple[str, str], heading: str) -> Path:
    """Two images (RGB or single values) side by side, as a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _WIDTH / 2 + 0.7), dpi=_DPI, facecolor=INK)
    for place, (image, title) in enumerate(zip((before, after), titles, strict=True)):
        axes = figure.add_axes((0.012 + place * 0.494, 0.015, 0.482, 0.865))
        axes.imshow(image, interpolation="antialiased", cmap="magma")
        axes.set_title(title, color=PAPER, fontsize=11, pad=6)
        axes.set_axis_off()
    figure.suptitle(heading, color="white", fontsize=14, y=0.985)
    return save(figure, target)


def outlined(
    array: "Array", target: Target, dims: tuple[str, str], outlines: Sequence[tuple[str, Ends]], title: str
) -> Path:
    """The density of a sparse array with named rectangles of its two dimensions over it, as a PNG."""
    where = domain_of(array.schema)
    figure, axes = _canvas(title, _ratio(array, dims, where))
    _draw_density(array, axes, dims, where, None)
    colours = ("#ff9e64", "#f7768e", "#9ece6a", "#e0af68", "#bb9af7")
    (left, right), _ = (_range(where, array, name) for name in dims)
    for number, (name, ends) in reversed([*enumerate(outlines)]):  # The first one lies on top.
        (x0, x1), (y0, y1) = ends
        colour, inside = colours[number % len(colours)], x1 - x0 > (right - left) / 8
        axes.plot((x0, x1, x1, x0, x0), (y0, y0, y1, y1, y0), color=colour, lw=1.6, clip_on=False, zorder=5)
        axes.annotate(
            name, (x1, y1), (-6 if inside else 5, -6 if inside else 0), textcoords="offset points", color=colour,
            fontsize=10, weight="bold", ha="right" if inside else "left", va="top", zorder=6,
        )  # fmt: skip
    return save(figure, target)


def tile_rectangles(array: "Array", dims: tuple[str, str], box: Box | None = None) -> AnyArray:
    """(n, 4): the low x, low y, high x and high y of the MBR of every data tile."""
    table = array.tiles(box)
    ends = [table.column(f"{name}_{end}") for end in ("lo", "hi") for name in dims]
    return np.column_stack([_numbers(column) for column in ends])


def fragment_rectangles(array: "Array", dims: tuple[str, str]) -> AnyArray:
    """(n, 4): the low x, low y, high x and high y of the box of every fragment."""
    places = [array.dims.index(name) for name in dims]
    domains = array.fragments.column("domain").to_pylist()
    rows = [[float(domain[place][end]) for end in (0, 1) for place in places] for domain in domains]
    return np.array(rows, np.float64).reshape(len(rows), 4)


def _box(array: "Array", box: BoxLike) -> Box:
    whole = domain_of(array.schema)
    if box is not None:
        return box_of(array.schema, box)
    found = array.nonempty_domain
    if not array.sparse or found is None:
        return whole
    return box_of(array.schema, dict(zip(array.dims, found, strict=True)))


def _axes_of(array: "Array") -> tuple[str, str]:
    lower = {name.lower(): name for name in array.dims}
    for x, y in (("lon", "lat"), ("longitude", "latitude"), ("x", "y")):
        if x in lower and y in lower:
            return lower[x], lower[y]
    numbers = [dim.name for dim in array.schema.dims if not dim.is_text]
    if len(numbers) < 2 <= array.ndim:
        raise UnsupportedError(f"a picture needs two dimensions of numbers or times, the array has {numbers}")
    return (numbers[0], numbers[1]) if array.sparse else (numbers[1], numbers[0])


def _range(box: Box, array: "Array", name: str) -> tuple[float, float]:
    """The ends of an axis as numbers; those of integer dimensions reach over the last cell."""
    place = array.dims.index(name)
    if array.schema.dims[place].is_text:
        raise UnsupportedError(
            f"dimension {name!r} is string, which has no scale to draw along; choose others with dims="
        )
    low, high = (float(bound) for bound in box.bounds[place])
    if not datatype.is_float(array.schema.dims[place].dtype):
        high += 1
    return (low, high) if high > low else (low, low + 1)


def _numbers(column: Any) -> AnyArray:
    values = np.asarray(column.to_numpy())
    return (values.astype(np.int64) if values.dtype.kind in "mM" else values).astype(np.float64)


def _ratio(array: "Array", names: tuple[str, str], box: Box) -> float:
    """How tall the picture is for its width."""
    x, y = (_range(box, array, name) for name in names)
    unit = _aspect(names, y) if array.sparse else 1.0
    return min(1.6, max(0.3, unit * (y[1] - y[0]) / (x[1] - x[0]))) if unit else 0.62


def _canvas(title: str, ratio: float) -> "tuple[Figure, Axes]":
    """A figure whose axes are `ratio` times as tall as wide, at most 9 inches."""
    from matplotlib.figure import Figure

    wide = min(_WIDTH - 1.1, 9.0 / ratio)
    size = (wide + 1.1, wide * ratio + 1.15)
    figure = Figure(figsize=size, dpi=_DPI, facecolor=INK)
    axes = figure.add_axes((0.8 / size[0], 0.65 / size[1], wide / size[0], wide * ratio / size[1]))
    axes.set_facecolor(INK)
    axes.set_title(title, color="white", fontsize=13, loc="left", pad=8)
    axes.tick_params(colors=PAPER, labelsize=8)
    for spine in axes.spines.values():
        spine.set_color("#2b3a55")
    return figure, axes


def glow() -> "Colormap":
    """From the dark of the sea over teal to white."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("gridstone", _GLOW)


def _draw_density(array: "Array", axes: "Axes", names: tuple[str, str], box: Box, attr: str | None) -> None:
    if attr is not None:
        raise UnsupportedError("a sparse array is drawn as the density of its cells; leave the attribute out")
    x, y = (_range(box, array, name) for name in names)
    aspect = _aspect(names, y)
    ratio = _ratio(array, names, box)
    wide = int(min(_WIDTH - 1.1, 9.0 / ratio) * _DPI * 0.85)
    light = _lit(density(array, names, box, (wide, int(wide * ratio))).T.astype(np.float64))
    axes.imshow(
        light,
        origin="lower",
        extent=(*x, *y),
        cmap=glow(),
        vmin=0,
        vmax=1,
        aspect=aspect or "auto",
        interpolation="bilinear",
    )
    _label(axes, array, names)


def _aspect(names: tuple[str, str], y: tuple[float, float]) -> float:
    """How much taller than wide a unit is drawn: a degree of latitude is longer; 0: whatever fills the picture."""
    if names[0].lower() in ("lon", "longitude") and names[1].lower() in ("lat", "latitude"):
        return 1 / max(0.2, math.cos(math.radians((y[0] + y[1]) / 2)))
    return 0.0


def _lit(counts: AnyArray) -> AnyArray:
    """Counts as brightness: logarithmic, with a faint glow around what is bright."""
    light = np.log1p(counts)
    filled = light[light > 0]
    if filled.size == 0:
        return light
    light = np.minimum(light / max(np.quantile(filled, 0.995), 1e-9), 1.0) ** 0.8
    soft = light
    for axis in (0, 1):
        shifted = [np.roll(soft, step, axis) for step in (-3, -2, -1, 0, 1, 2, 3)]
        soft = sum(w * part for w, part in zip((0.03, 0.09, 0.22, 0.32, 0.22, 0.09, 0.03), shifted, strict=True))
    made: AnyArray = np.clip(np.maximum(0.1 * (light > 0) + 0.9 * light, 1.1 * soft), 0, 1)
    return made


def _draw_dense(array: "Array", axes: "Axes", names: tuple[str, str], box: Box, attr: str | None) -> None:
    """The attribute over two dimensions, at the low end of the others, thinned to what a screen shows."""
    name = attr or array.schema.attrs[0].name
    dtype = array.schema.attr(name).dtype
    colours = dtype in ("uint8[3]", "uint8[4]")
    if not (datatype.is_primitive(dtype) or colours) or datatype.is_complex(dtype):
        raise UnsupportedError(f"attribute {name!r} is {dtype}; an image needs numbers, or colours: uint8[3], uint8[4]")
    places = [array.dims.index(n) for n in names]
    key: list[Any] = []
    for place, size in enumerate(box.shape):
        low = int(box.bounds[place][0]) - datatype.ticks_of(array.schema.dims[place].reach[0])
        step = max(1, -(-size // _IMAGE_SIDE_MAX))
        key.append(slice(low, low + size, step) if place in places else low)
    values = array[name][tuple(key)]
    if places[0] < places[1]:
        values = np.swapaxes(values, 0, 1)
    if values.dtype.kind in "mMb" or values.dtype == np.float16:
        values = values.astype(np.float32 if values.dtype.kind == "f" else np.int64)
    x, y = (_range(box, array, n) for n in names)
    shown = axes.imshow(values, extent=(*x, y[1], y[0]), cmap="magma", aspect="equal", interpolation="antialiased")
    if not colours:
        bar = axes.figure.colorbar(shown, ax=axes, fraction=0.03, pad=0.015)
        bar.ax.tick_params(colors=PAPER, labelsize=8)
        bar.set_label(name, color=PAPER)
    _label(axes, array, names)


def _draw_rectangles(axes: "Axes", found: AnyArray, color: str, alpha: float) -> None:
    from matplotlib.collections import LineCollection

    x0, y0, x1, y1 = found.T
    corners = np.stack([np.column_stack(p) for p in ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))], axis=1)
    axes.add_collection(LineCollection(list(corners), colors=color, linewidths=0.6, alpha=alpha))


def _label(axes: "Axes", array: "Array", names: tuple[str, str]) -> None:
    for name, axis in zip(names, (axes.xaxis, axes.yaxis), strict=True):
        dim = array.schema.dim(name)
        axis.set_label_text(name, color=PAPER)
        labels = None if array.sparse else array.dim(name).labels
        if labels is not None:
            axis.set_major_formatter(partial(_position_label, labels, datatype.ticks_of(dim.reach[0])))
        elif datatype.is_time(dim.dtype):
            axis.set_major_formatter(partial(_time_label, dim.dtype))


def _position_label(labels: AnyArray, low: int, coordinate: float, _place: int | None) -> str:
    """The label of the position that a place along an axis lies in; "" beyond the domain, and where there is none."""
    position = math.floor(coordinate) - low
    if not 0 <= position < len(labels) or missing(labels[position : position + 1])[0]:
        return ""
    return str(labels[position])


def _time_label(dtype: str, ticks: float, _place: int | None) -> str:
    return datatype.show(datatype.from_text(dtype, str(int(ticks))))


def save(figure: "Figure", target: Target) -> Path:
    """Writes a figure as a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    path = Path(os.fspath(target))
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into; create it first")
    FigureCanvasAgg(figure).print_figure(path, dpi=_DPI, facecolor=INK, format="png", metadata=_METADATA)
    return path


_METADATA: Mapping[str, str] = {"Software": "gridstone"}
