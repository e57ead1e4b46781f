"""Figures in the colours of a theme, and how they are written."""

import io
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from . import theme
from .target import FORMATS

DPI = 150
WIDE = 12.0
_BESIDE, _BAR, _ABOVE = 1.15, 1.55, 0.85
"""Inches of what stands around the axes: names at the left, the colour bar at the right, the title above."""


class Picture(Figure):
    """A figure of matplotlib that a notebook shows where it is the value of a cell."""

    def _repr_png_(self) -> bytes:
        held = io.BytesIO()
        FigureCanvasAgg(self).print_figure(held, dpi=self.dpi / 1.5, facecolor=self.get_facecolor(), format="png")
        return held.getvalue()


def canvas(title: str, note: str, ratio: float, *, below: float = 0.0) -> "tuple[Picture, Axes, Axes]":
    """A figure with axes `ratio` times as tall as wide, at most 9 inches, and axes of a colour bar beside them.

    Args:
        title: above the picture.
        note: what the picture shows, in a line below the title.
        ratio: height by width.
        below: inches for a legend below the axes.
    """
    shade = theme.current()
    wide = min(WIDE - _BESIDE - _BAR, 9.0 / ratio)
    tall = wide * ratio
    foot = 0.65 + below
    size = (max(wide + _BESIDE + _BAR, 6.0), tall + foot + _ABOVE)
    figure = Picture(figsize=size, dpi=DPI, facecolor=shade.ground)
    place = (_BESIDE / size[0], foot / size[1], wide / size[0], tall / size[1])
    axes = figure.add_axes(place)
    bar = figure.add_axes(((_BESIDE + wide + 0.15) / size[0], place[1], 0.18 / size[0], place[3]))
    fit = size[0] * 10.5
    figure.text(0.1 / size[0], 1 - 0.3 / size[1], _cut(title, fit / 1.25), color=shade.heading, fontsize=13)
    figure.text(0.1 / size[0], 1 - 0.56 / size[1], _cut(note, fit * 1.15), color=shade.text, fontsize=9)
    style(axes)
    style(bar)
    return figure, axes, bar


def _cut(text: str, count: float) -> str:
    """Text of at most as many characters, without formulas."""
    text = text if len(text) <= count else f"{text[: int(count) - 1]}…"
    return text.replace("$", r"\$")


def style(axes: Axes) -> None:
    """Gives axes the colours of the theme."""
    shade = theme.current()
    axes.set_facecolor(shade.ground)
    axes.tick_params(colors=shade.text, labelsize=8)
    for spine in axes.spines.values():
        spine.set_color(shade.line)


def write(figure: Figure, path: Path) -> Path:
    """Writes a figure in the format that the end of its name asks for, the same bytes each time."""
    form = FORMATS[path.suffix.lower()]
    told: dict[str, dict[str, Any]] = {
        "png": {"Software": "gridstone"}, "svg": {"Date": None}, "pdf": {"CreationDate": None},
    }  # fmt: skip
    FigureCanvasAgg(figure).print_figure(
        path, dpi=DPI, facecolor=figure.get_facecolor(), format=form, metadata=told.get(form)
    )
    return path
