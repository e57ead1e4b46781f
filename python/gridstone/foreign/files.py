"""Which files and folders are meant, in which order, and which folders a store has to be allowed to read them in."""

import glob
import os
import re
from collections.abc import Sequence
from typing import Any

from ..base.arguments import is_iterable
from ..base.printable import brief
from ..errors import InputError, NotFoundError, UnsupportedError

_MAGIC = re.compile(r"[*?\[]")
_ZARR = ("zarr.json", ".zgroup", ".zarray")


def any_source(what: str, value: Any) -> None:
    """Accepts what `sources_of` looks at one by one."""


def sources_of(given: Any) -> tuple[list[str], bool]:
    """The files, and folders of Zarr, that are meant, and whether their order is the caller's.

    The order of a list is, that of a pattern is not.

    Raises:
        InputError: no file is named.
        NotFoundError: one is not there, or a pattern matches none.
        UnsupportedError: a URL.
    """
    if isinstance(given, str | os.PathLike):
        text = os.fspath(given)
        if not isinstance(text, str) or not text:
            raise InputError(f"a source is the path of a file, not {brief(given)}")
        if "://" in text and not text.startswith("file://"):
            raise UnsupportedError(f"{brief(text)}: sources are local files in this version; copy it first")
        text = text.removeprefix("file://")
        if os.path.exists(text):
            return [text], True
        if _MAGIC.search(text):
            found = [one for one in glob.glob(text, recursive=True) if os.path.isfile(one) or _is_zarr(one)]
            if not found:
                raise NotFoundError(f"no file matches {brief(text)}")
            return sorted(found, key=_natural), False
        raise NotFoundError(f"there is no file {brief(text)}")
    if not is_iterable(given):
        raise InputError(f"sources are a path, a pattern, or a list of paths, not {brief(given)}")
    found = [path for one in given for path in sources_of(one)[0]]
    if not found:
        raise InputError("no source is named")
    return found, True


def _is_zarr(path: str) -> bool:
    return any(os.path.isfile(os.path.join(path, name)) for name in _ZARR)


def folder_of(path: str) -> str:
    """The folder that has to be allowed for a file to be read: its own, and of a folder that itself."""
    real = os.path.realpath(path)
    return real if os.path.isdir(real) else os.path.dirname(real)


def _natural(path: str) -> list[tuple[int, str]]:
    """A key by which `run_2` comes before `run_10`."""
    parts = re.split(r"(\d+)", path)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def located(store: str, uri: str) -> str:
    """The path of a source as a store keeps it.

    Raises:
        UnsupportedError: it lies in a bucket.
    """
    path = uri.removeprefix("file://")
    if "://" in path:
        raise UnsupportedError(f"{uri}: files in buckets cannot be indexed in this version")
    return path if os.path.isabs(path) else os.path.join(_folder_of(store.removeprefix("file://")), path)


def folders_to_allow(uri: str, paths: Sequence[str], allowed: Sequence[str] = ()) -> list[str]:
    """The folders of files that lie neither in the folder of the store, nor in an allowed one, nor below; each once."""
    trusted = [os.path.realpath(one) for one in allowed if "://" not in one]
    beside = None if "://" in uri and not uri.startswith("file://") else _folder_of(uri.removeprefix("file://"))
    found: list[str] = []
    for path in paths:
        folder = folder_of(path)
        known = trusted if beside is None else [*trusted, beside]
        inside = any(os.path.commonpath([one, folder]) == one for one in known)
        if not inside and folder not in found:
            found.append(folder)
    return found


def _folder_of(store: str) -> str:
    return os.path.realpath(os.path.dirname(os.path.abspath(store)))
