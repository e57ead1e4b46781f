"""What a handle may do, by its mode; what the modes of h5py, Zarr and files mean here."""

from typing import Any

from ..base.arguments import among
from ..base.printable import brief
from ..errors import InputError

_MAKES = "gridstone.create(uri, schema) makes an array, gridstone.array(uri, values) one of values"
_NEW = f"To make what is not there yet: {_MAKES}; both refuse to overwrite"
_HINTS = {
    "w": f"To begin anew: {_MAKES}; overwrite=True puts it in the place of one that is there, and "
    "gridstone.delete(uri) removes a store",
    "w-": _NEW,
    "x": _NEW,
    "a": f'To write to what is there: mode="r+". {_MAKES}, and gridstone.group(uri, mode="a") a group; '
    "gridstone.exists(uri, path) says whether it is there",
    "r": 'There are no binary files and texts here: "r" reads, "r+" writes too',
    "rw": 'To read and write: mode="r+"',
}


def check_mode(call: str, mode: Any, modes: tuple[str, ...]) -> None:
    """An `InputError` with what the mode of other libraries is here, unless it is one of `modes`."""
    if among(mode, modes):
        return
    letters = mode.translate(str.maketrans("", "", "bt+")) if isinstance(mode, str) else ""
    more = f". {_HINTS[letters]}" if letters in _HINTS else ""
    raise InputError(f"mode= of {call}() is {' or '.join(map(repr, modes))}, not {brief(mode)}{more}")
