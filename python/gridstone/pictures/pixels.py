"""Pixels of small pictures as PNG and as HTML, without matplotlib."""

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from ..base import html
from ..column.datatype import AnyArray
from . import theme

SIDE = 160
"""The longer side of a picture on the screen, in pixels."""

_VALUES = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725")
_LINE = "#2c93a3"
_NONE = (184, 194, 207, 255)
"""Cells that are null, NaN or NaT."""
_GAP = (0, 0, 0, 0)
"""Unwritten cells: what lies behind the picture shows."""


def ramp(colours: Sequence[str]) -> AnyArray:
    """256 colours between those given, as rows of red, green, blue and full opacity."""
    ends = np.array([[int(one[place : place + 2], 16) for place in (1, 3, 5)] for one in colours], np.float64)
    along = np.linspace(0, len(ends) - 1, 256)
    channels = [np.interp(along, np.arange(len(ends)), ends[:, channel]) for channel in range(3)]
    return np.column_stack([*channels, np.full(256, 255.0)]).round().astype(np.uint8)


def of_numbers(numbers: AnyArray, gone: AnyArray, unwritten: AnyArray) -> AnyArray:
    """[y, x, 4]: colours of numbers by their place between the least and the greatest; a few outliers lie beyond."""
    known = numbers[~gone & ~unwritten].astype(np.float64)
    finite = known[np.isfinite(known)]
    low, high = np.quantile(finite, (0.005, 0.995)) if finite.size else (0.0, 1.0)
    with np.errstate(all="ignore"):
        share = (numbers.astype(np.float64) - low) / ((high - low) or 1.0)
    place = (np.clip(np.nan_to_num(share, nan=0.0, posinf=1.0, neginf=0.0), 0, 1) * 255).astype(np.uint8)
    return covered(ramp(_VALUES)[place], gone, unwritten)


def of_counts(counts: AnyArray) -> AnyArray:
    """[y, x, 4]: colours of counts, logarithmic, from none to the greatest."""
    light = np.log1p(counts) / np.log1p(max(float(counts.max(initial=0)), 1.0))
    place = (np.clip(light + 0.15 * (counts > 0), 0, 1) * 255).astype(np.uint8)
    made: AnyArray = ramp(theme.DARK.colours)[place]
    return made


def covered(colours: AnyArray, gone: AnyArray, unwritten: AnyArray) -> AnyArray:
    """The colours, with those of cells without a value in their places."""
    made = colours.copy()
    made[gone] = _NONE
    made[unwritten] = _GAP
    return made


def png(colours: AnyArray) -> bytes:
    """[y, x, 4] as a PNG of eight bits a channel (RFC 2083)."""
    rows, columns = colours.shape[:2]
    lines = np.zeros((rows, 1 + 4 * columns), np.uint8)  # Each line begins with its filter, which is none.
    lines[:, 1:] = colours.reshape(rows, 4 * columns)
    head = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )


def shown(colours: AnyArray, ratio: float, note: str) -> html.Markup:
    """A picture as HTML.

    Args:
        colours: [y, x, 4].
        ratio: height by width on the screen; it is kept between a quarter and four.
        note: what is said below; it is escaped.
    """
    ratio = min(4.0, max(0.25, ratio))
    wide = round(SIDE / max(1.0, ratio))
    data = base64.b64encode(png(colours)).decode("ascii")
    style = f"width:{wide}px;height:{max(1, round(wide * ratio))}px;max-width:none;image-rendering:pixelated"
    return _noted(f'<img alt="" style="{style}" src="data:image/png;base64,{data}"/>', note)


def line(values: AnyArray, note: str) -> html.Markup:
    """Numbers in a row as a line with gaps where they are NaN or infinite."""
    known = np.isfinite(values)
    if not known.any():
        return html.Markup()
    low, high = float(values[known].min()), float(values[known].max())
    x = np.linspace(2, SIDE - 2, len(values)) if len(values) > 1 else np.array([SIDE / 2])
    scaled = (np.where(known, values, low) / 4 - low / 4) / ((high / 4 - low / 4) or 1.0)
    y = 58 - 56 * scaled if high > low else np.full(len(values), 30.0)
    steps = [
        f"{'L' if place and known[place - 1] else 'M'}{x[place]:.1f} {y[place]:.1f}h0"
        for place in np.flatnonzero(known)
    ]
    path = f"<path d='{''.join(steps)}' fill='none' stroke='{_LINE}' stroke-width='1.5' stroke-linecap='round'></path>"
    return _noted(f"<svg width='{SIDE}' height='60' viewBox='0 0 {SIDE} 60'>{path}</svg>", note)


def bars(counts: AnyArray, note: str) -> html.Markup:
    """Counts in a row as bars."""
    wide, most = SIDE / max(1, len(counts)), max(float(counts.max(initial=0)), 1.0)
    boxes = [
        f"M{place * wide:.1f} 60v{-58 * counts[place] / most:.1f}h{wide:.1f}V60z" for place in np.flatnonzero(counts)
    ]
    path = f"<path d='{''.join(boxes)}' fill='{_LINE}'></path>"
    return _noted(f"<svg width='{SIDE}' height='60' viewBox='0 0 {SIDE} 60'>{path}</svg>", note)


def _noted(picture: str, note: str) -> html.Markup:
    return html.Markup(f"<div>{picture}</div><small>{html.escape(note)}</small>")
