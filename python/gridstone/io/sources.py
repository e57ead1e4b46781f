"""Files to load from: expanded, decompressed, and cut into blocks of whole CSV rows.

A block ends at a line break outside quotes. It knows the line it starts at, so that an error can name the line.
"""

import bz2
import codecs
import glob
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..errors import InputError, NotFoundError

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_BLOCKS_MAX = 16
_ROW_BYTES_MIN = 1 << 20


def expand(source: Source) -> list[Path]:
    """The files that `source` names: a path, a pattern (`*`, `?`, `[…]`, `**`), or several of them."""
    given = [source] if isinstance(source, str | os.PathLike) else list(source)
    files: list[Path] = []
    for item in given:
        text = os.fspath(item)
        if Path(text).is_file():
            files.append(Path(text))
            continue
        found = sorted(glob.glob(text, recursive=True)) if glob.has_magic(text) else []
        found = [name for name in found if Path(name).is_file()]
        if not found:
            raise NotFoundError(f"no file {text!r}; give a path, a pattern or a list of them")
        files += map(Path, found)
    if not files:
        raise NotFoundError("no files to load were given")
    return files


@dataclass(frozen=True, slots=True)
class Block:
    """Whole rows of one file, in UTF-8."""

    file: Path
    line: int
    """The line that it starts at, from 1."""
    data: bytes
    names: tuple[str, ...]
    """The file's header."""


class Reader:
    """Reads files one after the other, and tells how many stored bytes it has consumed."""

    def __init__(self, files: Sequence[Path], encoding: str, block_bytes: int) -> None:
        self._files, self._block_bytes = files, block_bytes
        self._decoder = _decoder(encoding)
        self.total = sum(file.stat().st_size for file in files)
        self.done = 0

    def blocks(self, header: Callable[[Block], tuple[Block, tuple[str, ...]]]) -> Iterator[Block]:
        """Every block; `header` takes the first one of a file apart into the rest and the names."""
        before = 0
        for file in self._files:
            with file.open("rb") as raw:
                names: tuple[str, ...] | None = None
                for line, data in self._cut(file, raw):
                    self.done = before + raw.tell()
                    block = Block(file, line, data, names or ())
                    if names is None:
                        block, names = header(block)
                    if block.data.strip():
                        yield block
                if names is None:
                    raise InputError(f"{file} is empty; a CSV file starts with a line of column names")
            before += file.stat().st_size
        self.done = self.total

    def _cut(self, file: Path, raw: IO[bytes]) -> Iterator[tuple[int, bytes]]:
        line, rest = 1, b""
        for piece in self._pieces(file, raw):
            data = rest + piece
            end = _last_row_end(data)
            if end == 0 and len(data) > max(_ROW_BYTES_MIN, _BLOCKS_MAX * self._block_bytes):
                raise InputError(
                    f"{file}, line {line}: a quote opened here is not closed in the next {len(data):,} bytes"
                )
            if end:
                yield line, data[:end]
                line += data.count(b"\n", 0, end)
            rest = data[end:]
        if rest.count(b'"') % 2:
            raise InputError(
                f"{file}, line {line}: a quote opened in this row is not closed; a quote in a value is doubled"
            )
        if rest.strip():
            yield line, rest

    def _pieces(self, file: Path, raw: IO[bytes]) -> Iterator[bytes]:
        """Decompressed UTF-8 without a byte order mark."""
        stream, decoder, first = _opened(file, raw), self._decoder(), True
        while True:
            try:
                piece = stream.read(self._block_bytes)
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise InputError(f"{file} cannot be decompressed: {error}") from error
            if decoder is not None:
                piece = _recoded(file, decoder, piece)
            if first and piece:
                piece, first = piece.removeprefix(codecs.BOM_UTF8), False
            if not piece:
                return
            yield piece


def _decoder(encoding: str) -> Callable[[], codecs.IncrementalDecoder | None]:
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        raise InputError(
            f"unknown encoding {encoding!r}; use a name that Python knows, such as utf8 or latin1"
        ) from None
    if name in ("utf-8", "ascii", "utf-8-sig"):
        return lambda: None
    return codecs.getincrementaldecoder(name)


def _recoded(file: Path, decoder: codecs.IncrementalDecoder, piece: bytes) -> bytes:
    try:
        return decoder.decode(piece, final=not piece).encode()
    except UnicodeError as error:
        raise InputError(f"{file} is not in the encoding given: {error}; pass another encoding=") from error


def _opened(file: Path, raw: IO[bytes]) -> Any:
    kind = file.suffix.lower()
    if kind in (".gz", ".gzip", ".bgz"):
        return gzip.GzipFile(fileobj=raw)
    if kind == ".bz2":
        return bz2.BZ2File(raw)
    if kind in (".xz", ".lzma"):
        return lzma.LZMAFile(raw)
    if kind in (".zst", ".zstd", ".lz4"):
        import pyarrow as pa

        return pa.CompressedInputStream(raw, "lz4" if kind == ".lz4" else "zstd")
    return raw


def _last_row_end(data: bytes) -> int:
    """The end of the last whole row: behind a line break with an even number of quotes before it; 0 if none is."""
    end = data.rfind(b"\n") + 1
    if b'"' not in data:
        return end
    quotes = data.count(b'"', 0, end)
    while end and quotes % 2:
        before = data.rfind(b"\n", 0, end - 1) + 1
        quotes -= data.count(b'"', before, end)
        end = before
    return end
