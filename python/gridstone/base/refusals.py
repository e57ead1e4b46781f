"""What a handle that may not write says."""

from ..errors import AccessError


def read_only(what: str, past: int | None, to: str = "write") -> AccessError:
    """The error of a write through a handle that was opened for reading, or at the version `past`."""
    if past is None:
        return AccessError(f'{what} is opened for reading (mode="r"); open it with mode="r+" to {to}')
    return AccessError(
        f"{what} is opened at version {past}, which is the past and cannot be written; open it without a version, "
        f'with mode="r+", to {to}'
    )
