"""The colours of pictures: a dark theme and a light one."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..base.arguments import known


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by what they are for."""

    ground: str
    """Behind everything."""
    text: str
    heading: str
    line: str
    """Frames and grids."""
    unwritten: str
    missing: str
    """Cells that are null, NaN or NaT."""
    colours: tuple[str, ...]
    """Densities and heat maps, from few to many."""
    values: str
    """The name of the colours of values, as matplotlib has it."""


DARK = Theme(
    "#0a1020", "#c9d6e8", "#ffffff", "#2b3a55", "#33415c", "#5fd068",
    ("#0a1020", "#10284a", "#14507c", "#1c86a8", "#3fc1b0", "#b7ea9c", "#fff6c8", "#ffffff"), "magma",
)  # fmt: skip
LIGHT = Theme(
    "#ffffff", "#2b3440", "#10161f", "#b8c2cf", "#d9dee5", "#e05780",
    ("#ffffff", "#e3f1ee", "#b5dfd6", "#6fc0bb", "#2c93a3", "#17698a", "#124167", "#0a1f3d"), "viridis",
)  # fmt: skip
THEMES = {"dark": DARK, "light": LIGHT}
DEFAULT = "dark"

_current: ContextVar[Theme] = ContextVar("theme", default=DARK)


def current() -> Theme:
    """The theme of the picture that is being drawn."""
    return _current.get()


@contextmanager
def using(name: str) -> Iterator[Theme]:
    """Draws with the theme of this name; an `InputError` if there is none."""
    known("theme", name, tuple(THEMES))
    token = _current.set(THEMES[name])
    try:
        yield THEMES[name]
    finally:
        _current.reset(token)
