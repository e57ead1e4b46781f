"""Chunks as other libraries write them: makes ``chunks.json`` beside this file.

Needs ``pip install h5py hdf5plugin numcodecs`` and runs as ``python vectors/foreign/chunks.py``. Each entry has the
text of a foreign pipeline (``docs/format/codecs.md``), the stored bytes as hexadecimal digits, and the decoded bytes:
as a recipe of ``values``, which ``crates/gridstone/src/codec/foreign/conformance.rs`` repeats, or as digits too.
``mask`` is HDF5's filter mask, where it is not 0.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import h5py
import hdf5plugin
import numcodecs
import numpy as np
from numcodecs import blosc


def values(recipe: str) -> bytes:
    """The bytes of a recipe, ``KIND:LENGTH``: ``noise``, ``same``, ``steps``, or ``lines``."""
    kind, text = recipe.split(":")
    length = int(text)
    if kind == "same":
        return b"\x07" * length
    if kind == "steps":  # Little-endian u32: i // 3.
        words = np.arange(math.ceil(length / 4), dtype="<u4") // 3
        return words.tobytes()[:length]
    if kind == "lines":  # A line of 20 bytes, whose last two are its number.
        lines = b"".join(b"a record of so and "[:18] + n.to_bytes(2, "little") for n in range(math.ceil(length / 20)))
        return lines[:length]
    state, out = 12345, bytearray()
    for _ in range(length):
        state = (state * 1103515245 + 12345) % 2**32
        out.append(state >> 24)
    return bytes(out)


Entry = dict[str, str | int]


def entry(pipeline: str, recipe: str, stored: bytes, by: str, mask: int = 0) -> Entry:
    masked = {"mask": mask} if mask else {}
    return {"by": by, "pipeline": pipeline, **masked, "values": recipe, "stored": bytes(stored).hex()}


def h5_chunk(recipe: str, dtype: str, **filters: object) -> tuple[bytes, int]:
    """The stored bytes of a dataset of one chunk, and its mask."""
    data = np.frombuffer(values(recipe), dtype=dtype)
    with h5py.File("memory.h5", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("d", data=data, chunks=data.shape, **filters)
        mask, stored = dataset.id.read_direct_chunk((0,))
    return stored, mask


def hdf5() -> list[Entry]:
    found = []

    def add(pipeline: str, recipe: str, dtype: str, **filters: object) -> None:
        stored, mask = h5_chunk(recipe, dtype, **filters)
        found.append(entry(pipeline, recipe, stored, f"h5py {h5py.__version__}", mask))

    add("deflate", "steps:400", "<u4", compression="gzip", shuffle=False)
    add("shuffle:4,deflate", "steps:4000", "<u4", compression="gzip", shuffle=True)
    add("shuffle:8,deflate,fletcher32", "steps:1000", "<u8", compression="gzip", shuffle=True, fletcher32=True)
    add("shuffle:20,deflate", "lines:1000", "V20", compression="gzip", shuffle=True)
    for length in (1, 2, 7, 64, 719, 722):
        add("fletcher32", f"noise:{length}", "u1", fletcher32=True)
    add("fletcher32", "same:5000", "u1", fletcher32=True)
    add("lzf", "steps:4000", "<u4", compression="lzf", shuffle=False)
    add("lzf", "same:600", "u1", compression="lzf", shuffle=False)
    add("shuffle:2,lzf", "steps:3000", "<u2", compression="lzf", shuffle=True)
    add("shuffle:4,lzf,fletcher32", "noise:60", "<u4", compression="lzf", shuffle=True, fletcher32=True)
    add("shuffle:20,lzf", "lines:20000", "V20", compression="lzf", shuffle=True)

    def plugin(pipeline: str, recipe: str, dtype: str, filters: object) -> None:
        stored, mask = h5_chunk(recipe, dtype, **filters)
        found.append(entry(pipeline, recipe, stored, f"hdf5plugin {hdf5plugin.version}", mask))

    plugin("zstd", "steps:400", "<u4", hdf5plugin.Zstd(clevel=3))
    plugin("bzip2", "lines:800", "u1", hdf5plugin.BZip2(blocksize=5))
    plugin("lz4h5", "steps:400", "<u4", hdf5plugin.LZ4())
    plugin("lz4h5", "steps:1000", "<u4", hdf5plugin.LZ4(nbytes=256))
    plugin("lz4h5", "noise:300", "u1", hdf5plugin.LZ4(nbytes=128))
    for dtype, recipe in [("u1", "noise:203"), ("<u2", "steps:1014"), ("<u4", "steps:40"), ("<f8", "steps:9000")]:
        width = np.dtype(dtype).itemsize
        if len(values(recipe)) % width:
            recipe = f"{recipe.split(':')[0]}:{len(values(recipe)) // width * width}"
        if len(values(recipe)) < 1000:
            plugin(f"bitshuffle:{width}", recipe, dtype, hdf5plugin.Bitshuffle(cname="none"))
            plugin(f"bitshuffle:{width}:16", recipe, dtype, hdf5plugin.Bitshuffle(nelems=16, cname="none"))
        plugin(f"bitshuffle:{width}:lz4", recipe, dtype, hdf5plugin.Bitshuffle(cname="lz4"))
        plugin(f"bitshuffle:{width}:64:lz4", recipe, dtype, hdf5plugin.Bitshuffle(nelems=64, cname="lz4"))
        plugin(f"bitshuffle:{width}:zstd", recipe, dtype, hdf5plugin.Bitshuffle(cname="zstd"))
    plugin("bitshuffle:20", "lines:500", "V20", hdf5plugin.Bitshuffle(cname="none"))
    plugin("bitshuffle:20:lz4", "lines:9340", "V20", hdf5plugin.Bitshuffle(cname="lz4"))
    plugin("bitshuffle:3:8", "noise:93", "V3", hdf5plugin.Bitshuffle(nelems=8, cname="none"))
    for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        plugin("blosc", "steps:4000", "<u4", hdf5plugin.Blosc(cname=name, clevel=5, shuffle=1))
    plugin("blosc", "noise:60", "<u4", hdf5plugin.Blosc(cname="lz4", clevel=5, shuffle=2))
    plugin("blosc", "steps:4000", "<u4", hdf5plugin.Blosc(cname="lz4", clevel=5, shuffle=2))
    return found


def numcodecs_chunks() -> list[Entry]:
    found = []

    def add(pipeline: str, recipe: str, codec: object, view: str = "u1") -> None:
        data = np.frombuffer(values(recipe), dtype=view)
        stored = bytes(codec.encode(data))
        assert bytes(codec.decode(stored)) == values(recipe) or pipeline.startswith("fixed"), pipeline
        found.append(entry(pipeline, recipe, stored, f"numcodecs {numcodecs.__version__}"))

    add("deflate", "lines:500", numcodecs.Zlib(level=1))
    add("gzip", "lines:500", numcodecs.GZip(level=5))
    add("bzip2", "steps:900", numcodecs.BZ2(level=9))
    add("zstd", "lines:500", numcodecs.Zstd(level=1))
    add("zstd", "lines:500", numcodecs.Zstd(level=1, checksum=True))
    add("lz4", "lines:500", numcodecs.LZ4())
    add("lz4", "noise:50", numcodecs.LZ4())
    add("shuffle:4", "noise:44", numcodecs.Shuffle(elementsize=4))
    add("shuffle:3", "noise:30", numcodecs.Shuffle(elementsize=3))
    add("fletcher32", "noise:41", numcodecs.fletcher32.Fletcher32())
    add("crc32c", "noise:41", numcodecs.checksum32.CRC32C(location="end"))
    for of, stored in [("<i4", "<i2"), ("<u4", "<u4"), (">i2", "<i8"), ("|u1", "|i1")]:
        recipe = "noise:48" if of == ">i2" else "steps:96"
        shown = f"delta:{of}" if of == stored else f"delta:{of}:{stored}"
        add(shown, recipe, numcodecs.Delta(dtype=of, astype=stored), of)
    for shuffle in (blosc.NOSHUFFLE, blosc.SHUFFLE, blosc.BITSHUFFLE):
        for name in ("blosclz", "lz4", "zlib", "zstd"):
            recipes = [(4, "steps:4000"), (8, "steps:6168"), (1, "lines:2000"), (20, "lines:3340"), (2, "noise:300")]
            for width, recipe in recipes:
                codec = numcodecs.Blosc(cname=name, clevel=5, shuffle=shuffle, blocksize=2048)
                add("blosc", recipe, codec, f"V{width}")
    for name in ("blosclz", "lz4", "zstd"):
        add("blosc", "same:100000", numcodecs.Blosc(cname=name, clevel=9, shuffle=blosc.BITSHUFFLE), "<u2")
        add("blosc", "steps:20000", numcodecs.Blosc(cname=name, clevel=1, shuffle=blosc.SHUFFLE), "<u4")
    return found


def scaled() -> list[Entry]:
    """Numbers that rounding changes, so that the decoded bytes are part of the entry."""
    found = []
    for offset, scale, of, stored in [
        (1000, 10, "<f8", "|u1"),
        (0.5, 7, "<f4", "<f4"),
        (-3, 0.25, "<f8", ">i4"),
        (20, 3, "<i4", "<i2"),
        (0, 100, "<f4", "|i1"),
    ]:
        codec = numcodecs.FixedScaleOffset(offset=offset, scale=scale, dtype=of, astype=stored)
        data = (np.linspace(offset, offset + 12 / scale, 15)).astype(of)
        coded = bytes(codec.encode(data))
        types = of if of == stored else f"{of}:{stored}"
        made = entry(f"fixedscaleoffset:{offset}:{scale}:{types}", "", coded, f"numcodecs {numcodecs.__version__}")
        found.append({**made, "values": bytes(codec.decode(coded)).hex()})
    return found


def main() -> None:
    entries = hdf5() + numcodecs_chunks() + scaled()
    assert any("mask" in entry for entry in entries)
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    Path(__file__).with_suffix(".json").write_text(f"[\n{lines}\n]\n")
    print(len(entries), "chunks,", sum(len(entry["stored"]) // 2 for entry in entries), "bytes")


if __name__ == "__main__":
    main()
