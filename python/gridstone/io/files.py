"""Files to load from: patterns expanded, contents decompressed as a stream or into a temporary file."""

import bz2
import contextlib
import glob
import gzip
import lzma
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from ..base.arguments import is_iterable
from ..errors import AccessError, GridstoneError, InputError, NotFoundError, StorageError

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_SUFFIXES = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".bgz": "gzip",
    ".bz2": "bz2",
    ".xz": "xz",
    ".lzma": "xz",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".lz4": "lz4",
    ".zip": "zip",
}

_MEMBERS_SHOWN = 10


def expand(source: Any) -> list[Path]:
    """The files that `source` names: a path, a pattern (`*`, `?`, `[…]`, `**`), or several of them."""
    single = isinstance(source, str | bytes | os.PathLike) or hasattr(source, "read") or not is_iterable(source)
    given = [source] if single else list(source)
    files: list[Path] = []
    for item in given:
        path_of(item)
        text = os.fspath(item)
        if Path(text).is_file():
            files.append(Path(text))
            continue
        found = sorted(glob.glob(text, recursive=True)) if glob.has_magic(text) else []
        found = [name for name in found if Path(name).is_file()]
        if Path(text).is_dir():
            raise InputError(
                f"{text!r} is a folder; give the files in it: a pattern such as {text.rstrip('/') + '/*'!r}"
            )
        if Path(text).exists():
            raise InputError(
                f"{text!r} is a pipe or a device, which can be read once, and a load may look twice; write it to a "
                f"file first, as `gridstone load -` does"
            )
        if not found:
            raise NotFoundError(f"no file {text!r}; give a path, a pattern or a list of them")
        files += map(Path, found)
    if not files:
        raise NotFoundError("no files to load were given")
    return files


def path_of(given: Any) -> Path:
    """The path of a file; an `InputError` for what is none, such as a file that is open."""
    if isinstance(given, str) or (isinstance(given, os.PathLike) and isinstance(given.__fspath__(), str)):
        return Path(given)
    what = "an open file" if hasattr(given, "read") or hasattr(given, "write") else repr(given)
    raise InputError(
        f"files are named by their paths, found {what} ({type(given).__name__}); give its path, or write what it "
        f"holds to a file first"
    )


def delimiter_of(files: Sequence[Path]) -> str:
    """What separates values in CSV files, by their names: a tab in `.tsv` and `.tab`, in all others a comma."""
    tabs = {ending_of(file) in (".tsv", ".tab") for file in files}
    if len(tabs) > 1:
        raise InputError("some of the files are .tsv and some are not; give delimiter=, or load them one by one")
    return "\t" if True in tabs else ","


def shown(files: Sequence[Path]) -> str:
    """The files for messages."""
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def compression_of(file: Path) -> str | None:
    """How a file is compressed, by the end of its name."""
    return _SUFFIXES.get(file.suffix.lower())


def ending_of(file: Path) -> str:
    """The end of a file's name in small letters, without the one that says how it is compressed: ".csv"."""
    kind = compression_of(file)
    ending = (file.with_suffix("") if kind else file).suffix.lower()
    if kind == "zip" and not ending and file.is_file():
        with file.open("rb") as raw, readable(file), zipfile.ZipFile(raw) as archive:
            return Path(_member(file, archive).filename).suffix.lower()
    return ending


def _member(file: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The one file in an archive."""
    hidden = ("__MACOSX/",)
    found = [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith(hidden)]
    if len(found) != 1:
        names = [one.filename for one in found]
        more = f", … ({len(names)} in all)" if len(names) > _MEMBERS_SHOWN else ""
        held = ", ".join(map(repr, names[:_MEMBERS_SHOWN])) + more if names else "nothing"
        raise InputError(
            f"{file} holds {held}; unpack it, and give the files to load (a zip of one file is read as it is)"
        )
    if found[0].flag_bits & 1:
        raise InputError(f"{file} is a zip archive with a password; unpack it first")
    return found[0]


def opened(file: Path, raw: IO[bytes]) -> Any:
    """The stream of what `raw` holds, decompressed by what the file's name ends in."""
    kind = compression_of(file)
    if kind == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if kind == "bz2":
        return bz2.BZ2File(raw)
    if kind == "xz":
        return lzma.LZMAFile(raw)
    if kind == "zip":
        with readable(file):
            archive = zipfile.ZipFile(raw)
            return archive.open(_member(file, archive))
    if kind is not None:
        import pyarrow as pa

        return pa.CompressedInputStream(raw, kind)
    return raw


@contextlib.contextmanager
def readable(file: Path) -> Iterator[None]:
    """Turns what a broken compressed stream raises within the block into an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError) as error:
        raise InputError(f"{file} cannot be decompressed: {error}") from error


class Scratch:
    """A folder for what must lie in a plain file to be read in pieces; removed with `close`, or with the object."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._plain: dict[Path, Path] = {}
        self._count = 0

    def file(self, name: str) -> Path:
        """A path for a new file."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="gridstone-", ignore_cleanup_errors=True)
        self._count += 1
        return Path(self._folder.name) / f"{self._count}-{name}"

    def plain(self, file: Path) -> Path:
        """The file itself, or, where its name says that it is compressed, a decompressed copy of it."""
        if compression_of(file) is None:
            return file
        if file not in self._plain:
            copy = self.file(file.stem)
            with file.open("rb") as raw, copy.open("wb") as out, readable(file):
                shutil.copyfileobj(opened(file, raw), out, 1 << 20)
            self._plain[file] = copy
        return self._plain[file]

    def close(self) -> None:
        """Removes the folder."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def check_target(target: str | os.PathLike[str]) -> None:
    """An error now if `written` could not write the target later; nothing is left behind.

    Raises:
        InputError: the target is a folder.
        NotFoundError: its folder is not there.
        AccessError, StorageError: no file can be created there.
    """
    try:
        part = _part_of(_final(target))
        part.open("ab").close()
    except GridstoneError:
        raise
    except OSError as error:
        kind = AccessError if isinstance(error, PermissionError) else StorageError
        raise kind(f"{os.fspath(target)!r} cannot be written: {error}; give a path that can") from error
    part.unlink(missing_ok=True)


def _final(target: str | os.PathLike[str]) -> Path:
    final = path_of(target)
    if final.is_dir():
        raise InputError(f"{str(final)!r} is a folder; give the path of a file in it")
    if not final.parent.is_dir():
        raise NotFoundError(f"no folder {str(final.parent)!r} to write {final.name!r} into; create it first")
    return final


def _part_of(final: Path) -> Path:
    return final.with_name(final.name + ".part")


def written(target: str | os.PathLike[str], write: Callable[[Path], None]) -> Path:
    """Has `write` make a file beside the target and puts it in the target's place once it is whole."""
    final = _final(target)
    part = _part_of(final)
    try:
        write(part)
        part.replace(final)
    finally:
        part.unlink(missing_ok=True)
    return final
