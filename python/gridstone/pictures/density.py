"""Cells counted in a raster, as brightness with a colour bar of counts."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..column.datatype import AnyArray
from . import theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap


def glow() -> "Colormap":
    """The colours of densities, from few to many."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("gridstone", theme.current().colours)


def counted(places: "list[AnyArray]", ranges: "list[tuple[float, float]]", bins: tuple[int, ...]) -> AnyArray:
    """The bin of each cell, numbered from 0 along x and then y."""
    found = np.zeros(len(places[0]), np.int64)
    for values, (low, high), count in zip(places, ranges, bins, strict=True):
        # By a factor, since a quotient would put whole numbers into the bin before theirs.
        factor = count / (high - low)
        with np.errstate(invalid="ignore"):
            away = values - low
            step = np.floor(away * factor if np.isfinite(factor) else away / (high - low) * count)
        found = found * count + np.clip(np.nan_to_num(step), 0, count - 1).astype(np.int64)
    return found


def draw(axes: "Axes", bar: "Axes | None", counts: AnyArray, extent: tuple[float, ...], aspect: float) -> None:
    """Draws counts, [y, x] with the first row below, and the colour bar."""
    light, cap = _lit(counts)
    ends: Any = extent
    shown = axes.imshow(
        light, origin="lower", extent=ends, cmap=glow(), vmin=0, vmax=1, aspect=aspect or "auto",
        interpolation="bilinear",
    )  # fmt: skip
    if bar is None:
        return
    if cap == 0:
        bar.remove()
        return
    shade = theme.current()
    held: Any = axes.figure
    drawn = held.colorbar(shown, cax=bar)
    drawn.outline.set_edgecolor(shade.line)
    most = int(counts.max())
    ticks = [0, *(count for power in range(12) if (count := 10**power) < 0.8 * cap or count == 1), cap]
    ticks = sorted({int(tick) for tick in ticks if tick <= cap})
    texts = [f"{tick:,}" for tick in ticks]
    if most > ticks[-1]:
        texts[-1] = f"≥ {texts[-1]}"
    drawn.set_ticks([float(_light(np.array(tick), cap)) for tick in ticks], labels=texts)
    bar.tick_params(colors=shade.text, labelsize=8)
    bar.set_ylabel(f"cells at a point of the picture (at most {most:,})", color=shade.text, fontsize=9)


def _light(counts: AnyArray, cap: float) -> AnyArray:
    """The brightness of counts: logarithmic."""
    lit = np.minimum(np.log1p(counts) / np.log1p(cap), 1.0) ** 0.8
    made: AnyArray = 0.1 * (lit > 0) + 0.9 * lit
    return made


def _lit(counts: AnyArray) -> tuple[AnyArray, float]:
    """Counts as brightness, with a faint glow around what is bright, and the count from which on all is brightest."""
    filled = counts[counts > 0]
    if filled.size == 0:
        return counts.astype(np.float64), 0.0
    cap = float(np.ceil(np.quantile(filled, 0.995)))
    light = _light(counts, cap)
    soft: Any = light
    for axis in (0, 1):
        # What is bright at one side does not glow at the other one.
        room = np.pad(soft, [(3, 3) if place == axis else (0, 0) for place in (0, 1)])
        shifted = [np.take(room, range(step, step + soft.shape[axis]), axis) for step in range(7)]
        soft = sum(w * part for w, part in zip((0.03, 0.09, 0.22, 0.32, 0.22, 0.09, 0.03), shifted, strict=True))
    return np.clip(np.maximum(light, 1.0 * soft), 0, 1), cap
