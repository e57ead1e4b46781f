"""Where the cells of a dense array lie: in the store, in files that are attached, in both, or nowhere."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from .column import datatype
from .column.datatype import AnyArray
from .errors import UnsupportedError
from .pictures import theme
from .query.box import Box

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .arrays.array import Array

NOWHERE, STORE, FILES, BOTH = range(4)
"""What a square of the picture says of its tiles."""

_SIDE_MAX = 400
_NAMES = {STORE: "in the store", FILES: "in attached files", BOTH: "in both", NOWHERE: "nowhere"}
_COLOURS = {STORE: "#3fc1b0", FILES: "#ff9e64", BOTH: "#bb9af7"}


@dataclass(frozen=True)
class Placement:
    """Squares over two dimensions, each of one tile or of several."""

    squares: AnyArray
    """[y, x]: NOWHERE, STORE, FILES or BOTH."""
    edges: tuple[tuple[float, float], tuple[float, float]]
    """The ends of the x and the y axis, in coordinates as numbers."""
    sides: tuple[int, int]
    """Coordinates that a square has along x and y; the last ones may reach beyond the ends."""


def placement(array: "Array", dims: tuple[str, str], box: Box) -> Placement:
    """Where the cells of each tile of a box lie, over the dimensions of the x and y axes.

    A square says so of all cells at its place along the other dimensions, and of all attributes. Chunks of a file that
    were never written lie in the file.

    Raises:
        UnsupportedError: the array is sparse: its cells lie in the store.
    """
    if array.sparse:
        raise UnsupportedError("the cells of a sparse array lie in the store; a picture of where is of dense arrays")
    places = [array.dims.index(name) for name in dims]
    lows = [datatype.ticks_of(low) for low, _ in box.bounds]
    axes = [_axis(array, place, lows[place], box.shape[place]) for place in places]
    files = {row["id"] for row in _native.attached_boxes(array.native)}
    flags = np.zeros((axes[1].count, axes[0].count), np.uint8)
    for fragment in array.fragments.to_pylist():
        ends = [tuple(datatype.ticks_of(end) for end in ends) for ends in fragment["domain"]]
        if any(
            high < low or low + size <= first for (first, high), low, size in zip(ends, lows, box.shape, strict=True)
        ):
            continue
        whole = all(
            first <= low and low + size - 1 <= high
            for place, ((first, high), low, size) in enumerate(zip(ends, lows, box.shape, strict=True))
            if place not in places
        )
        whole = whole and len(fragment["attrs"] or ()) in (0, len(array.schema.attrs))
        _paint(
            flags,
            fragment,
            fragment["id"] in files,
            [axis.cut(ends[p]) for axis, p in zip(axes, places, strict=True)],
            whole,
        )
    return Placement(flags, (axes[0].edges, axes[1].edges), (axes[0].side, axes[1].side))


@dataclass(frozen=True)
class _Axis:
    """An axis of the picture: squares of some cells each."""

    low: int
    size: int
    side: int

    @property
    def count(self) -> int:
        return -(-self.size // self.side)

    @property
    def edges(self) -> tuple[float, float]:
        return (float(self.low), float(self.low + self.size))

    def cut(self, ends: tuple[int, ...]) -> tuple[slice, slice]:
        """The squares that a range touches, and those that it covers."""
        first, last = max(ends[0] - self.low, 0), min(ends[1] - self.low, self.size - 1)
        covers_last = last == self.size - 1
        inner = (-(-first // self.side), self.count if covers_last else (last + 1) // self.side)
        return slice(first // self.side, last // self.side + 1), slice(inner[0], max(inner))


def _axis(array: "Array", place: int, low: int, size: int) -> _Axis:
    tile = array.schema.dims[place].tile
    side = size if tile is None else max(1, int(datatype.ticks_of(tile)))
    return _Axis(low, size, side * max(1, math.ceil(-(-size // side) / _SIDE_MAX)))


def _paint(flags: AnyArray, fragment: Any, in_file: bool, cuts: Sequence[tuple[slice, slice]], whole: bool) -> None:
    (x, inner_x), (y, inner_y) = cuts
    kind = fragment["kind"]
    if kind in ("dense", "deletion") and whole:
        flags[inner_y, inner_x] = NOWHERE
    if kind in ("dense", "sparse"):
        flags[y, x] |= FILES if in_file else STORE


def draw(array: "Array", axes: "Axes", dims: tuple[str, str], box: Box) -> None:
    """Draws the squares, with the number of each kind beside its colour."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    from .pictures.axis import descends, goes_north

    found, shade = placement(array, dims, box), theme.current()
    (left, right), (low, high) = found.edges
    colours = {**_COLOURS, NOWHERE: shade.unwritten}
    listed = ListedColormap([colours[code] for code in (NOWHERE, STORE, FILES, BOTH)])
    shown = {"cmap": listed, "vmin": 0, "vmax": 3, "interpolation": "nearest", "aspect": "auto"}
    rows, columns = found.squares.shape
    ends = (left + columns * found.sides[0], low + rows * found.sides[1])
    axes.imshow(found.squares, extent=(left, ends[0], ends[1], low), **shown)  # type: ignore[arg-type]
    axes.set_xlim(left, right)
    axes.set_ylim((low, high) if goes_north(array, dims) and not descends(array, dims[1]) else (high, low))
    counts = np.bincount(found.squares.ravel(), minlength=4)
    keys = [Patch(color=colours[code], label=f"{name}: {counts[code]:,}") for code, name in _NAMES.items()]
    axes.legend(
        handles=keys,
        loc="upper right",
        facecolor=shade.ground,
        labelcolor=shade.text,
        edgecolor=shade.line,
        framealpha=0.85,
    )
