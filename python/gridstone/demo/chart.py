"""A chart: heights of land and depths of water in metres, and how it looks from above."""

import numpy as np

from ..column.datatype import AnyArray
from .sea import terrain

LIT = np.int16(32_000)
"""The height that marks a light."""

_STOPS = (-1.0, -0.45, -0.12, -0.015, 0.0, 0.03, 0.22, 0.5, 0.78, 1.0)
_COLOURS = (
    "#050b1e",
    "#0b2347",
    "#15507a",
    "#3a9bb0",
    "#d8cfa0",
    "#8fae6b",
    "#4f7d4a",
    "#7c6f52",
    "#b9b0a4",
    "#ffffff",
)


def heights(side: int, seed: int) -> AnyArray:
    """(side, side) int16: metres above the water, depths below 0."""
    ground = terrain(side, side, seed, 1.95)
    ground -= np.quantile(ground, 0.55)
    above, below = ground.max(), -ground.min()
    metres = np.where(ground > 0, np.maximum(ground / above, 0) ** 1.35 * 2_400, ground / below * 3_800)
    made: AnyArray = metres.astype(np.int16)
    return made


def lights(ground: AnyArray, count: int, seed: int) -> tuple[AnyArray, AnyArray]:
    """Rows and columns of `count` different land cells at random, the more likely the lower they lie."""
    random = np.random.default_rng(seed)
    town = terrain(ground.shape[0], ground.shape[1], seed + 1, 1.5)
    weights = np.where(ground > 0, np.exp(-np.maximum(ground, 0) / 420.0) * np.exp(1.25 * town), 0.0).ravel()
    # The smallest of exponentials scaled by weights: sampling without replacement in one pass (Efraimidis, Spirakis).
    with np.errstate(divide="ignore"):
        keys = random.exponential(size=weights.size) / weights
    chosen = np.argpartition(keys, count)[:count]
    rows, columns = np.unravel_index(chosen, ground.shape)
    return rows, columns


def picture(values: AnyArray, side: int = 1000) -> AnyArray:
    """(n, n, 3) floats: tinted by height, lit from the north-west; cells that are `LIT` glow."""
    from matplotlib.colors import LinearSegmentedColormap

    lit = values == LIT
    ground = _pooled(np.where(lit, 40, values).astype(np.float32), side)
    scaled = np.where(ground > 0, ground / 2_400, ground / 3_800)
    tint = LinearSegmentedColormap.from_list("chart", list(zip([(s + 1) / 2 for s in _STOPS], _COLOURS, strict=True)))
    down, across = np.gradient(ground)
    shade = np.clip(0.86 + (across + down) / np.where(ground > 0, 84, 520), 0.35, 1.3)
    colour = np.clip(tint((scaled + 1) / 2)[..., :3] * shade[..., None], 0, 1)
    made: AnyArray = _glowing(colour, _pooled(lit.astype(np.float32), side)) if lit.any() else colour
    return made


def _pooled(values: AnyArray, side: int) -> AnyArray:
    """Means of square blocks, so that about `side` of them lie side by side."""
    step = max(1, values.shape[0] // side)
    edge = values.shape[0] // step * step
    made: AnyArray = values[:edge, :edge].reshape(edge // step, step, edge // step, step).mean(axis=(1, 3))
    return made


def _glowing(colour: AnyArray, lit: AnyArray) -> AnyArray:
    """Night falls a little, and the lights shine."""
    halo = lit
    for axis in (0, 1):
        halo = np.mean([np.roll(halo, step, axis) for step in range(-3, 4)], axis=0)
    dusk = colour * np.array([0.34, 0.37, 0.52])
    warm = np.array([1.0, 0.66, 0.27])
    point = np.clip(lit * 2.4, 0, 1)[..., None]
    glow = np.clip(halo * 2.6, 0, 0.75)[..., None] * warm
    made: AnyArray = np.clip((dusk + glow) * (1 - point) + point * np.array([1.0, 0.9, 0.66]), 0, 1)
    return made
