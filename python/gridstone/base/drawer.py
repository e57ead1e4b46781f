"""What draws handles. Their methods lie below the packages that draw, which the root names here."""

from collections.abc import Callable
from typing import Any

from .html import Markup

Drawer = Callable[..., Any]
_DRAWERS: dict[str, Drawer] = {}


def name_drawer(kind: str, drawer: Drawer) -> None:
    """Names what draws handles of a kind: "array" or "result"; or "thumbnail", small pictures of either."""
    _DRAWERS[kind] = drawer


def draw(kind: str, handle: Any, target: Any, **options: Any) -> Any:
    """Draws a handle, as its kind is drawn."""
    return _DRAWERS[kind](handle, target, **options)


class Allowance:
    """What the pictures of one handle that is shown may still unpack, in bytes."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, cost: int) -> bool:
        """Takes what a picture costs; False, and nothing is taken, where less is left."""
        if cost > self.left:
            return False
        self.left -= cost
        return True


def thumbnail(handle: Any, allowance: Allowance | None = None) -> Markup:
    """A small picture of an array or a result; empty where there is none. It raises nothing.

    `allowance`: what it may take; None: what the options allow for one handle.
    """
    found: Markup = _DRAWERS["thumbnail"](handle, allowance)
    return found
