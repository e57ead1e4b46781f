"""Names of arrays that hold a path in a store: `'store.gs:/path'`."""

import re
from collections.abc import Iterator

_PATH = re.compile(r":/(?!/)")
"""What stands between a store and a path in it; what follows it is the path, without its first slash."""


def splits(name: str) -> Iterator[tuple[str, str]]:
    """The stores and paths that a name can mean, where it holds a path."""
    for found in _PATH.finditer(name):
        if found.start() > 0:
            yield name[: found.start()], "/" + name[found.end() :].strip("/")


def target(name: str) -> tuple[str, str]:
    """The store and path that a name in `to=` means."""
    return next(splits(name), (name, "/"))
