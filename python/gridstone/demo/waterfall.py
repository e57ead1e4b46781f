"""The picture of the appends: spectra as they lie on their axis, what a reader saw by and by, and a few frames."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import plot
from ..column.datatype import AnyArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDE, _TALL = 12.0, 7.2
_COLOURS = ("#5ee0c8", "#ffb45e", "#c79bff")
_SEA = ("#04101f", "#0b2f52", "#1c86a8", "#7fe0cf", "#f4fff2")


def draw(
    spectra: AnyArray,
    senders: AnyArray,
    looks: tuple[Sequence[float], Sequence[int]],
    frames: Sequence[tuple[int, AnyArray]],
    target: Path,
) -> Path:
    """Writes the picture.

    Args:
        spectra: (rows, bins), as they lie on the axis.
        senders: (rows,): which process sent each row.
        looks: seconds, and how many frames the reader saw then.
        frames: numbers of frames, and the frames.
        target: the file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDE, _TALL), dpi=150, facecolor=plot.INK)
    _waterfall(_axes(figure, (0.07, 0.09, 0.42, 0.77)), spectra, senders)
    _stairs(_axes(figure, (0.575, 0.47, 0.40, 0.39)), looks)
    _strip(figure, frames)
    figure.suptitle("Appended while others append and read", color="white", fontsize=14, y=0.975)
    return plot.save(figure, target)


def _axes(figure: "Figure", place: tuple[float, float, float, float]) -> "Axes":
    axes = figure.add_axes(place)
    axes.set_facecolor(plot.INK)
    axes.tick_params(colors=plot.PAPER, labelsize=8)
    for spine in axes.spines.values():
        spine.set_color("#2b3a55")
    return axes


def _waterfall(axes: "Axes", spectra: AnyArray, senders: AnyArray) -> None:
    """Each row in the colour of the process that sent it, as bright as its power."""
    from matplotlib.colors import to_rgb
    from matplotlib.lines import Line2D

    light = np.sqrt(spectra / np.quantile(spectra, 0.998)).clip(0, 1)[..., None]
    colours = np.array([to_rgb(colour) for colour in _COLOURS])[senders][:, None, :]
    ink = np.array(to_rgb(plot.INK)) * (1 - light)
    white = np.clip(light - 0.72, 0, 1) * 1.6
    image = np.clip(ink + (colours * light) * (1 - white) + white, 0, 1)
    axes.imshow(image, aspect="auto", interpolation="nearest", origin="lower")
    axes.set_xlabel("frequency bin", color=plot.PAPER)
    axes.set_ylabel("row of the array", color=plot.PAPER)
    count = int(senders.max()) + 1
    axes.set_title(f"{count} processes, one axis: {len(spectra):,} rows, every one once", color=plot.PAPER, fontsize=11)
    axes.legend(
        [Line2D([], [], color=colour, lw=4) for colour in _COLOURS[:count]],
        [f"process {number + 1}" for number in range(count)],
        loc="lower right", fontsize=8, labelcolor=plot.PAPER, facecolor=plot.INK, edgecolor="#2b3a55",
    )  # fmt: skip


def _stairs(axes: "Axes", looks: tuple[Sequence[float], Sequence[int]]) -> None:
    """How long the array was each time that the reader looked."""
    seconds, frames = looks
    axes.step(seconds, frames, where="post", color="#3fc1b0", lw=1.6)
    axes.plot(seconds, frames, "o", color="#fff6c8", ms=3.5)
    axes.fill_between(seconds, frames, step="post", color="#3fc1b0", alpha=0.15)
    axes.set_xlim(0, max(seconds[-1], 1e-3) * 1.03)
    axes.set_ylim(0, max(frames) * 1.08)
    axes.set_xlabel("seconds", color=plot.PAPER)
    axes.set_ylabel("frames", color=plot.PAPER)
    axes.set_title("What an open reader saw while frames came", color=plot.PAPER, fontsize=11)


def _strip(figure: "Figure", frames: Sequence[tuple[int, AnyArray]]) -> None:
    """Frames side by side, below."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("sea", _SEA)
    low, high = (end([end(frame) for _, frame in frames]) for end in (np.min, np.max))
    columns, gap = 3, 0.012
    wide = (0.40 - gap * (columns - 1)) / columns
    tall = wide * _WIDE / _TALL * frames[0][1].shape[0] / frames[0][1].shape[1]
    for place, (number, frame) in enumerate(frames):
        left = 0.575 + place % columns * (wide + gap)
        axes = figure.add_axes((left, 0.355 - (place // columns + 1) * (tall + 0.028), wide, tall))
        axes.imshow(frame, cmap=colours, vmin=low, vmax=high, interpolation="bicubic", origin="lower")
        axes.set_title(f"frame {number}", color=plot.PAPER, fontsize=8, pad=3)
        axes.set_axis_off()
