"""A line or bars along one axis: places to scale, gaps where there are no values, bands that say why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column import datatype
from ..column.datatype import AnyArray
from ..errors import UnsupportedError
from ..schema.attribute import Attr
from ..schema.labels import missing
from . import theme
from .axis import centres, position_label, text_of, time_label
from .image import legend, missing_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

COLOUR = "#2c93a3"
RATIO = 0.5
_MARKED_MAX = 400
"""Up to so many points are marked."""


def check_line(attr: Attr) -> None:
    """An `UnsupportedError` unless values of the attribute have places along an axis."""
    if attr.categories is None and datatype.is_primitive(attr.dtype) and not datatype.is_complex(attr.dtype):
        return
    what = "categories" if attr.categories is not None else attr.dtype
    raise UnsupportedError(
        f"attribute {attr.name!r} is {what}, which no line shows; a line shows numbers, booleans or times: choose "
        f"another attribute"
    )


@dataclass(frozen=True, slots=True)
class Places:
    """Where values stand along the x axis."""

    values: AnyArray
    """One for each value: numbers or times to scale, or positions."""
    dtype: str
    """The type of times."""
    labels: AnyArray | None = None
    """What stands at positions in their place."""
    low: int = 0
    """The position that `labels` begin with."""


def places_of(labels: AnyArray, chosen: AnyArray, low: int, dtype: str) -> Places:
    """Places of labels: to scale where they ascend or descend, else at their positions.

    Args:
        labels: all of them.
        chosen: the positions that are shown, from `low` on.
        low: the position of the first label.
        dtype: the type of times.
    """
    told = labels[chosen - low]
    plain = np.ma.getdata(told)
    if plain.dtype.kind in "iufM" and not missing(told).any() and not np.isinf(_numbers(plain)).any():
        up = plain[1:] > plain[:-1]
        if up.all() or (plain[1:] < plain[:-1]).all():
            return Places(plain, dtype)
    return Places(chosen, dtype, labels, low)


@dataclass(frozen=True, slots=True)
class Values:
    """What a line goes through: one value at each place, or the least and the greatest of the cells around it."""

    attr: Attr
    least: AnyArray
    """Numbers; of times and booleans the numbers that they are stored as."""
    greatest: AnyArray | None
    gone: AnyArray
    """Where there is no value."""
    unwritten: AnyArray
    """Where all cells are known to be unwritten."""
    counts: Mapping[str, int]
    """How many cells have no place on the line, by what they are."""


def values_of(attr: Attr, values: AnyArray, unwritten: AnyArray | None = None) -> Values:
    """Values as numbers, with what they are where they have no place on a line."""
    held = np.ma.asarray(values)
    plain, gone = np.ma.getdata(held), np.ma.getmaskarray(held).copy()
    empty = np.zeros(plain.shape, bool) if unwritten is None else unwritten
    if plain.dtype.kind in "fmM":
        gone |= np.isnan(plain) if plain.dtype.kind == "f" else np.isnat(plain)
    numbers = plain.view(np.int64) if plain.dtype.kind in "mM" else plain
    counts = {"unwritten": int(empty.sum()), missing_name(attr, held): int((gone & ~empty).sum())}
    gone |= empty
    if plain.dtype.kind == "f":
        for name, end in (("+inf", np.inf), ("-inf", -np.inf)):
            counts[name] = int(((plain == end) & ~gone).sum())
        gone |= np.isinf(plain)
    return Values(attr, numbers.astype(np.uint8) if plain.dtype.kind == "b" else numbers, None, gone, empty, counts)


def draw(axes: "Axes", places: Places, values: Values) -> AnyArray:
    """Draws a line with gaps, and says in bands and in a legend why there are any.

    Returns:
        The ends of the cells along x: one more than there are places.
    """
    x = _along(axes.xaxis, places)
    ends = _ends(x)
    empty = values.unwritten
    _bands(axes, ends, {"unwritten": empty, "missing": values.gone & ~empty}, values.counts)
    y = [_upright(axes.yaxis, values.attr.dtype, one) for one in (values.least, values.greatest) if one is not None]
    gone, across = np.repeat(values.gone, len(y)), np.repeat(x, len(y))
    upright = np.column_stack(_held(axes.yaxis, y, values.gone)).reshape(-1)
    style: dict[str, Any] = {"marker": "o", "ms": 3} if across.size <= _MARKED_MAX else {}
    axes.plot(across, np.where(gone, np.nan, upright), color=COLOUR, lw=1.6 if style else 1.0, **style)
    edges = np.concatenate([[True], values.gone, [True]])
    alone = np.repeat(~values.gone & edges[:-2] & edges[2:], len(y))
    if alone.any() and not style:
        axes.scatter(across[alone], upright[alone], s=4, color=COLOUR)
    axes.set_xlim(float(ends.min()), float(ends.max()))
    return ends


def draw_bars(axes: "Axes", edges: AnyArray, dtype: str, counts: AnyArray) -> AnyArray:
    """Draws how many cells lie between each two edges; returns these along x."""
    ends = to_scale(axes.xaxis, edges, dtype)
    axes.stairs(counts, ends, fill=True, color=COLOUR)
    axes.set_xlim(float(ends[0]), float(ends[-1]))
    axes.set_ylim(0, max(1.0, 1.05 * float(counts.max(initial=0))))
    _whole(axes.yaxis)
    axes.set_ylabel("cells in a bar", color=theme.current().text)
    return ends


def to_scale(along: "Axis", values: AnyArray, dtype: str) -> AnyArray:
    """Numbers and times as places along an axis, whose ticks show what they are.

    Args:
        along: the axis.
        values: numbers or times.
        dtype: the type of times that matplotlib has no dates for.
    """
    if values.dtype.kind == "M" and _is_of_calendar(values):
        from matplotlib import dates as untyped

        dates: Any = untyped
        locator = dates.AutoDateLocator(minticks=3, maxticks=8)
        along.set_major_locator(locator)
        along.set_major_formatter(dates.AutoDateFormatter(locator))
        found: AnyArray = np.asarray(dates.date2num(values), np.float64)
        return found
    if values.dtype.kind in "mM":
        _whole(along)
        along.set_major_formatter(partial(time_label, dtype))
    elif values.dtype.kind in "iu":
        _whole(along)
        along.set_major_formatter(_whole_label)
    return _numbers(values)


def _numbers(values: AnyArray) -> AnyArray:
    return (values.view(np.int64) if values.dtype.kind in "mM" else values).astype(np.float64)


def _is_of_calendar(values: AnyArray) -> bool:
    """Whether matplotlib knows dates for times: those of the years 1 to 9999, in steps that it has."""
    if np.datetime_data(values.dtype)[0] in ("as", "fs", "ps"):
        return False
    told = values[~np.isnat(values)]
    if told.size == 0:
        return False
    first, last = (int(end.astype("datetime64[Y]").astype(np.int64)) + 1970 for end in (told.min(), told.max()))
    return 1 < first <= last < 9999


def _whole(along: "Axis") -> None:
    from matplotlib.ticker import MaxNLocator

    along.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))


def _whole_label(value: float, _place: float | None) -> str:
    return str(int(value)) if value == int(value) else text_of(value)


def _along(along: "Axis", places: Places) -> AnyArray:
    if places.labels is None:
        return to_scale(along, places.values, places.dtype)
    along.set_major_locator(centres())
    along.set_major_formatter(partial(position_label, places.labels, places.low))
    return places.values.astype(np.float64) + 0.5


def _upright(along: "Axis", dtype: str, numbers: AnyArray) -> AnyArray:
    """Values along y."""
    if dtype == "bool":
        along.set_ticks([0, 1], labels=["false", "true"])
        return numbers.astype(np.float64)
    if not datatype.is_time(dtype):
        return to_scale(along, numbers, dtype)
    example: Any = datatype.from_text(dtype, "0")
    return to_scale(along, numbers.astype(np.int64).view(example.dtype), dtype)


def _held(along: "Axis", columns: Sequence[AnyArray], gone: AnyArray) -> list[AnyArray]:
    """Values whose distances are numbers too: those near the end of what a float holds are divided."""
    if max((float(np.abs(one[~gone]).max(initial=0.0)) for one in columns), default=0.0) <= 1e307:
        return list(columns)
    along.set_major_formatter(lambda value, _place: f"{value:.4g}e+306" if value else "0")
    return [one / 1e306 for one in columns]


def _ends(x: AnyArray) -> AnyArray:
    """The ends of cells around places: half way to the next one."""
    if x.size == 1:
        return np.array([x[0] - 0.5, x[0] + 0.5])
    middle = x[:-1] + (x[1:] - x[:-1]) / 2
    return np.concatenate([[x[0] - (middle[0] - x[0])], middle, [x[-1] + (x[-1] - middle[-1])]])


def _bands(axes: "Axes", ends: AnyArray, covered: Mapping[str, AnyArray], counts: Mapping[str, int]) -> None:
    """Covers the width of cells without a value, and counts them in a legend."""
    from matplotlib.patches import Patch

    shade = theme.current()
    colours = {"unwritten": shade.unwritten, "missing": shade.missing}
    pairs = np.repeat(ends, 2)[1:-1]
    for name, where in covered.items():
        if where.any():
            axes.fill_between(
                pairs, 0, 1, where=np.repeat(where, 2).tolist(), color=colours[name], alpha=0.6, lw=0, zorder=0,
                transform=axes.get_xaxis_transform(),
            )  # fmt: skip
    keys: list[Any] = []
    for name, count in counts.items():
        if count and name in ("+inf", "-inf"):
            keys.append(Patch(facecolor="none", edgecolor="none", label=f"{name}: {count:,}, beyond the axis"))
        elif count:
            colour = shade.unwritten if name == "unwritten" else shade.missing
            keys.append(Patch(facecolor=colour, edgecolor=shade.line, alpha=0.6, label=f"{name}: {count:,}"))
    legend(axes, keys)
