"""Decoding of pipelines: ``docs/format/codecs.md``."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from .bytes import Cursor, Damaged, Unsupported, need

CHUNK = 1 << 18
MODE_DICTIONARY = 4
LEVELS = {"zstd": range(1, 23), "gzip": range(1, 13), "pco": range(13)}
USER = re.compile(r"(?=.{3,64}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
USERS_MAX = 4
PLAIN = ("delta", "dict", "for", "rle", "shuffle", "bitshuffle", "lz4")


Users = Mapping[str, Callable[[bytes, int], bytes]]
"""What decodes user-defined filters, by id: of bytes and the width of the values that encoding was given."""


class Element(NamedTuple):
    """What a filter knows of values: kind ("u", "i" or "f") and width in bytes."""

    kind: str
    width: int


BYTE = Element("u", 1)


def parse(text: str) -> list[str]:
    """The filters of a pipeline, without levels; Unsupported for one that is not known."""
    if text == "none":
        return []
    names = []
    for part in text.split(","):
        name, _, level = part.partition(":")
        known = level.isdigit() and int(level) in LEVELS[name] if name in LEVELS else name in PLAIN and part == name
        known = known or USER.fullmatch(part) is not None
        if not known:
            raise Unsupported(f"unknown filter {part!r}")
        names.append(name)
    if sum("." in name for name in names) > USERS_MAX:
        raise Unsupported(f"too many user-defined filters in {text!r}")
    return names


def parse_attribute(text: str, element: Element) -> None:
    """Checks the filters of an attribute: rounding may stand in front, and is nothing that a reader does."""
    first, comma, rest = text.partition(",")
    name, _, bits = first.partition(":")
    if name == "bitround":
        most = {2: 9, 4: 22, 8: 51}[element.width] if element.kind == "f" else 0
        need(comma == "," and bits.isdigit() and 1 <= int(bits) <= most, "rounding that cannot be")
        text = rest
    if text != "auto":
        parse(text)


def decode(text: str, data: bytes, element: Element, length: int, users: Users = MappingProxyType({})) -> bytes:
    """The ``length`` bytes that ``data`` was made from."""
    stages = []
    bound = length
    for name in parse(text):
        stages.append((name, element, bound))
        if name == "delta":
            need(element.kind != "f", "delta over floats")
            element = Element("i", element.width)
        else:
            element = BYTE
        bound = 2 * bound + 4096
    for name, given, most in reversed(stages):
        data = _by_user(name, users, data, given, most) if "." in name else DECODERS[name](data, given, most)
    need(len(data) == length, f"a block of {text} gives {len(data)} bytes, {length} were expected")
    return data


def _by_user(name: str, users: Users, data: bytes, element: Element, most: int) -> bytes:
    if name not in users:
        raise Unsupported(f"the user-defined filter {name!r}; give what decodes it")
    out = bytes(users[name](data, element.width))
    need(len(out) <= most, f"a block of {name} is too long")
    return out


def _delta(data: bytes, element: Element, _most: int) -> bytes:
    width = element.width
    need(len(data) % width == 0, "delta over parts of elements")
    mask = (1 << 8 * width) - 1
    out, value = bytearray(), 0
    for at in range(0, len(data), width):
        value = value + int.from_bytes(data[at : at + width], "little") & mask
        out += value.to_bytes(width, "little")
    return bytes(out)


def _frame(data: bytes, element: Element, most: int) -> bytes:
    width = element.width
    mask = (1 << 8 * width) - 1
    cursor = Cursor(data, "a block of for")
    left = cursor.u32()
    need(left * width <= most, "a block of for is too long")
    out = bytearray()
    if left:
        out += cursor.take(width)
        left -= 1
    while left:
        here = min(left, 1024)
        bits = cursor.u8()
        need(bits <= 8 * width, "a block of for: too many bits")
        least = int.from_bytes(cursor.take(width), "little")
        run = int.from_bytes(cursor.take((here * bits + 7) // 8), "little")
        need(run >> (here * bits) == 0, "a block of for: unused bits are set")
        for i in range(here):
            difference = run >> (i * bits) & ((1 << bits) - 1)
            out += (least + difference & mask).to_bytes(width, "little")
        left -= here
    cursor.end()
    return bytes(out)


def _runs(data: bytes, element: Element, most: int) -> bytes:
    cursor = Cursor(data, "a block of rle")
    out = bytearray()
    while cursor.at < len(data):
        length = shift = 0
        while True:
            byte = cursor.u8()
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        need(length > 0 and shift <= 70 and (byte or shift == 7), "a block of rle: a length that no writer gives")
        need(len(out) + length * element.width <= most, "a block of rle is too long")
        out += cursor.take(element.width) * length
    return bytes(out)


def _dictionary(data: bytes, element: Element, most: int) -> bytes:
    width = element.width
    cursor = Cursor(data, "a block of dict")
    count = cursor.u32()
    need(count * width <= most, "a block of dict is too long")
    out = bytearray()
    if count:
        distinct = cursor.u32()
        need(0 < distinct <= count, "a block of dict: the number of distinct values")
        known = [cursor.take(width) for _ in range(distinct)]
        bits = (distinct - 1).bit_length()
        run = int.from_bytes(cursor.take((count * bits + 7) // 8), "little")
        need(run >> (count * bits) == 0, "a block of dict: unused bits are set")
        for i in range(count):
            place = run >> (i * bits) & ((1 << bits) - 1)
            need(place < distinct, "a block of dict: a place past the last value")
            out += known[place]
    cursor.end()
    return bytes(out)


def _shuffle(data: bytes, element: Element, _most: int) -> bytes:
    width = element.width
    count = len(data) // width
    out = bytearray(data)
    for byte in range(width):
        out[byte : count * width : width] = data[byte * count : (byte + 1) * count]
    return bytes(out)


def _bitshuffle(data: bytes, element: Element, _most: int) -> bytes:
    width = element.width
    groups = len(data) // width // 8
    out = bytearray(data)
    out[: 8 * groups * width] = bytes(8 * groups * width)
    for byte in range(width):
        for bit in range(8):
            for group in range(groups):
                plane = data[(8 * byte + bit) * groups + group]
                for j in range(8):
                    out[(8 * group + j) * width + byte] |= (plane >> j & 1) << bit
    return bytes(out)


def _lz4(data: bytes, _element: Element, most: int) -> bytes:
    import lz4.block

    try:
        return bytes(lz4.block.decompress(data, uncompressed_size=most))
    except lz4.block.LZ4BlockError as error:
        raise Damaged("an lz4 block") from error


def zstd_frame(data: bytes, most: int) -> bytes:
    """The content of a frame, of at most ``most`` bytes."""
    import zstandard

    try:
        need(zstandard.frame_content_size(data) in range(most + 1), "a zstd frame without its right size")
        decompressor = zstandard.ZstdDecompressor().decompressobj()
        out = decompressor.decompress(data)
    except zstandard.ZstdError as error:
        raise Damaged("a zstd frame") from error
    need(decompressor.eof and not decompressor.unused_data, "a zstd frame that does not end with its block")
    return bytes(out)


def _zstd(data: bytes, _element: Element, most: int) -> bytes:
    return zstd_frame(data, most)


def _gzip(data: bytes, _element: Element, most: int) -> bytes:
    need(data[:2] == b"\x1f\x8b", "a gzip member does not start")
    try:
        inflater = zlib.decompressobj(31)
        out = inflater.decompress(data, most + 1)
    except (zlib.error, gzip.BadGzipFile) as error:
        raise Damaged("a gzip member") from error
    need(inflater.eof and not inflater.unused_data, "a gzip member that does not end with its block")
    return out


def _pco(data: bytes, element: Element, most: int) -> bytes:
    import numpy
    from pcodec import wrapped

    cursor = Cursor(data, "a block of pco")
    left = cursor.u32()
    need(left * element.width <= most, "a block of pco is too long")
    body = cursor.take(len(data) - 4)
    out = bytearray()
    try:
        if left:
            file, used = wrapped.FileDecompressor.new(body)
            body = body[used:]
        while left:
            need(body and body[0] & 15 != MODE_DICTIONARY, "a chunk of pco with a dictionary")
            here = min(left, CHUNK)
            chunk, used = file.chunk_decompressor(body, f"{element.kind}{8 * element.width}")
            values = numpy.zeros(here, f"<{element.kind}{element.width}")
            progress, page = chunk.read_page_into(body[used:], here, values)
            need(progress.n_processed == here and progress.finished, "a page of pco ends early")
            body = body[used + page :]
            out += values.tobytes()
            left -= here
    except (RuntimeError, TypeError, ValueError) as error:
        raise Damaged("a block of pco") from error
    need(not body, "a block of pco has bytes too many")
    return bytes(out)


DECODERS: dict[str, Callable[[bytes, Element, int], bytes]] = {
    "delta": _delta,
    "for": _frame,
    "dict": _dictionary,
    "rle": _runs,
    "shuffle": _shuffle,
    "bitshuffle": _bitshuffle,
    "lz4": _lz4,
    "zstd": _zstd,
    "gzip": _gzip,
    "pco": _pco,
}
