"""What notebooks show beside texts: small pictures, and what these may cost."""

from dataclasses import dataclass, replace
from types import TracebackType

from ..base.arguments import checked
from ..base.printable import brief
from ..errors import InputError
from .settings import size_bytes

USUAL_BYTES = 32 * 2**20
"""What the pictures of one handle may unpack, unless it is said."""


@dataclass(frozen=True, slots=True)
class Showing:
    """The options of a process. Bytes that pictures of one handle may unpack, 0 for no pictures."""

    pictures: int = USUAL_BYTES
    remote_pictures: int = 0
    """The same, for stores and attached files that are reached over a network."""

    def limit(self, uri: str) -> int:
        """What the pictures of what lies there may unpack."""
        return self.remote_pictures if is_remote(uri) else self.pictures


_current = Showing()


def current() -> Showing:
    """The options as they are now."""
    return _current


def is_remote(uri: str) -> bool:
    """Whether a place is reached over a network."""
    return "://" in uri and not uri.startswith(("file://", "mem://"))


class Restored:
    """Options that are as they were before once a `with` block ends."""

    def __init__(self, before: Showing) -> None:
        self._before = before

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _current
        _current = self._before

    def __repr__(self) -> str:
        return f"<gridstone options: pictures={_current.pictures:,}, remote_pictures={_current.remote_pictures:,}>"


@checked()
def set_options(
    *, pictures: bool | int | str | None = None, remote_pictures: bool | int | str | None = None
) -> Restored:
    """Sets what notebooks show in this process, for good or for a `with` block.

    A small picture stands beside the text of an array, a group or a result. It is made of a bounded part of the
    data, and left out where it would take more.

    Args:
        pictures: False: none; True: the usual ones, which unpack at most 32 MiB for each handle that is shown; a size
            in bytes or as text ("4MiB"): another limit. None leaves it as it is.
        remote_pictures: the same for stores and attached files that are reached over a network; at first False.

    Returns:
        The options as they were, which come back at the end of a `with` block.

    Raises:
        InputError: a limit that is no size.

    Example:
        >>> with gs.set_options(pictures=False):
        ...     "<img" in a._repr_html_()
        False
        >>> "<img" in a._repr_html_()
        True
    """
    global _current
    before = _current
    told = {"pictures": pictures, "remote_pictures": remote_pictures}
    _current = replace(before, **{name: _bytes(name, value) for name, value in told.items() if value is not None})
    return Restored(before)


def _bytes(name: str, value: bool | int | str) -> int:
    if isinstance(value, bool):
        return USUAL_BYTES if value else 0
    if not isinstance(value, int | str):
        raise InputError(f'{name} is True, False, or a size such as "4MiB", not {brief(value)}')
    return size_bytes(value, name)
