"""Commit keys in rows and records that are made here byte by byte: what the reader accepts, and what it refuses."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from gsreader.checksums import xxh3
from test_rows import REFUSED, Rows, World, flat, small, text_of, world

__all__ = ["world"]


def keyed(key: bytes, number_of: int, version: int = 1, content: int = 7) -> Rows:
    """The row of a commit key."""
    place = b"K" + (number_of // 8_192).to_bytes(8, "big") + xxh3(key).to_bytes(8, "big") + key
    return {place: struct.pack("<Q", version) + content.to_bytes(16, "big") + struct.pack("<Q", number_of)}


def test_commit_keys_are_read_from_rows_and_records(world: World) -> None:
    held = small() | {b"K": text_of({"next": 2})} | keyed(b"a", 0) | keyed(b"\xff", 1, content=9)
    world.root(flat(held))
    # The same record names the root, and has two keys.
    root = json.loads((world.folder / "_log" / f"{2:020}").read_bytes().split(b"\n")[0])["root"]
    keys = [{"key": "62", "content": f"{3:032x}"}, {"key": "00" * 128, "content": f"{4:032x}"}]
    world.record(2, [], root, keys=keys)
    found = world.state().keys
    assert found.next == 4
    assert found.find(b"a") == (1, f"{7:032x}")
    assert found.find(b"\xff") == (1, f"{9:032x}")
    assert found.find(b"b") == (2, f"{3:032x}")
    assert found.find(bytes(128)) == (2, f"{4:032x}")
    assert found.find(b"c") is None


def test_a_commit_key_is_known_until_100_000_others_came(world: World) -> None:
    old = keyed(b"old", 8_191) | keyed(b"kept", 8_192)
    state = world.state_of(flat(small() | {b"K": text_of({"next": 8_193})} | keyed_all(8_190) | old)).keys
    for count in range(8_193, 108_192):
        assert (state.find(b"old") is not None) == (count <= 108_191)
        state.add(b"%d" % count, 2, "")
    assert state.find(b"old") is None
    assert state.find(b"kept") is not None


def keyed_all(last: int) -> Rows:
    """The rows of the keys 0 to last."""
    rows_of: Rows = {}
    for place in range(last + 1):
        rows_of |= keyed(b"key %d" % place, place)
    return rows_of


@pytest.mark.parametrize(
    "wrong",
    [
        {b"K": b"{}"},
        {b"K": text_of({"next": 1, "more": 2})},
        {b"K": text_of({"next": 1})},
        keyed(b"a", 0),
        {b"K": text_of({"next": 1})} | keyed(b"a", 0, version=2),
        {b"K": text_of({"next": 1})} | keyed(b"a", 0, version=0),
        {b"K": text_of({"next": 9_000})} | keyed(b"a", 8_999),
        {b"K": text_of({"next": 1})} | {b"K" + bytes(16) + b"a": bytes(32)},
        {b"K": text_of({"next": 1})} | keyed(b"a" * 129, 0),
        {b"K": text_of({"next": 1})} | {place: value[:31] for place, value in keyed(b"a", 0).items()},
    ],
)
def test_rows_of_commit_keys_that_do_not_fit_are_refused(world: World, wrong: Rows) -> None:
    with pytest.raises(REFUSED):
        world.state_of(flat(small() | wrong))


@pytest.mark.parametrize(
    "keys",
    [
        [{"key": "", "content": f"{3:032x}"}],
        [{"key": "6", "content": f"{3:032x}"}],
        [{"key": "6A", "content": f"{3:032x}"}],
        [{"key": "61", "content": f"{3:016x}"}],
        [{"key": "00" * 129, "content": f"{3:032x}"}],
        [{"key": "61", "content": f"{3:032x}", "more": 1}],
        [{"key": "61", "content": f"{3:032x}"}] * 2,
    ],
)
def test_commit_keys_that_cannot_be_are_refused(world: World, keys: list[Any]) -> None:
    world.record(2, [], None, keys=keys)
    with pytest.raises(REFUSED):
        world.state()
