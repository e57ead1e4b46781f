"""Sealed objects: ``docs/format/sealing.md``. AES-256-GCM by FIPS 197 and SP 800-38D, plain and slow."""

from __future__ import annotations

import hashlib
import hmac
from functools import cache

from .bytes import Cursor, Unsupported, need
from .checksums import xxh3

MAGIC, HEADER, TAG = b"GRIDSEAL", 72, 16


def _doubled(byte: int) -> int:
    return (byte << 1) ^ (0x11B if byte & 0x80 else 0)


def _sbox() -> list[int]:
    """The inverse in GF(2^8), by way of powers of 3, and an affine map."""
    power, log, x = [0] * 255, [0] * 256, 1
    for i in range(255):
        power[i], log[x] = x, i
        x ^= _doubled(x)
    box = []
    for value in range(256):
        y = power[-log[value] % 255] if value else 0
        box.append(0x63 ^ y ^ _left(y, 1) ^ _left(y, 2) ^ _left(y, 3) ^ _left(y, 4))
    return box


def _left(byte: int, bits: int) -> int:
    return (byte << bits | byte >> (8 - bits)) & 0xFF


SBOX = _sbox()
# A byte's part of a column after SubBytes and MixColumns, for the first row; other rows are turns of it.
MIXED = [_doubled(s) << 24 | s << 16 | s << 8 | (_doubled(s) ^ s) for s in SBOX]
TURNED = [[(m >> 8 * r | m << (32 - 8 * r)) & 0xFFFFFFFF for m in MIXED] for r in range(4)]


class Aes256:
    """The block cipher, in the one direction that GCM needs."""

    def __init__(self, key: bytes) -> None:
        words = [int.from_bytes(key[i : i + 4], "big") for i in range(0, 32, 4)]
        constant = 1
        for i in range(8, 60):
            word = words[i - 1]
            if i % 8 == 0:
                word = (word << 8 | word >> 24) & 0xFFFFFFFF
            if i % 4 == 0:
                word = int.from_bytes(bytes(SBOX[b] for b in word.to_bytes(4, "big")), "big")
            if i % 8 == 0:
                word ^= constant << 24
                constant = _doubled(constant)
            words.append(words[i - 8] ^ word)
        self.words = words

    def block(self, plain: bytes) -> bytes:
        """One block of 16 bytes, encrypted."""
        k, (t0, t1, t2, t3) = self.words, TURNED
        state = [int.from_bytes(plain[4 * i : 4 * i + 4], "big") ^ k[i] for i in range(4)]
        for step in range(4, 56, 4):
            a, b, c, d = state
            state = [
                t0[p >> 24] ^ t1[q >> 16 & 255] ^ t2[r >> 8 & 255] ^ t3[s & 255] ^ k[step + i]
                for i, (p, q, r, s) in enumerate(((a, b, c, d), (b, c, d, a), (c, d, a, b), (d, a, b, c)))
            ]
        rows = [word.to_bytes(4, "big") for word in state]
        last = bytes(SBOX[rows[(column + row) % 4][row]] for column in range(4) for row in range(4))
        return bytes(x ^ (k[56 + i // 4] >> (24 - 8 * (i % 4)) & 255) for i, x in enumerate(last))


def _times(x: int, y: int) -> int:
    """The product in GF(2^128) as GCM has it: bits from the most significant."""
    product = 0
    for bit in range(127, -1, -1):
        if x >> bit & 1:
            product ^= y
        y = y >> 1 ^ (0xE1 << 120 if y & 1 else 0)
    return product


class Gcm:
    """AES-256-GCM with nonces of 12 bytes and no associated data."""

    def __init__(self, key: bytes) -> None:
        self.aes = Aes256(key)
        self.h = int.from_bytes(self.aes.block(bytes(16)), "big")

    def crypt(self, nonce: bytes, data: bytes) -> bytes:
        """Encrypts or decrypts."""
        stream = b"".join(self.aes.block(nonce + (i + 2).to_bytes(4, "big")) for i in range(-(-len(data) // 16)))
        return bytes(a ^ b for a, b in zip(data, stream, strict=False))

    def tag(self, nonce: bytes, sealed: bytes) -> bytes:
        """The tag of some ciphertext."""
        y = 0
        for i in range(0, len(sealed), 16):
            y = _times(y ^ int.from_bytes(sealed[i : i + 16].ljust(16, b"\0"), "big"), self.h)
        y = _times(y ^ 8 * len(sealed), self.h)
        mask = self.aes.block(nonce + b"\0\0\0\1")
        return (y ^ int.from_bytes(mask, "big")).to_bytes(16, "big")


def hkdf(key: bytes, salt: bytes, info: bytes) -> bytes:
    """The first 32 bytes of HKDF-SHA256 (RFC 5869)."""
    extracted = hmac.digest(salt or bytes(32), key, hashlib.sha256)
    return hmac.digest(extracted, info + b"\1", hashlib.sha256)


def key_id(key: bytes) -> bytes:
    """What a key is called."""
    return hkdf(key, b"", b"gridstone key id")[:16]


def is_sealed(data: bytes) -> bool:
    """Whether an object starts as sealed ones do."""
    return data.startswith(MAGIC)


@cache
def unsealed(key: bytes, name: str, data: bytes) -> bytes:
    """The plain content of the sealed object ``name``."""
    need(is_sealed(data) and len(data) >= HEADER + TAG, f"{name} is no sealed object")
    need(data[64:HEADER] == xxh3(data[8:64]).to_bytes(8, "little"), f"the header of {name} is damaged")
    header = Cursor(data[8:64], name)
    version, cipher, log2, reserved = header.u32(), header.u8(), header.u8(), header.take(2)
    if (version, cipher, reserved) != (0, 1, b"\0\0") or not 12 <= log2 <= 20:
        raise Unsupported(f"{name} is sealed in an unknown way")
    if header.take(16) != key_id(key):
        raise Unsupported(f"{name} is sealed with another key")
    gcm = Gcm(hkdf(key, data[32:64], b"gridstone seal v0" + data[8:32] + name.encode()))
    stride, plain = (1 << log2) + TAG, []
    segments = [data[i : i + stride] for i in range(HEADER, len(data), stride)]
    for number, segment in enumerate(segments):
        last = number == len(segments) - 1
        need(len(segment) > TAG or (len(segment) == TAG and len(segments) == 1), f"{name} was cut")
        nonce = number.to_bytes(8, "little") + bytes((0, 0, 0, last))
        need(gcm.tag(nonce, segment[:-TAG]) == segment[-TAG:], f"segment {number} of {name} does not fit its tag")
        plain.append(gcm.crypt(nonce, segment[:-TAG]))
    return b"".join(plain)
