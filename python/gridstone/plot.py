"""Pictures of arrays: density maps of sparse ones, images of dense ones, and the MBRs of their tiles."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .base.arguments import checked, file, mapping, several
from .base.arguments import text as is_text
from .base.extras import needed
from .base.printable import brief
from .column import datatype
from .column.datatype import AnyArray
from .errors import SchemaError, UnsupportedError
from .pictures import axis, image, line, plane, presence, profile
from .pictures import density as densities
from .pictures import theme as themes
from .pictures.target import Target, checked_target
from .placement import draw as draw_placement
from .query.box import Box, BoxLike, box_of, domain_of
from .schema.attribute import Attr

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from .arrays.array import Array
    from .pictures.figure import Picture

Ends = Sequence[tuple[float, float]]
"""The low and the high end of each dimension."""

INK, PAPER = themes.DARK.ground, themes.DARK.text
_WIDTH, _DPI = 12.0, 150
_IMAGE_SIDE_MAX = 2400
_label = axis.label


@checked(target=file, dims=several, at=mapping, title=is_text, theme=is_text)
def plot(
    array: "Array",
    target: Target | None = None,
    *,
    attr: str | None = None,
    dims: tuple[str, str] | None = None,
    box: BoxLike = None,
    at: Mapping[str, Any] | None = None,
    mbrs: bool = False,
    fragments: bool = False,
    placement: bool = False,
    title: str | None = None,
    theme: str = themes.DEFAULT,
) -> "Path | Picture":
    """Draws a sparse array as a density map, a dense one as an image; of one dimension as bars of counts and as a line.

        gs.plot.plot(a, "air.png", attr="t", at={"day": "2026-03-01"}, theme="light")

    An image shows one plane. The picture says which, and which cells are unwritten, null or NaN. Latitudes have north
    up; else the first row of an image is at its top.

    Args:
        array: of one or more dimensions.
        target: the file: .png, .svg, .pdf, .jpg, .tif or .webp; None: no file is written.
        attr: dense: the attribute to show; None: the first that can be drawn.
        dims: the dimensions of the x and y axes; None: those of longitude and latitude, or x and y; else (sparse) the
            first two, (dense) the last one and the one before it.
        box: the part to show, in coordinates; None: everything written (sparse) or the domain (dense; of one dimension
            with more than 2^26 cells the part from the first written one to the last).
        at: dense: where the plane lies along dimensions that are not drawn: a label, or a coordinate where a dimension
            has no labels; of a written date or time the first plane in that period. By default the first of these
            dimensions is at its newest written position, the others are at the first one written there.
        mbrs: draw the bounding rectangles of the data tiles over it.
        fragments: draw the boxes of the fragments over it.
        placement: dense: draw where the cells of each tile lie, in the store, in attached files, in both or nowhere,
            in place of their values.
        title: above the picture.
        theme: "dark" or "light".

    Returns:
        The file; without one the figure, which a notebook shows.

    Raises:
        UnsupportedError: no dimensions that can be drawn, an attribute without colours, no matplotlib.
        InputError: an unknown format or theme, no such folder, `at` of a drawn dimension or of several places.
        BoundsError: there is nothing at a place of `at`.
    """
    path = None if target is None else checked_target(target)
    with themes.using(theme):
        needed("matplotlib.figure", "plot", "a plot")
        _check(array, attr, at, placement)
        where = _box(array, box)
        if array.ndim == 1:
            figure = _of_one(array, dims, where, attr, title, mbrs, fragments)
            return figure if path is None else save(figure, path)
        names = _two(array, dims, at or {})
        figure, axes = _drawn(array, names, where, attr, at or {}, placement, title)
        if mbrs:
            _draw_rectangles(axes, tile_rectangles(array, names, where), "#ff9e64", 0.55)
        if fragments:
            _draw_rectangles(axes, fragment_rectangles(array, names), "#f7768e", 0.9)
        return figure if path is None else save(figure, path)


def _check(array: "Array", attr: str | None, at: Mapping[str, Any] | None, placement: bool) -> None:
    """Refuses what does not go together."""
    if array.ndim == 1 and placement:
        raise UnsupportedError("where cells lie is drawn over two dimensions, the array has one; leave placement out")
    if array.ndim == 1 and at:
        raise UnsupportedError(
            f"the array has one dimension, {array.dims[0]!r}, which is drawn; choose its part with box="
        )
    if placement and (attr is not None or at):
        raise UnsupportedError("where cells lie is drawn of all attributes and planes; leave the attribute and at= out")
    if array.sparse and attr is not None:
        raise UnsupportedError("a sparse array is drawn as the density of its cells; leave the attribute out")
    if array.sparse and at:
        raise UnsupportedError("a sparse array is drawn as the density of all its cells; choose a part with box=")
    for name in at or {}:
        array.schema.dim(name)


def _of_one(
    array: "Array", dims: Sequence[str] | str | None, where: Box, attr: str | None, title: str | None, mbrs: bool,
    fragments: bool,
) -> "Picture":  # fmt: skip
    """An array of one dimension: a line, or bars of counts."""
    name = array.dims[0]
    if dims is not None and list([dims] if isinstance(dims, str) else dims) != [name]:
        raise SchemaError(f"dims= names dimensions to draw, and the array has one, {name!r}; found {brief(dims)}")
    heading = title or f"{array.uri} · version {array.version}"
    if array.sparse:
        figure, axes, spans = profile.draw_bars(array, where, heading)
    else:
        one = array.schema.attr(attr) if attr is not None else _first_drawable(array, line.check_line)
        line.check_line(one)
        figure, axes, spans = profile.draw_line(array, one, where, heading)
    if mbrs:
        _draw_spans(axes, spans(tile_rectangles(array, (name,), where)), "#ff9e64", 0.55)
    if fragments:
        _draw_spans(axes, spans(fragment_rectangles(array, (name,))), "#f7768e", 0.9)
    return figure


def _two(array: "Array", dims: Sequence[str] | None, at: Mapping[str, Any]) -> tuple[str, str]:
    """The dimensions that are drawn."""
    if dims is None:
        return _axes_of(array, at)
    if isinstance(dims, str) or len(dims) != 2 or dims[0] == dims[1]:
        raise SchemaError(f'dims= names two dimensions, dims=("x", "y"); found {brief(dims)}')
    for name in dims:
        array.schema.dim(name)
    return dims[0], dims[1]


def _drawn(
    array: "Array", names: tuple[str, str], where: Box, attr: str | None, at: Mapping[str, Any], by_place: bool,
    title: str | None,
) -> "tuple[Picture, Axes]":  # fmt: skip
    heading = title or f"{array.uri} · version {array.version}"
    if by_place:
        figure, axes, bar = _canvas(heading, "Where the cells lie, of all planes", _ratio(array, names, where))
        bar.remove()
        draw_placement(array, axes, names, where)
    elif array.sparse:
        figure, axes, bar = _canvas(heading, "", _ratio(array, names, where))
        _draw_density(array, axes, names, where, bar)
    else:
        return _dense(array, names, where, attr, at, heading)
    axis.label(axes, array, names)
    return figure, axes


def density(array: "Array", dims: tuple[str, str], box: Box, bins: tuple[int, int]) -> AnyArray:
    """Cells per bin of two dimensions of a sparse array, as an array of `bins` (x, y), counted in bounded memory."""
    if box.empty:
        return np.zeros(bins)
    ranges = [_range(box, array, name) for name in dims]
    counts = np.zeros(bins[0] * bins[1], np.int64)
    for batch in array.scan(box, []):
        place = densities.counted([_numbers(array, name, batch.column(name)) for name in dims], ranges, bins)
        counts += np.bincount(place, minlength=counts.size)
    return counts.reshape(bins)


def before_and_after(before: AnyArray, after: AnyArray, target: Target, titles: tuple[str, str], heading: str) -> Path:
    """Two images (RGB or single values) side by side, as a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _WIDTH / 2 + 0.7), dpi=_DPI, facecolor=INK)
    for place, (pixels, title) in enumerate(zip((before, after), titles, strict=True)):
        axes = figure.add_axes((0.012 + place * 0.494, 0.015, 0.482, 0.865))
        axes.imshow(pixels, interpolation="antialiased", cmap="magma")
        axes.set_title(title, color=PAPER, fontsize=11, pad=6)
        axes.set_axis_off()
    figure.suptitle(heading, color="white", fontsize=14, y=0.985)
    return save(figure, target)


def outlined(
    array: "Array", target: Target, dims: tuple[str, str], outlines: Sequence[tuple[str, Ends]], title: str
) -> Path:
    """The density of a sparse array with named rectangles of its two dimensions over it, as a PNG."""
    where = domain_of(array.schema)
    figure, axes, bar = _canvas(title, "", _ratio(array, dims, where))
    _draw_density(array, axes, dims, where, bar)
    axis.label(axes, array, dims)
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


def tile_rectangles(array: "Array", dims: Sequence[str], box: Box | None = None) -> AnyArray:
    """(n, 4): the low x, low y, high x and high y of the MBR of every data tile; of one dimension (n, 2)."""
    table = array.tiles(box)
    ends = [(name, table.column(f"{name}_{end}")) for end in ("lo", "hi") for name in dims]
    return np.column_stack([_numbers(array, name, column) for name, column in ends])


def fragment_rectangles(array: "Array", dims: Sequence[str]) -> AnyArray:
    """(n, 4): the low x, low y, high x and high y of the box of every fragment; of one dimension (n, 2)."""
    places = [array.dims.index(name) for name in dims]
    domains = array.fragments.column("domain").to_pylist()
    rows = [[float(domain[place][end]) for end in (0, 1) for place in places] for domain in domains]
    return np.array(rows, np.float64).reshape(len(rows), 2 * len(dims))


def _box(array: "Array", box: BoxLike) -> Box:
    whole = domain_of(array.schema)
    if box is not None:
        return box_of(array.schema, box)
    found = array.nonempty_domain
    is_long = array.ndim == 1 and not array.sparse and whole.shape[0] > profile.CELLS_MAX
    if found is None or not (array.sparse or is_long):
        return whole
    return box_of(array.schema, dict(zip(array.dims, found, strict=True)))


def _axes_of(array: "Array", at: Mapping[str, Any]) -> tuple[str, str]:
    """The dimensions of x and y where none are named."""
    free = [dim.name for dim in array.schema.dims if not dim.is_text and dim.name not in at]
    if len(free) < 2:
        raise UnsupportedError(
            f"a picture needs two dimensions of numbers or times; the array has {brief(free)} that at= leaves"
            if at
            else f"a picture needs two dimensions of numbers or times, the array has {free}"
        )
    return axis.drawn_of(array, free)


def _range(box: Box, array: "Array", name: str) -> tuple[float, float]:
    """The ends of an axis as numbers; those of integer dimensions reach over the last cell."""
    place = array.dims.index(name)
    if array.schema.dims[place].is_text:
        raise UnsupportedError(
            f"dimension {name!r} is string, which has no scale to draw along; choose others with dims="
        )
    low, high = axis.range_of(array.schema.dims[place], box.bounds[place])
    if not math.isfinite(high - low):
        raise UnsupportedError(
            f"dimension {name!r} from {low:g} to {high:g} is too long for an axis; choose a part with box="
        )
    return low, high


def _numbers(array: "Array", name: str, column: Any) -> AnyArray:
    """Coordinates as numbers, times as ticks."""
    return axis.numbers_of(array.schema.dim(name), np.asarray(column.to_numpy()))


def _sides(array: "Array", names: tuple[str, str], box: Box) -> float:
    """How tall the picture would be for its width, however flat that is; 0: as it likes."""
    x, y = (_range(box, array, name) for name in names)
    unit = _aspect(names, y) if array.sparse else 1.0
    return unit * ((y[1] - y[0]) / (x[1] - x[0]))


def _ratio(array: "Array", names: tuple[str, str], box: Box) -> float:
    """How tall the picture is for its width."""
    return min(1.6, max(0.3, found)) if (found := _sides(array, names, box)) else 0.62


def _canvas(title: str, note: str, ratio: float, below: float = 0.0) -> "tuple[Picture, Axes, Axes]":
    from .pictures.figure import canvas

    return canvas(title, note, ratio, below=below)


def glow() -> "Colormap":
    """The colours of densities: in the dark theme from the dark of the sea over teal to white."""
    return densities.glow()


def _draw_density(array: "Array", axes: "Axes", names: tuple[str, str], box: Box, bar: "Axes | None") -> None:
    x, y = (_range(box, array, name) for name in names)
    ratio = _ratio(array, names, box)
    wide = int(min(_WIDTH - 2.7, 9.0 / ratio) * _DPI * 0.85)
    bins = [wide, int(wide * ratio)]
    for place, (name, (low, high)) in enumerate(zip(names, (x, y), strict=True)):
        if not datatype.is_float(array.schema.dim(name).dtype):
            # A cell is as wide as its coordinate, not as a point of the picture.
            bins[place] = int(min(bins[place], high - low))
    counts = density(array, names, box, (bins[0], bins[1])).T
    # A map that is too flat or tall for its degrees is stretched.
    is_true = abs(ratio - _sides(array, names, box)) < 1e-9
    densities.draw(axes, bar, counts, (*x, *y), _aspect(names, y) if is_true else 0.0)


def _aspect(names: tuple[str, str], y: tuple[float, float]) -> float:
    """How much taller than wide a unit is drawn: a degree of latitude is longer; 0: whatever fills the picture."""
    if names[0].lower() in ("lon", "longitude") and names[1].lower() in ("lat", "latitude"):
        return 1 / max(0.2, math.cos(math.radians((y[0] + y[1]) / 2)))
    return 0.0


def _dense(
    array: "Array", names: tuple[str, str], box: Box, attr: str | None, at: Mapping[str, Any], title: str
) -> "tuple[Picture, Axes]":
    """One plane of an attribute over two dimensions, thinned to what a screen shows."""
    one = array.schema.attr(attr) if attr is not None else _first_drawable(array, image.check_drawable)
    image.check_drawable(one)
    if box.empty or 0 in box.shape:
        raise UnsupportedError("the box has no cells; there is nothing to draw")
    ends, found = plane.ticks_of_box(box), plane.plane_of(array, names, box, at, one.name)
    x, y = (array.dims.index(name) for name in names)
    steps = (max(1, -(-box.shape[x] // _IMAGE_SIDE_MAX)), max(1, -(-box.shape[y] // _IMAGE_SIDE_MAX)))
    values = _values(array, one.name, found.ticks, ends, {x: steps[0], y: steps[1]})
    values = np.swapaxes(values, 0, 1) if x < y else values
    empty = presence.unwritten(array, found, (x, y), ends, steps, one.name)
    empty &= ~presence.told_apart(one, values)
    north, descends = axis.goes_north(array, names), axis.descends(array, names[1])
    notes = [found.text, f"every {max(steps)}th cell" if max(steps) > 1 else ""]
    notes.append("north is up" if north else "first row at the top")
    note = " · ".join(part for part in notes if part)
    ratio = _ratio(array, names, box)
    figure, axes, bar = _canvas(title, note, ratio, 0.3)
    across, (low, high) = _range(box, array, names[0]), _range(box, array, names[1])
    is_flipped = north and not descends
    shown = image.Image(one, axis.named(one.name, array[one.name].meta), values, empty)
    if is_flipped:
        shown = image.Image(one, shown.title, values[::-1], empty[::-1])
    extent = (*across, low, high) if is_flipped else (*across, high, low)
    stretch = abs(ratio - _sides(array, names, box)) > 1e-9
    image.draw(axes, bar, shown, extent, stretch=stretch)
    axis.label(axes, array, names)
    return figure, axes


def _first_drawable(array: "Array", check: Callable[[Attr], None]) -> Any:
    """The first attribute that passes a check; the first of all where none does."""
    for attr in array.schema.attrs:
        try:
            check(attr)
        except UnsupportedError:
            continue
        return attr
    return array.schema.attrs[0]


def _values(
    array: "Array", name: str, ticks: Mapping[int, int], ends: plane.Ends, steps: Mapping[int, int]
) -> AnyArray:
    key: list[Any] = []
    for place, dim in enumerate(array.schema.dims):
        low = datatype.ticks_of(dim.reach[0])
        if place in steps:
            key.append(slice(ends[place][0] - low, ends[place][1] - low + 1, steps[place]))
        else:
            key.append(ticks[place] - low)
    values: AnyArray = array[name][tuple(key)]
    return values


def _draw_rectangles(axes: "Axes", found: AnyArray, color: str, alpha: float) -> None:
    from matplotlib.collections import LineCollection

    x0, y0, x1, y1 = found.T
    corners = np.stack([np.column_stack(p) for p in ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))], axis=1)
    axes.add_collection(LineCollection(list(corners), colors=color, linewidths=0.6, alpha=alpha))


def _draw_spans(axes: "Axes", found: AnyArray, color: str, alpha: float) -> None:
    """Ranges along x as rectangles of the whole height."""
    from matplotlib.collections import LineCollection

    low, high = found.T
    corners = [
        np.column_stack(pair) for pair in ((low, 0 * low), (high, 0 * low), (high, 0 * low + 1), (low, 0 * low + 1))
    ]
    made = LineCollection(
        list(np.stack([*corners, corners[0]], axis=1)), colors=color, linewidths=0.8, alpha=alpha,
        transform=axes.get_xaxis_transform(),
    )  # fmt: skip
    axes.add_collection(made, autolim=False)


def save(figure: "Figure", target: Target) -> Path:
    """Writes a figure in the format that the end of its name asks for."""
    from .pictures.figure import write

    return write(figure, checked_target(target))
