"""Entries of groups: arrays and groups by name and path."""

from typing import NamedTuple

from .. import _native


class Entry(NamedTuple):
    """What a store holds at one place."""

    name: str
    path: str
    kind: str
    """ "array" or "group"."""


def joined(path: str, name: str) -> str:
    """The path of `name` in the group at `path`."""
    return f"{path.rstrip('/')}/{name.strip('/')}"


def entries(native: "_native.Group") -> list[Entry]:
    """The arrays and groups in it at its version, by name."""
    return [Entry(name, joined(native.path, name), kind) for name, kind in native.children()]
