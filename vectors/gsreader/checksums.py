"""XXH3-64 (seed 0) and CRC32C in plain Python."""

from __future__ import annotations

import struct

M64 = 0xFFFFFFFFFFFFFFFF
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
PRIME_MX1, PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _fold(a: int, b: int) -> int:
    product = a * b
    return (product & M64) ^ (product >> 64)


def _avalanche(h: int) -> int:
    h ^= h >> 37
    h = h * PRIME_MX1 & M64
    return h ^ (h >> 32)


def _avalanche64(h: int) -> int:
    h ^= h >> 33
    h = h * P64_2 & M64
    h ^= h >> 29
    h = h * P64_3 & M64
    return h ^ (h >> 32)


def _swap64(x: int) -> int:
    return int.from_bytes(x.to_bytes(8, "little"), "big")


def _short(data: bytes) -> int:
    n = len(data)
    if n > 8:
        low = _u64(data, 0) ^ _u64(SECRET, 24) ^ _u64(SECRET, 32)
        high = _u64(data, n - 8) ^ _u64(SECRET, 40) ^ _u64(SECRET, 48)
        return _avalanche((n + _swap64(low) + high + _fold(low, high)) & M64)
    if n >= 4:
        both = _u32(data, n - 4) + (_u32(data, 0) << 32)
        h = both ^ _u64(SECRET, 8) ^ _u64(SECRET, 16)
        h ^= (h << 49 | h >> 15) & M64 ^ (h << 24 | h >> 40) & M64
        h = h * PRIME_MX2 & M64
        h ^= (h >> 35) + n
        h = h * PRIME_MX2 & M64
        return h ^ (h >> 28)
    if n > 0:
        packed = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return _avalanche64(packed ^ _u32(SECRET, 0) ^ _u32(SECRET, 4))
    return _avalanche64(_u64(SECRET, 56) ^ _u64(SECRET, 64))


def _mix16(data: bytes, at: int, secret: int) -> int:
    return _fold(_u64(data, at) ^ _u64(SECRET, secret), _u64(data, at + 8) ^ _u64(SECRET, secret + 8))


def _middle(data: bytes) -> int:
    n = len(data)
    acc = n * P64_1
    if n <= 128:
        for i in range((n - 1) // 32, -1, -1):
            acc += _mix16(data, 16 * i, 32 * i) + _mix16(data, n - 16 * (i + 1), 32 * i + 16)
        return _avalanche(acc & M64)
    for i in range(8):
        acc += _mix16(data, 16 * i, 16 * i)
    acc = _avalanche(acc & M64)
    for i in range(8, n // 16):
        acc += _mix16(data, 16 * i, 16 * (i - 8) + 3)
    return _avalanche(acc + _mix16(data, n - 16, 136 - 17) & M64)


def _accumulate(acc: list[int], stripe: tuple[int, ...], secret: tuple[int, ...]) -> None:
    for i in range(8):
        value = stripe[i]
        keyed = value ^ secret[i]
        acc[i ^ 1] += value
        acc[i] = acc[i] + (keyed & 0xFFFFFFFF) * (keyed >> 32) & M64


def _long(data: bytes) -> int:
    n = len(data)
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    keys = [struct.unpack_from("<8Q", SECRET, 8 * i) for i in range(16)]
    scramble = struct.unpack_from("<8Q", SECRET, len(SECRET) - 64)
    for number in range((n - 1) // 64):
        _accumulate(acc, struct.unpack_from("<8Q", data, 64 * number), keys[number % 16])
        if number % 16 == 15:
            for i in range(8):
                lane = acc[i] & M64
                acc[i] = (lane ^ lane >> 47 ^ scramble[i]) * P32_1 & M64
    _accumulate(acc, struct.unpack_from("<8Q", data, n - 64), struct.unpack_from("<8Q", SECRET, len(SECRET) - 64 - 7))
    result = n * P64_1
    for i in range(4):
        a, b = acc[2 * i] & M64, acc[2 * i + 1] & M64
        result += _fold(a ^ _u64(SECRET, 11 + 16 * i), b ^ _u64(SECRET, 11 + 16 * i + 8))
    return _avalanche(result & M64)


def xxh3(data: bytes) -> int:
    """XXH3-64 of ``data`` with seed 0."""
    if len(data) <= 16:
        return _short(data)
    return _middle(data) if len(data) <= 240 else _long(data)


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _crc_table()


def crc32c(data: bytes) -> int:
    """CRC32C (Castagnoli) of ``data``."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
