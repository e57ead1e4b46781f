"""What draws handles. Their methods lie below the packages that draw, which the root names here."""

from collections.abc import Callable
from typing import Any

Drawer = Callable[..., Any]
_DRAWERS: dict[str, Drawer] = {}


def name_drawer(kind: str, drawer: Drawer) -> None:
    """Names what draws handles of a kind: "array" or "result"."""
    _DRAWERS[kind] = drawer


def draw(kind: str, handle: Any, target: Any, **options: Any) -> Any:
    """Draws a handle, as its kind is drawn."""
    return _DRAWERS[kind](handle, target, **options)
