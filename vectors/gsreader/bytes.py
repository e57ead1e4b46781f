"""Checked little-endian bytes, and the refusals."""

from __future__ import annotations

import struct
from collections.abc import Callable

Read = Callable[[str], bytes]
"""What reads an object of a store, by its name."""


class Damaged(Exception):
    """The bytes are not what a writer wrote."""


class Unsupported(Exception):
    """The bytes are of a version, or use a feature, that this reader does not know."""


class Absent(Exception):
    """There is no store, though objects of one may lie there."""


def need(condition: object, message: str) -> None:
    """Raises Damaged with ``message`` unless ``condition`` holds."""
    if not condition:
        raise Damaged(message)


class Cursor:
    """Reads little-endian numbers front to back; running out of bytes is damage."""

    def __init__(self, data: bytes, what: str) -> None:
        self.data, self.what, self.at = data, what, 0

    def take(self, count: int) -> bytes:
        need(0 <= count <= len(self.data) - self.at, f"{self.what} ends early")
        self.at += count
        return self.data[self.at - count : self.at]

    def u8(self) -> int:
        return self.take(1)[0]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def sized(self) -> bytes:
        return self.take(self.u32())

    def text(self) -> str:
        try:
            return self.sized().decode("utf-8")
        except UnicodeDecodeError as error:
            raise Damaged(f"{self.what}: a name is not UTF-8") from error

    def count(self, item_bytes: int) -> int:
        number = self.u32()
        need(number * item_bytes <= len(self.data) - self.at, f"{self.what}: a count of {number} is impossible")
        return number

    def end(self) -> None:
        need(self.at == len(self.data), f"{self.what} has {len(self.data) - self.at} bytes too many")


def words32(data: bytes, count: int, what: str) -> list[int]:
    """Exactly ``count`` u32."""
    need(len(data) == 4 * count, f"{what}: {len(data)} bytes for {count} words of 4")
    return list(struct.unpack(f"<{count}I", data))


def words64(data: bytes, count: int, what: str) -> list[int]:
    """Exactly ``count`` u64."""
    need(len(data) == 8 * count, f"{what}: {len(data)} bytes for {count} words of 8")
    return list(struct.unpack(f"<{count}Q", data))
