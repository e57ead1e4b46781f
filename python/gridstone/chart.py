"""Charts of answers by groups: bars, lines over time, heat maps."""

import contextlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .base.arguments import among, checked, file, text
from .base.extras import needed
from .base.printable import brief
from .column import datatype
from .column.datatype import AnyArray
from .errors import InputError, UnsupportedError
from .pictures import theme as themes
from .pictures.target import Target, checked_target
from .plot import glow
from .result.cells import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .pictures.figure import Picture

Width = float | str | np.integer[Any] | np.floating[Any] | np.timedelta64
_BAR = "#3fc1b0"
_COLOURS = ("#3fc1b0", "#ff9e64", "#bb9af7", "#9ece6a", "#f7768e", "#7aa2f7", "#e0af68", "#c0caf5")
_PANELS_MAX, _BARS_MAX, _WIDTH, _DPI = 4, 40, 10.0, 150
_NAME_MAX = 24
"""Characters of a name beside an axis."""
_PERIOD = re.compile(r"\s*(\d*)\s*([A-Za-z]+)\s*")
_MONTHS = {"M": 1, "month": 1, "Q": 3, "quarter": 3, "Y": 12, "y": 12, "year": 12}
_UNITS = {
    **{unit: unit for unit in ("ns", "us", "ms", "s", "m", "h", "D", "W")},
    **{"H": "h", "d": "D", "w": "W", "second": "s", "min": "m", "minute": "m", "hour": "h", "day": "D", "week": "W"},
}
"""The units of periods as the core takes them, in months and as NumPy has them."""


@dataclass(frozen=True, slots=True)
class _Key:
    """One key of the groups: its values, and where along an axis they lie."""

    name: str
    values: AnyArray
    width: float | None
    """The width of its bins, in units of its values; None: it has none."""
    period: np.timedelta64 | None
    """The length of its periods; None: they are none, or of no known length."""
    is_time: bool
    is_scale: bool
    """Whether values have a place along an axis of numbers or times; others are names in a row."""


@checked(target=file, theme=text)
def chart(
    found: Result,
    target: Target | None = None,
    *,
    keys: Sequence[str],
    widths: Mapping[str, Width] | None = None,
    labels: Mapping[str, str] | None = None,
    title: str | None = None,
    theme: str = themes.DEFAULT,
) -> "Path | Picture":
    """Draws an answer by groups: a panel for each aggregate that is a number, at most four.

        found = a.aggregate({"n": "count(*)"}, by=["kind", {"t": "1h"}])
        gs.chart.chart(found, "hours.png", keys=["kind", "t"], widths={"t": "1h"})

    One key of texts, enumerated or whole numbers makes bars in the order of the rows; a key with bins makes bars of
    their width; a key of times a line. Two keys make a heat map; if one is a time and the other has few values, lines.

    Args:
        found: the answer: a row per group.
        target: the file: .png, .svg, .pdf, .jpg, .tif or .webp; None: no file is written.
        keys: the names of its columns that are keys, one or two.
        widths: the widths of bins by key, as `by=` had them.
        labels: what is written beside the axes, by column; the names otherwise.
        title: above the picture.
        theme: "dark" or "light".

    Returns:
        The file; without one the figure, which a notebook shows.

    Raises:
        InputError: an unknown format or theme; a column that is not there; no key or more than two; more than four
            aggregates; no folder.
        UnsupportedError: no aggregate is a number; matplotlib is missing.
    """
    path = None if target is None else checked_target(target)
    needed("matplotlib.figure", "plot", "a chart")
    for name in keys:
        if not among(name, found.keys()):
            raise InputError(f"keys= names columns of the answer, which has {', '.join(found)}, not {brief(name)}")
    if not 1 <= len(keys) <= 2:
        raise InputError(f"a chart has one key or two along its axes, not {len(keys)}: group by fewer")
    if not len(found):
        raise InputError("the answer has no groups; there is nothing to draw")
    names = _drawn(found, keys)
    told = {**{name: name for name in found}, **(labels or {})}
    axes_of_keys = [_key(found, name, (widths or {}).get(name)) for name in keys]
    with themes.using(theme):
        if len(keys) == 1:
            figure = _alone(found, axes_of_keys[0], names, told)
        else:
            figure = _paired(found, axes_of_keys, names, told)
        if title:
            figure.suptitle(title.replace("$", r"\$"), color=themes.current().heading, fontsize=13)
        return figure if path is None else _saved(figure, path)


def _drawn(found: Result, keys: Sequence[str]) -> list[str]:
    """The aggregates that are numbers."""
    names = [name for name in found if name not in keys and found[name].dtype.kind in "biufm"]
    if not names:
        raise UnsupportedError("no aggregate of the answer is a number; a chart needs one, such as count(*)")
    if len(names) > _PANELS_MAX:
        raise InputError(f"a chart has at most {_PANELS_MAX} aggregates, not {len(names)}: {', '.join(names)}")
    return names


def _key(found: Result, name: str, width: Width | None) -> _Key:
    values = found[name]
    dtype = found._schema.attr(name).dtype
    is_time = values.dtype.kind == "M"
    is_number = values.dtype.kind in "fm" or (values.dtype.kind in "iu" and (width is not None or _many(values)))
    period = width if isinstance(width, np.timedelta64) else _period(width) if isinstance(width, str) else None
    number = float(width) if isinstance(width, int | float | np.integer | np.floating) else None
    if values.dtype.kind == "m" and period is not None:
        with contextlib.suppress(TypeError):
            # Months have no length in days.
            number = float(period / np.array(1, values.dtype))
    if datatype.is_time(dtype) and not is_time:
        values = np.ma.masked_array(np.ma.getdata(values).astype(np.int64), np.isnat(np.ma.getdata(values)))
    binned = number if number is not None else (0.0 if width is not None else None)
    return _Key(name, values, binned, period if is_time else None, is_time, is_time or is_number)


def _period(text: str) -> np.timedelta64 | None:
    """The length that a period has as text; None if it is not known."""
    found = _PERIOD.fullmatch(text)
    if found is None:
        return None
    count, unit = int(found[1] or 1), found[2] if found[2] in ("s", "ms", "us", "ns") else found[2].removesuffix("s")
    if unit in _MONTHS:
        return np.timedelta64(count * _MONTHS[unit], "M")
    made: Any = np.timedelta64
    return made(count, _UNITS[unit]) if unit in _UNITS else None


def _many(values: AnyArray) -> bool:
    """Whether there are too many numbers for a bar each; not where another order than theirs was asked for."""
    plain = np.ma.compressed(values)
    return len(np.unique(plain)) > _BARS_MAX and bool((plain[1:] >= plain[:-1]).all())


def _numbers(values: AnyArray) -> AnyArray:
    """Aggregates as floats, NaN where there is none."""
    masked = np.ma.asarray(values)
    plain = np.ma.getdata(masked)
    if plain.dtype.kind == "m":
        plain = np.where(np.isnat(plain), np.nan, plain.astype(np.int64).astype(np.float64))
    made = plain.astype(np.float64)
    made[np.ma.getmaskarray(masked)] = np.nan
    return made


def _missing(values: AnyArray) -> AnyArray:
    """Where a key is null, NaN or NaT."""
    plain, mask = np.ma.getdata(values), np.ma.getmaskarray(np.ma.asarray(values)).copy()
    if plain.dtype.kind == "f":
        mask |= np.isnan(plain)
    elif plain.dtype.kind in "mM":
        mask |= np.isnat(plain)
    elif plain.dtype.kind == "O":
        mask |= np.array([value is None for value in plain], bool)
    return np.asarray(mask)


def _row_of(values: AnyArray) -> tuple[AnyArray, list[str]]:
    """By value its place in a row of names, and the names as they are written beside an axis."""
    missing = _missing(values)
    found: dict[Any, int] = {}
    shown = np.ma.getdata(values).tolist()
    # What is missing is no text, whatever a text says.
    keys = [None if gone else value for value, gone in zip(shown, missing, strict=True)]
    places = np.array([found.setdefault(key, len(found)) for key in keys], int)
    return places, _labels_of(list(found))


def _labels_of(values: Sequence[Any]) -> list[str]:
    """How values are written: long texts are cut, those that begin alike in the middle."""
    texts = [_text_of(value) for value in values]
    cut = [text if len(text) <= _NAME_MAX else f"{text[: _NAME_MAX - 1]}…" for text in texts]
    times, half = Counter(cut), _NAME_MAX // 2
    both = [
        text if times[short] == 1 or len(text) <= _NAME_MAX else f"{text[:half]}…{text[1 - half :]}"
        for text, short in zip(texts, cut, strict=True)
    ]
    # A dollar sign begins a formula.
    return [text.replace("$", r"\$") for text in both]


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return '"null"' if value == "null" else value
    return "null" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


# Pictures.


def _panels(count: int, height: float, *, right: float = 0.0) -> "tuple[Picture, list[Axes]]":
    """Panels one above the other, which share the axis below."""
    from .pictures.figure import Picture

    figure = Picture(
        figsize=(_WIDTH + right, height * count + 0.8),
        dpi=_DPI,
        facecolor=themes.current().ground,
        layout="constrained",
    )
    made = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    for axes in made:
        _style(axes)
    return figure, list(made)


def _style(axes: "Axes") -> None:
    """Gives axes the colours of charts, and lines at the left and below alone."""
    axes.set_facecolor(themes.current().ground)
    axes.tick_params(colors=themes.current().text, labelsize=9)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_color(themes.current().line)
        spine.set_visible(side in ("left", "bottom"))


def _alone(found: Result, key: _Key, names: Sequence[str], told: Mapping[str, str]) -> "Picture":
    """Groups of one key: a line over time, bars of bins, or a bar for each name."""
    if not key.is_scale:
        return _bars(found, key, names, told)
    figure, panels = _panels(len(names), 3.2 if len(names) == 1 else 2.4)
    kept = ~_missing(key.values)
    order = np.argsort(np.ma.getdata(key.values)[kept], kind="stable")
    places = np.ma.getdata(key.values)[kept][order]
    for axes, name in zip(panels, names, strict=True):
        values = _numbers(found[name])[kept][order]
        if key.is_time:
            _line(axes, key, places, values, _COLOURS[0], None)
        else:
            step = key.width or _step(places)
            start = places.astype(np.float64) + (0 if key.width else -step / 2)
            axes.bar(start, values, step * (0.92 if len(places) <= 100 else 1), align="edge", color=_BAR)
        _upright(axes, told[name], values)
    _along(panels[-1], key, told, left_out=int((~kept).sum()))
    return figure


def _step(places: AnyArray) -> float:
    """The least distance of neighbours; 1 if there is one place."""
    between = np.diff(np.unique(places.astype(np.float64)))
    return float(between.min()) if between.size else 1.0


def _line(axes: "Axes", key: _Key, places: AnyArray, values: AnyArray, colour: str, label: str | None) -> None:
    """A line over time; of periods, with a gap where groups are missing."""
    marked = np.arange(len(places))
    if key.width is not None and len(places) > 1:
        ticks: AnyArray = places.astype(np.int64)
        gaps = np.flatnonzero(ticks[1:] - ticks[:-1] > 1.01 * _widths(key, places)[:-1]) + 1
        middle = places[gaps - 1] + (places[gaps] - places[gaps - 1]) // 2
        places, values = np.insert(places, gaps, middle), np.insert(values, gaps, np.nan)
        marked = marked + np.searchsorted(gaps, marked, side="right")
    if len(marked) > 60:
        # A place between two gaps has no line.
        known = np.isfinite(np.concatenate([[np.nan], values, [np.nan]]))
        marked = marked[known[marked + 1] & ~known[marked] & ~known[marked + 2]]
    axes.plot(places, values, color=colour, lw=1.6, marker="o", markevery=marked.tolist(), ms=3.5, label=label)


def _upright(axes: "Axes", label: str, values: AnyArray) -> None:
    """The axis of an aggregate: from 0, unless all lies far from it."""
    axes.set_ylabel(label, color=themes.current().text, fontsize=10)
    axes.grid(axis="y", color=themes.current().line, lw=0.6)
    axes.yaxis.set_major_formatter(_number)
    known = values[np.isfinite(values)]
    if known.size and known.min() >= 0 and known.min() < 0.8 * known.max():
        axes.set_ylim(bottom=0)


def _number(value: float, _place: float) -> str:
    """A number beside an axis: with separators, and no more digits than it needs."""
    return f"{value:,.0f}" if abs(value) >= 10 and float(value).is_integer() else f"{value:,.6g}"


def _along(axes: "Axes", key: _Key, told: Mapping[str, str], *, left_out: int = 0, upright: bool = False) -> None:
    """The axis of a key of numbers or times."""
    dates = needed("matplotlib.dates", "plot", "a chart")
    axis = axes.yaxis if upright else axes.xaxis
    note = f"   ({left_out} without a value left out)" if left_out else ""
    axis.set_label_text(told[key.name] + note, color=themes.current().text, fontsize=10)
    if key.is_time:
        locator = dates.AutoDateLocator(minticks=4, maxticks=9)
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))
        axis.get_offset_text().set_color(themes.current().text)
    else:
        axis.set_major_formatter(_number)


def _bars(found: Result, key: _Key, names: Sequence[str], told: Mapping[str, str]) -> "Picture":
    """A bar for each name, lying one below the other; panels side by side."""
    from .pictures.figure import Picture

    shown = min(len(found), _BARS_MAX)
    size = (_WIDTH if len(names) < 3 else _WIDTH + 2, 0.28 * shown + 1.5)
    figure = Picture(figsize=size, dpi=_DPI, facecolor=themes.current().ground, layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    places = np.arange(shown)
    for axes, name in zip(panels, names, strict=True):
        values = _numbers(found[name])[:shown]
        _style(axes)
        axes.barh(places, values, 0.72, color=_BAR)
        axes.set_xlabel(told[name], color=themes.current().text, fontsize=10)
        axes.grid(axis="x", color=themes.current().line, lw=0.6)
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter(_number)
    of, names_shown = _row_of(key.values[:shown])
    panels[0].set_yticks(places, [names_shown[place] for place in of])
    panels[0].set_ylim(shown - 0.4, -0.6)
    more = len(found) - shown
    panels[0].set_ylabel(
        told[key.name] + (f"\n(the first {shown} of {len(found):,})" if more else ""), color=themes.current().text
    )
    return figure


def _paired(found: Result, keys: Sequence[_Key], names: Sequence[str], told: Mapping[str, str]) -> "Picture":
    """Groups of two keys: lines over time for a few names, else a heat map."""
    times = [key for key in keys if key.is_time]
    named = [key for key in keys if not key.is_scale and len(_row_of(key.values)[1]) <= len(_COLOURS)]
    if times and named:
        return _lines(found, times[0], named[0], names, told)
    return _heat(found, keys, names, told)


def _lines(found: Result, time: _Key, key: _Key, names: Sequence[str], told: Mapping[str, str]) -> "Picture":
    """A line over time for each name."""
    figure, panels = _panels(len(names), 3.4 if len(names) == 1 else 2.5)
    kept, (of, shown) = ~_missing(time.values), _row_of(key.values)
    for axes, name in zip(panels, names, strict=True):
        values = _numbers(found[name])
        for colour, place in zip(_COLOURS, dict.fromkeys(of[kept]), strict=False):
            rows = np.flatnonzero(kept & (of == place))
            rows = rows[np.argsort(np.ma.getdata(time.values)[rows], kind="stable")]
            # A label that begins with a line below is left out of legends.
            label = re.sub("^_", " _", shown[place])
            _line(axes, time, np.ma.getdata(time.values)[rows], values[rows], colour, label)
        _upright(axes, told[name], values)
    legend = panels[0].legend(
        title=told[key.name],
        labelcolor=themes.current().text,
        fontsize=9,
        loc="upper left",
        bbox_to_anchor=(1, 1),
        frameon=False,
    )
    legend.get_title().set_color(themes.current().text)
    _along(panels[-1], time, told, left_out=int((~kept).sum()))
    return figure


def _heat(found: Result, keys: Sequence[_Key], names: Sequence[str], told: Mapping[str, str]) -> "Picture":
    """A coloured rectangle for each group, the first key along the axis below."""
    x, y = keys if not _stands(keys) else keys[::-1]
    kept = np.ones(len(found), bool)
    for key in keys:
        kept &= ~_missing(key.values) if key.is_scale else True
    if not kept.any():
        raise InputError("no group has a value of each key that is a number or a time; there is nothing to draw")
    (columns, right), (rows, top) = _edges(x, kept), _edges(y, kept)
    figure, panels = _panels(len(names), 6.0 if len(names) == 1 else 4.0, right=0.6)
    for axes, name in zip(panels, names, strict=True):
        cells = np.full((len(top) - 1, len(right) - 1), np.nan)
        cells[rows, columns] = _numbers(found[name])[kept]
        shown = axes.pcolormesh(right, top, cells, cmap=_colours(), norm=_norm(cells), rasterized=True)
        bar = axes.figure.colorbar(shown, ax=axes, fraction=0.035, pad=0.015)
        bar.ax.tick_params(colors=themes.current().text, labelsize=9)
        bar.outline.set_visible(False)
        bar.set_label(told[name], color=themes.current().text)
        _sided(axes, y, kept, told, upright=True)
    _sided(panels[-1], x, kept, told, left_out=int((~kept).sum()))
    return figure


def _stands(keys: Sequence[_Key]) -> bool:
    """Whether the second key goes along the axis below: names of latitudes and of what is no scale stand upright."""
    first, second = keys
    if second.is_time != first.is_time:
        return second.is_time
    return first.name.lower() in ("lat", "latitude", "y") or (second.is_scale and not first.is_scale)


def _edges(key: _Key, kept: AnyArray) -> tuple[AnyArray, AnyArray]:
    """By group its place along an axis, and the edges of all places. A gap between groups is a place too, so that no
    group is wider than its bin, its period or, without one, the least distance of neighbours."""
    values = np.ma.getdata(key.values)[kept]
    if not key.is_scale:
        places, names = _row_of(key.values[kept])
        return places, np.arange(len(names) + 1) - 0.5
    starts, places = np.unique(values, return_inverse=True)
    numbers = starts.astype(np.int64 if key.is_time else np.float64)
    # What is narrower than a thousandth of the axis would not be seen.
    widths = np.maximum(_widths(key, starts), (numbers[-1] - numbers[0]) / 1000).astype(numbers.dtype)
    ends = numbers + widths
    # Edges of bins that touch differ by rounding.
    gaps = np.flatnonzero(numbers[1:] - numbers[:-1] > 1.01 * widths[:-1])
    edges = np.append(np.insert(numbers, gaps + 1, ends[gaps]), ends[-1])
    return places + np.searchsorted(gaps, places), edges.view(starts.dtype) if key.is_time else edges


def _widths(key: _Key, starts: AnyArray) -> AnyArray:
    """How wide each place is, in the units of its values."""
    if key.is_time and key.period is not None:
        months = np.datetime_data(key.period.dtype)[0] in "YM"
        ends = (starts.astype("M8[M]") if months else starts) + key.period
        return np.maximum(ends.astype(starts.dtype).astype(np.int64) - starts.astype(np.int64), 1)
    return np.full(len(starts), (0.0 if key.is_time else key.width) or _step(starts))


def _colours() -> Any:
    """The colours of cells. The darkest ones are left out, so that the least group is not taken for a gap."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(glow()(np.linspace(0.25, 1, 256)))


def _norm(cells: AnyArray) -> Any:
    """Logarithmic where a few groups are far above the others."""
    from matplotlib.colors import LogNorm, Normalize

    known = cells[np.isfinite(cells)]
    if known.size and known.min() > 0 and known.max() > 30 * np.median(known):
        return LogNorm(known.min(), known.max())
    return Normalize(known.min() if known.size else 0, known.max() if known.size else 1)


def _sided(
    axes: "Axes", key: _Key, kept: AnyArray, told: Mapping[str, str], *, left_out: int = 0, upright: bool = False
) -> None:
    """The axis of a key of a heat map: a scale, or names."""
    if key.is_scale:
        _along(axes, key, told, left_out=left_out, upright=upright)
        return
    _, names = _row_of(key.values[kept])
    step = -(-len(names) // (_BARS_MAX if upright else 24))
    axis = axes.yaxis if upright else axes.xaxis
    axis.set_ticks(range(0, len(names), step), names[::step])
    if not upright and max(map(len, names)) * len(names[::step]) > 90:
        axes.tick_params(axis="x", rotation=60)
    axis.set_label_text(told[key.name], color=themes.current().text, fontsize=10)


def _saved(figure: "Figure", path: Path) -> Path:
    """Writes a figure in the form that the end of its name asks for."""
    from .pictures.figure import write

    return write(figure, path)
