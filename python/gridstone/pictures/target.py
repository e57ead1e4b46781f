"""Where a picture goes, and in which format: checked before anything is read or drawn."""

import os
from pathlib import Path

from ..base.printable import brief
from ..errors import InputError

Target = str | os.PathLike[str]

FORMATS = {
    ".png": "png", ".svg": "svg", ".pdf": "pdf", ".jpg": "jpeg", ".jpeg": "jpeg", ".tif": "tiff", ".tiff": "tiff",
    ".webp": "webp",
}  # fmt: skip
"""The formats by the end of the file's name."""


def checked_target(target: Target) -> Path:
    """The path of a picture.

    Raises:
        InputError: the name ends in no known format, or there is no such folder.
    """
    path = Path(os.fspath(target))
    if path.suffix.lower() not in FORMATS:
        found = f"{path.suffix!r} is none" if path.suffix else "it has none"
        raise InputError(
            f"the end of a picture's name says its format, and {found}: {brief(path.name)}; use one of "
            f"{', '.join(FORMATS)}"
        )
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into; create it first")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name a file in it")
    return path
