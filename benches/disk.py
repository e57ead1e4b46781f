"""Files on disk: making them durable, counting their bytes, copying a store outside the clock."""

import os
import shutil
from pathlib import Path


def sync(path: Path) -> None:
    """fsync of one file or directory."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """fsync of every file and directory below `folder`, of itself, and of the directory that names it."""
    for root, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(root, name))
        sync(Path(root))
    sync(folder.parent)


def size_bytes(folder: Path) -> int:
    """The lengths of all files below `folder`."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def copy(source: Path, target: Path) -> None:
    """A durable copy: nothing of it is left for a later fsync to write."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    sync_tree(target)
