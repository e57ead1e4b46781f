"""Files on disk: making them durable, counting their bytes, copying them, dropping them from the page cache."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

_DROP = Path("/proc/sys/vm/drop_caches")


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


def forget(folder: Path) -> None:
    """Drops the pages of a store from the page cache: of everything if that is permitted, else of its files."""
    os.sync()
    with suppress(OSError):
        _DROP.write_text("3")
        return
    for path in (path for path in folder.rglob("*") if path.is_file()):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def how_it_forgets() -> str:
    """What `forget` can do here, for the disclosure."""
    if os.access(_DROP, os.W_OK):
        return (
            "sync, then 3 into /proc/sys/vm/drop_caches: file pages, directory entries and inodes of the whole machine"
        )
    return "fsync and posix_fadvise(DONTNEED) of every file of the store; directory entries and inodes stay"
