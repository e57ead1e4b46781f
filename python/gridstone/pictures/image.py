"""Values of a plane as an image, with a colour bar and a legend of what has no value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column import datatype
from ..column.datatype import AnyArray
from ..errors import UnsupportedError
from ..schema.attribute import Attr
from . import theme
from .axis import text_of, time_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CATEGORIES_MAX = 24


@dataclass(frozen=True, slots=True)
class Image:
    """Values over two dimensions."""

    attr: Attr
    title: str
    """Beside the colour bar: the attribute and its units."""
    values: AnyArray
    """[y, x], masked where null."""
    unwritten: AnyArray | None
    """[y, x]: where cells are known to be unwritten; None: that is not known of any."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """Values as numbers, and what stands beside the colour bar."""

    numbers: AnyArray
    gone: AnyArray
    """Where there is no value."""
    names: Sequence[str] | None = None
    """The names of categories, by number."""
    factor: float = 1.0
    """What numbers are multiplied by to be values."""


def check_drawable(attr: Attr) -> None:
    """An `UnsupportedError` unless values of the attribute have colours."""
    dtype = attr.dtype
    if attr.categories is not None or _is_colour(dtype):
        return
    if not datatype.is_primitive(dtype) or datatype.is_complex(dtype):
        raise UnsupportedError(
            f"attribute {attr.name!r} is {dtype}, which has no colours; an image shows numbers, booleans, times, "
            f"categories, or colours as uint8[3] or uint8[4]: choose another attribute"
        )


def _is_colour(dtype: str) -> bool:
    return dtype in ("uint8[3]", "uint8[4]")


def draw(axes: "Axes", bar: "Axes", image: Image, extent: tuple[float, float, float, float], *, stretch: bool) -> None:
    """Draws values, in their place along both axes, the colour bar, and the legend below.

    Args:
        axes: of the image.
        bar: of the colour bar; it is taken away where there is none.
        image: what is drawn.
        extent: left, right, bottom and top, as `imshow` takes them: of the last row and the first one.
        stretch: whether cells are as wide and tall as the axes make them; else they are squares.
    """
    shown: dict[str, Any] = {"extent": extent, "aspect": "auto" if stretch else "equal", "origin": "upper"}
    if _is_colour(image.attr.dtype):
        plain = np.ma.getdata(image.values)
        gone: AnyArray = np.asarray(
            np.ma.getmaskarray(np.ma.asarray(image.values)).reshape(*plain.shape[:2], -1).any(axis=2)
        )
        axes.imshow(plain, interpolation="antialiased", **shown)
        bar.remove()
        _cover(axes, image, gone, shown, {})
        return
    scale = _scale(image)
    hidden = scale.gone if image.unwritten is None else scale.gone | image.unwritten
    known = scale.numbers[~hidden & np.isfinite(scale.numbers.astype(np.float64))]
    _cover(axes, image, scale.gone, shown, _infinities(scale.numbers, hidden))
    if known.size == 0:
        axes.set_xlim(*extent[:2])
        axes.set_ylim(*extent[2:])
        bar.remove()
        return
    colours, norm = _colouring(scale, known)
    # Matplotlib takes infinite values for missing ones.
    within = np.clip(scale.numbers, known.min(), known.max())
    made = axes.imshow(
        np.ma.MaskedArray(within, mask=hidden), cmap=colours, norm=norm, interpolation="nearest", **shown
    )
    made.set_zorder(0)
    _bar(axes, bar, made, image, scale, known)


def _scale(image: Image) -> _Scale:
    """Values as numbers that matplotlib draws."""
    values = np.ma.asarray(image.values)
    plain, gone = np.ma.getdata(values), np.ma.getmaskarray(values).copy()
    categories = image.attr.categories
    if categories is not None:
        places = {value: place for place, value in enumerate(categories)}
        flat = plain.tolist()
        numbers = np.array([[places.get(value, -1) for value in row] for row in flat], np.int64).reshape(plain.shape)
        return _Scale(numbers, gone | (numbers < 0), [text_of(value) for value in categories])
    if plain.dtype.kind == "b":
        return _Scale(plain.astype(np.int64), gone, ("false", "true"))
    if plain.dtype.kind in "mM":
        return _Scale(plain.astype(np.int64), gone | np.isnat(plain))
    if plain.dtype.kind == "f":
        gone |= np.isnan(plain)
        wide = plain.astype(np.float64)
        finite = wide[np.isfinite(wide) & ~gone]
        # The distance of the ends has to be a number too.
        if finite.size and max(finite.max(), -finite.min()) > 1e307:
            return _Scale(wide / 64, gone, factor=64.0)
        return _Scale(wide, gone)
    return _Scale(plain, gone)


def _infinities(numbers: AnyArray, gone: AnyArray) -> dict[str, int]:
    """How many values are infinite, by sign."""
    if numbers.dtype.kind != "f":
        return {}
    counts = {"+inf": int((np.isposinf(numbers) & ~gone).sum()), "-inf": int((np.isneginf(numbers) & ~gone).sum())}
    return {name: count for name, count in counts.items() if count}


def _colouring(scale: _Scale, known: AnyArray) -> tuple[Any, Any]:
    """The colours, and which value has which."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, Normalize

    name = theme.current().values
    if scale.names is not None:
        count = len(scale.names)
        if count <= _CATEGORIES_MAX:
            listed = colormaps["tab20"].colors if count > 10 else colormaps["tab10"].colors  # type: ignore[attr-defined]
            listed = [listed[place % len(listed)] for place in range(count)]
            return ListedColormap(listed), Normalize(-0.5, count - 0.5)
    low, high = float(known.min()), float(known.max())
    if low == high:
        room = max(abs(low) * 1e-3, 0.5) if abs(low) < 1e300 else abs(low) * 1e-3
        low, high = low - room, high + room
    return colormaps[name], Normalize(low, high)


def _bar(axes: "Axes", bar: "Axes", made: Any, image: Image, scale: _Scale, known: AnyArray) -> None:
    """The colour bar, as tall as the image, from the least value to the greatest, both written."""
    shade = theme.current()
    held: Any = axes.figure
    drawn = held.colorbar(made, cax=bar)
    drawn.outline.set_edgecolor(shade.line)
    bar.set_facecolor(shade.ground)
    low, high = known.min(), known.max()
    if scale.names is not None and len(scale.names) <= _CATEGORIES_MAX:
        ticks, texts = list(range(len(scale.names))), [_short(name) for name in scale.names]
    else:
        ticks = _ticks(low, high, made.norm)
        texts = _texts(image.attr.dtype, ticks, scale)
    drawn.set_ticks([float(tick) for tick in ticks], labels=[text.replace("$", r"\$") for text in texts])
    bar.tick_params(colors=shade.text, labelsize=8)
    _widen(held, max(map(len, texts)) * 0.075 - 0.6)
    bar.set_ylabel(image.title + (" (one value)" if low == high else ""), color=shade.text, fontsize=9)


def _widen(figure: Any, inches: float) -> None:
    """Gives a figure more room at its right, so that long texts beside the colour bar are whole."""
    if inches <= 0:
        return
    wide, tall = figure.get_size_inches()
    part = wide / (wide + inches)
    figure.set_size_inches(wide + inches, tall)
    for axes in figure.axes:
        place = axes.get_position()
        axes.set_position((place.x0 * part, place.y0, place.width * part, place.height))


def _ticks(low: Any, high: Any, norm: Any) -> list[Any]:
    """The least value, round ones between, the greatest."""
    from matplotlib.ticker import MaxNLocator

    if low == high:
        return [low.item()]
    whole = isinstance(low, np.integer)
    between = MaxNLocator(nbins=6, integer=whole).tick_values(float(low), float(high))
    room = (float(high) - float(low)) * 0.06
    inner = [tick for tick in between if float(low) + room < tick < float(high) - room]
    return [low.item(), *((int(tick) for tick in inner) if whole else inner), high.item()]


def _texts(dtype: str, ticks: Sequence[Any], scale: _Scale) -> list[str]:
    """What stands at ticks, with as many digits as tell them from one another."""
    if scale.names is not None:
        return [_short(scale.names[int(tick)]) for tick in ticks]
    if datatype.is_time(dtype):
        return [time_label(dtype, tick, None) for tick in ticks]
    if all(isinstance(tick, int) for tick in ticks):
        return [f"{tick:,}" if abs(tick) < 10**12 else f"{tick}" for tick in ticks]
    values = [float(tick) * scale.factor for tick in ticks]
    for digits in range(4, 18):
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) == len(texts) and all(_is_near(float(t), v) for t, v in zip(texts, values, strict=True)):
            return texts
    return [repr(value) for value in values]


def _is_near(text: float, value: float) -> bool:
    return text == value or abs(text - value) <= 5e-4 * abs(value)


def _short(text: str) -> str:
    return text if len(text) <= 16 else f"{text[:15]}…"


def _cover(axes: "Axes", image: Image, gone: AnyArray, shown: dict[str, Any], infinite: dict[str, int]) -> None:
    """Covers cells without a value by a colour of their own, and says in a legend below what they are."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    shade = theme.current()
    empty = np.zeros(gone.shape, bool) if image.unwritten is None else image.unwritten
    missing = gone & ~empty
    codes = np.where(empty, 0, 1)
    if empty.any() or missing.any():
        colours = ListedColormap([shade.unwritten, shade.missing])
        over = np.ma.MaskedArray(codes, mask=~(empty | missing))
        axes.imshow(over, cmap=colours, vmin=0, vmax=1, interpolation="nearest", zorder=1, **shown)
    keys: list[Any] = []
    if empty.any():
        keys.append(Patch(facecolor=shade.unwritten, edgecolor=shade.line, label=f"unwritten: {empty.sum():,}"))
    if missing.any():
        name = missing_name(image.attr, image.values)
        keys.append(Patch(facecolor=shade.missing, edgecolor=shade.line, label=f"{name}: {missing.sum():,}"))
    for name, count in infinite.items():
        end = "greatest" if name == "+inf" else "least"
        keys.append(Patch(facecolor="none", edgecolor="none", label=f"{name}: {count:,}, in the colour of the {end}"))
    legend(axes, keys)


def legend(axes: "Axes", keys: Sequence[Any]) -> None:
    """Writes what colours mean below a picture; nothing where there are none."""
    if keys:
        held: Any = axes.figure
        held.legend(
            handles=keys, loc="lower left", ncols=len(keys), fontsize=9, labelcolor=theme.current().text,
            frameon=False, borderaxespad=0.3,
        )  # fmt: skip


def missing_name(attr: Attr, values: AnyArray) -> str:
    """What cells without a value are: null, NaN, NaT, or several of these."""
    plain = np.ma.getdata(values)
    names = ["null"] if attr.nullable else []
    if plain.dtype.kind == "f":
        names.append("NaN")
    elif plain.dtype.kind in "mM":
        names.append("NaT")
    return " or ".join(names) or "no category"
