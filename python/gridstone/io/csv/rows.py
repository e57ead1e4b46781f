"""CSV files cut into blocks of whole rows.

A block ends at a line break outside quotes. It knows the line it starts at, so that an error can name the line.
"""

import codecs
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from ...base.printable import brief
from ...errors import InputError
from ..content import check_text
from ..files import opened, readable
from .dialect import Dialect

_BLOCKS_MAX = 16
_PORTION = 1 << 18
_FEED, _RETURN = b"\n\r"
_ROW_BYTES_MIN = 1 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """Whole rows of one file, in UTF-8."""

    file: Path
    line: int
    """The line that it starts at, from 1."""
    data: bytes
    names: tuple[str, ...]
    """The names of the file's columns."""


Header = Callable[[Block], tuple[Block, tuple[str, ...]]]
"""Takes the first block of a file apart into the rest and the names."""


class Reader:
    """Cuts files into blocks."""

    def __init__(self, files: Sequence[Path], dialect: Dialect, encoding: str, block_bytes: int) -> None:
        self._files, self._dialect, self._block_bytes = files, dialect, block_bytes
        self._quotes = Quotes(dialect)
        self._decoder = _decoder(encoding)
        self._sizes = [file.stat().st_size for file in files]
        self.total = sum(self._sizes)
        """Stored bytes of the files."""

    def first(self, header: Header) -> Block | None:
        """The first block that has a row."""
        return next((block for stream in self.streams(header) for block, _ in stream()), None)

    def streams(self, header: Header) -> list[Callable[[], Iterator[tuple[Block, int]]]]:
        """The blocks of each file that have a row, each with the stored bytes of all files up to its end."""
        before = itertools.accumulate(self._sizes, initial=0)
        return [partial(self._blocks, file, done, header) for file, done in zip(self._files, before, strict=False)]

    def _blocks(self, file: Path, before: int, header: Header) -> Iterator[tuple[Block, int]]:
        with file.open("rb") as raw:
            names: tuple[str, ...] | None = None
            for line, data in self._cut(file, raw):
                if not data.strip():
                    continue
                block = Block(file, line, data, names or ())
                if names is None:
                    block, names = header(block)
                if block.data.strip():
                    yield block, before + raw.tell()
            if names is None and self._dialect.header:
                raise InputError(f"{file} is empty; a CSV file starts with a line of column names")

    def _cut(self, file: Path, raw: IO[bytes]) -> Iterator[tuple[int, bytes]]:
        line, rest = 1 + self._dialect.skip_lines, b""
        for piece in self._lines(file, raw):
            data = rest + piece
            end = self._quotes.last_row_end(data)
            if end == 0 and len(data) > max(_ROW_BYTES_MIN, _BLOCKS_MAX * self._block_bytes):
                problem = "a quote opened here is not closed" if b"\n" in data else "there is no line feed"
                raise InputError(f"{file}, line {line}: {problem} in the next {len(data):,} bytes")
            if end:
                yield line, data[:end]
                line += line_breaks(data, end)
            rest = data[end:]
        if self._quotes.odd(rest):
            raise InputError(
                f"{file}, line {line}: a quote opened in this row is not closed; a quote in a value is doubled"
            )
        if rest.strip():
            yield line, rest

    def _lines(self, file: Path, raw: IO[bytes]) -> Iterator[bytes]:
        """The pieces without the lines before the header, comments blanked."""
        pieces = self._pieces(file, raw)
        if self._dialect.skip_lines:
            pieces = _skipped(pieces, self._dialect.skip_lines)
        return pieces if self._dialect.comment is None else _uncommented(pieces, self._dialect.comment, self._quotes)

    def _pieces(self, file: Path, raw: IO[bytes]) -> Iterator[bytes]:
        """Decompressed UTF-8 without a byte order mark."""
        stream, decoder, first = opened(file, raw), self._decoder(), True
        while True:
            with readable(file):
                piece = stream.read(self._block_bytes)
            if first and piece:
                check_text(file, piece, decoder is not None)
            if decoder is not None:
                piece = _recoded(file, decoder, piece)
            if first and piece:
                piece, first = piece.removeprefix(codecs.BOM_UTF8), False
            if not piece:
                return
            yield piece


def line_breaks(data: bytes, end: int) -> int:
    """How many lines end in the first `end` bytes: a carriage return alone ends one too.

    Many short lines make `bytes.count` slow; this takes portions that stay in a core's cache.
    """
    found, text = 0, np.frombuffer(data, np.uint8, end)
    returns = data.find(b"\r", 0, end) >= 0
    for start in range(0, end, _PORTION):
        portion = text[start : start + _PORTION]
        feeds = portion == _FEED
        found += int(np.count_nonzero(feeds))
        if returns:
            # The byte behind each carriage return may be the first of the next portion.
            behind = text[start + 1 : start + _PORTION + 1]
            alone = portion == _RETURN
            alone[: len(behind)] &= behind != _FEED
            found += int(np.count_nonzero(alone))
    return found


class Quotes:
    """Tells which line breaks end rows."""

    def __init__(self, dialect: Dialect) -> None:
        self._mark = None if dialect.quote is None else dialect.quote.encode()
        escape = None if dialect.escape is None else re.escape(dialect.escape.encode())
        self._escaped = None if escape is None else re.compile(escape + b".", re.DOTALL)

    def _bare(self, data: bytes) -> bytes:
        """The same number of bytes, what is escaped made harmless."""
        return data if self._escaped is None else self._escaped.sub(b"__", data)

    def odd(self, data: bytes) -> bool:
        """Whether the number of quotes is odd: a quote that is opened and not closed."""
        return self._mark is not None and self._bare(data).count(self._mark) % 2 == 1

    def last_row_end(self, data: bytes) -> int:
        """The end of the last whole row: behind a line break with an even number of quotes before it; 0: none."""
        data = self._bare(data)
        end = data.rfind(b"\n") + 1
        if self._mark is None or self._mark not in data:
            return end
        quotes = data.count(self._mark, 0, end)
        while end and quotes % 2:
            before = data.rfind(b"\n", 0, end - 1) + 1
            quotes -= data.count(self._mark, before, end)
            end = before
        return end


def _skipped(pieces: Iterator[bytes], lines: int) -> Iterator[bytes]:
    """The pieces behind so many lines."""
    for piece in pieces:
        at = 0
        while lines and at < len(piece):
            found = piece.find(b"\n", at)
            at = len(piece) if found < 0 else found + 1
            lines -= found >= 0
        if at < len(piece):
            yield piece[at:]


def _uncommented(pieces: Iterator[bytes], mark: str, quotes: Quotes) -> Iterator[bytes]:
    """The pieces with commented lines made empty, so that lines keep their numbers; a mark within quotes is none."""
    comment = re.compile(b"^" + re.escape(mark.encode()) + b"[^\n]*", re.MULTILINE)
    rest, inside = b"", False

    def blanked(data: bytes) -> bytes:
        nonlocal inside
        made, at = [], 0
        for found in comment.finditer(data):
            kept = data[at : found.start()]
            inside ^= quotes.odd(kept)
            made.append(kept)
            if inside:
                made.append(found.group())
                inside ^= quotes.odd(found.group())
            at = found.end()
        inside ^= quotes.odd(data[at:])
        return b"".join([*made, data[at:]])

    for piece in pieces:
        data = rest + piece
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        if end:
            yield blanked(data[:end])
    if rest:
        yield blanked(rest)


def _decoder(encoding: str) -> Callable[[], codecs.IncrementalDecoder | None]:
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):  # The latter of a NUL character.
        raise InputError(
            f"unknown encoding {brief(encoding)}; use a name that Python knows, such as utf8 or latin1"
        ) from None
    if name in ("utf-8", "ascii", "utf-8-sig"):
        return lambda: None
    return codecs.getincrementaldecoder(name)


def _recoded(file: Path, decoder: codecs.IncrementalDecoder, piece: bytes) -> bytes:
    try:
        return decoder.decode(piece, final=not piece).encode()
    except UnicodeError as error:
        raise InputError(f"{file} is not in the encoding given: {error}; pass another encoding=") from error
