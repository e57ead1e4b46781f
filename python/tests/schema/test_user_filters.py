"""Filters of a user's own: in pipelines, threads, forks and other processes; missing, wrong and interrupted ones."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone.errors import CorruptionError, ExistsError, InputError, SchemaError, UnsupportedError


def xor(data: bytes, width: int) -> bytes:
    return bytes(byte ^ (0x50 | width) for byte in data)


def pack(data: bytes, width: int) -> bytes:
    return zlib.compress(data, 1)


def unpack(data: bytes, width: int) -> bytes:
    return zlib.decompress(data)


@pytest.fixture(autouse=True)
def registered() -> None:
    gs.register_filter("test.xor", encode=xor, decode=xor, overwrite=True)
    gs.register_filter("test.zlib", encode=pack, decode=unpack, overwrite=True)


def array(uri: Any, filters: Any, dtype: str = "int32", **options: Any) -> gs.Array:
    return gs.create(
        uri,
        gs.Schema(
            [gs.Dim("x", (0, 99_999), 10_000)],
            [gs.Attr("v", dtype, filters=filters), *options.pop("more", [])],
            **options,
        ),
    )


@pytest.mark.parametrize(
    "filters", ["test.xor", ["shuffle", "test.zlib"], ["delta", "test.xor", "lz4"], ["test.xor"] * 4]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_values_come_back(stores: Stores, filters: Any, threads: int) -> None:
    context = gs.Context(threads=threads)
    a = gs.create(
        stores("a"),
        gs.Schema([gs.Dim("x", (0, 99_999), 10_000)], [gs.Attr("v", "int32", filters=filters)]),
        context=context,
    )
    values = np.random.default_rng(1).integers(-1000, 1000, 100_000).astype("int32")
    a[...] = values
    a[500:20_500] = values[:20_000]
    values[500:20_500] = values[:20_000].copy()
    np.testing.assert_array_equal(a[...], values)
    np.testing.assert_array_equal(gs.open(stores("a"))[7:90_000:3], values[7:90_000:3])
    a.consolidate("all")
    np.testing.assert_array_equal(a[...], values)
    assert a.verify()["damage"] == [] and len(a.fragments) == 1


@given(data=st.lists(st.text(max_size=30) | st.none(), max_size=60))
def test_strings_with_nulls(stores: Stores, data: list[str | None]) -> None:
    schema = gs.Schema(
        [gs.Dim("x", (0, 99))], [gs.Attr("v", str, nullable=True, filters=["test.zlib", "test.xor"])], sparse=True
    )
    a = gs.create(stores(), schema)
    if data:
        a.write_cells({"x": range(len(data))}, {"v": data})
        assert np.ma.asarray(a.read()["v"]).tolist() == data
    gs.delete(a.uri)


def test_coordinates_and_categories_too(stores: Stores) -> None:
    schema = gs.Schema(
        [gs.Dim("x", (0, 99))],
        [gs.Attr("v", str, categories=["a", "b"], filters="test.xor")],
        sparse=True,
        coord_filters=["delta", "test.zlib"],
    )
    a = gs.create(stores(), schema)
    a.write_cells({"x": [3, 1]}, {"v": ["a", "b"]})
    assert a.read().to_arrow().to_pydict() == {"x": [1, 3], "v": ["b", "a"]}


def test_names_and_functions_are_checked(stores: Stores) -> None:
    for bad in ("xor", "a.", "a b.c", "a.b:3", ""):
        with pytest.raises(InputError, match="name with a dot"):
            gs.register_filter(bad, encode=xor, decode=xor)
    with pytest.raises(InputError, match="decode="):
        gs.register_filter("test.none", encode=xor, decode=None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="text"):
        gs.register_filter(3, encode=xor, decode=xor)  # type: ignore[arg-type]
    with pytest.raises(ExistsError, match=r"test\.xor"):
        gs.register_filter("test.xor", encode=xor, decode=xor)
    assert "test.xor" in gs.registered_filters() and "test.none" not in gs.registered_filters()
    with pytest.raises(SchemaError, match="at most 4"):
        array(stores("too-many"), ["test.xor"] * 5)
    with pytest.raises(SchemaError, match="no level"):
        array(stores("level"), "test.xor:3")


def elsewhere(code: str, uri: Path) -> str:
    """What another process prints, which has registered nothing."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(uri)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("between_processes")
def test_one_that_is_missing_is_told_where_it_is_needed(stores: Stores) -> None:
    a = array(stores("a"), ["shuffle", "test.zlib"], more=[gs.Attr("w", "int8")])
    a.write({"v": np.arange(100_000, dtype="int32"), "w": 3})
    told = elsewhere(
        """
        import sys, gridstone as gs
        a = gs.open(sys.argv[1], mode="r+")
        print(a.schema.attr("v").filters, a["w"][5], a.shape)
        for work in (lambda: a["v"][5], lambda: a.read(where="v == 3"), a.verify, lambda: a["v"].__setitem__(5, 3)):
            try:
                work()
            except gs.errors.UnsupportedError as error:
                print(error)
        gs.register_filter("test.zlib", encode=lambda d, w: d, decode=lambda d, w: __import__("zlib").decompress(d))
        print(a["v"][5])
        """,
        stores("a"),
    ).splitlines()
    assert told[0] == "shuffle,test.zlib 3 (100000,)" and len(told) == 6
    assert all("'test.zlib'" in line.replace('"', "'") and "gridstone.register_filter" in line for line in told[1:5]), (
        told
    )
    assert told[5] == "5"


def test_what_functions_raise_is_told(stores: Stores) -> None:
    a = array(stores("a"), "test.wrong")

    def raises(data: bytes, width: int) -> bytes:
        raise KeyError("no such thing")

    gs.register_filter("test.wrong", encode=raises, decode=raises, overwrite=True)
    with pytest.raises(InputError, match=r"test\.wrong.*encode of \d+ bytes raised KeyError: 'no such thing'"):
        a[...] = 1
    assert a.version == 1
    gs.register_filter("test.wrong", encode=xor, decode=raises, overwrite=True)
    a[...] = 1
    with pytest.raises(CorruptionError, match=r"attribute.*decode.*KeyError"):
        a[5]
    found = a.verify()["damage"]
    assert found and "no such thing" in str(found)


@pytest.mark.parametrize("given", [b"", b"x", b"x" * 10**6, "text", 7, None, [1, 2]])
def test_what_decode_gives_is_checked(stores: Stores, given: Any) -> None:
    a = array(stores("a"), "test.other")
    gs.register_filter("test.other", encode=xor, decode=lambda data, width: given, overwrite=True)
    a[...] = 1
    with pytest.raises(CorruptionError, match=r"test\.other"):
        a[5]


@pytest.mark.parametrize("given", ["text", 7, None, b"x" * 10**6])
def test_what_encode_gives_is_checked(stores: Stores, given: Any) -> None:
    a = array(stores("a"), "test.other")
    gs.register_filter("test.other", encode=lambda data, width: given, decode=xor, overwrite=True)
    with pytest.raises(InputError, match=r"test\.other"):
        a[...] = 1
    for kind in (bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)):
        gs.register_filter("test.other", encode=lambda d, w, kind=kind: kind(d), decode=lambda d, w: d, overwrite=True)
        a[...] = 7
        assert a[3] == 7


def test_widths_are_those_of_values(stores: Stores) -> None:
    seen: dict[str, set[int]] = {"int16": set(), "float64": set(), "complex64": set(), "string": set()}
    for dtype, widths in seen.items():
        gs.register_filter(
            "test.seen", encode=lambda d, w, s=widths: (s.add(w), d)[1], decode=lambda d, w: d, overwrite=True
        )
        array(stores(), "test.seen", dtype)[5] = "a" if dtype == "string" else 1
    assert seen == {"int16": {2}, "float64": {8}, "complex64": {4}, "string": {1}}


def test_threads_share_them(stores: Stores) -> None:
    a = array(stores("a"), "test.zlib")
    values = np.arange(100_000, dtype="int32")
    a[...] = values
    wrong: list[Any] = []

    def read() -> None:
        for start in range(0, 90_000, 30_000):
            if not np.array_equal(gs.open(stores("a"))[start : start + 9_000], values[start : start + 9_000]):
                wrong.append(start)

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def _sum(a: gs.Array, answer: Any) -> None:
    answer.put(int(a[:1_000].sum()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_forked_processes_have_them(store_uri: str) -> None:
    a = array(store_uri, "test.zlib")
    a[...] = np.arange(100_000, dtype="int32")
    assert a[999] == 999
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    process = context.Process(target=_sum, args=(pickle.loads(pickle.dumps(a)), answer))
    process.start()
    assert answer.get(timeout=60) == 999 * 1_000 // 2
    process.join(60)
    assert process.exitcode == 0


@pytest.mark.usefixtures("between_processes")
def test_an_interrupt_stops_them(stores: Stores) -> None:
    a = array(stores("a"), "test.slow")
    gs.register_filter("test.slow", encode=xor, decode=xor, overwrite=True)
    a[...] = 1
    told = elsewhere(
        """
        import _thread, sys, threading, time, gridstone as gs
        def slow(data, width):
            time.sleep(0.2)
            return bytes(byte ^ (0x50 | width) for byte in data)
        gs.register_filter("test.slow", encode=slow, decode=slow)
        a = gs.open(sys.argv[1], context=gs.Context(threads=1))
        threading.Timer(0.5, _thread.interrupt_main).start()
        start = time.monotonic()
        try:
            a[...]
        except KeyboardInterrupt:
            print("stopped", time.monotonic() - start < 1.9)
        """,
        stores("a"),
    )
    assert told.split() == ["stopped", "True"]


@pytest.mark.usefixtures("between_processes")
def test_one_that_ends_the_program_stops_the_work(stores: Stores) -> None:
    def leave(data: bytes, width: int) -> bytes:
        raise SystemExit(3)

    a = array(stores("a"), "test.leave")
    gs.register_filter("test.leave", encode=leave, decode=leave, overwrite=True)
    with pytest.raises(KeyboardInterrupt, match="SystemExit"):
        a[...] = 1
    assert a.version == 1


def test_damage_is_found_before_a_function_sees_it(tmp_path: Path) -> None:
    seen: list[int] = []
    gs.register_filter(
        "test.count", encode=xor, decode=lambda d, w: (seen.append(len(d)), xor(d, w))[1], overwrite=True
    )
    a = array(tmp_path / "a.gs", "test.count")
    a[...] = np.random.default_rng(1).integers(0, 2**31, 100_000).astype("int32")
    [file] = (tmp_path / "a.gs" / "_data").glob("*.frag")
    raw = bytearray(file.read_bytes())
    raw[5_000] ^= 1
    file.chmod(0o644)
    file.write_bytes(raw)
    with pytest.raises(CorruptionError, match="checksum"):
        gs.open(tmp_path / "a.gs")[0:10_000]
    assert not seen or len(gs.open(tmp_path / "a.gs").verify()["damage"]) == 1


def test_an_unregistered_one_may_be_named_in_a_schema(stores: Stores) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int8", filters="nobody.knows")])
    assert schema.attr("v").filters == "nobody.knows"
    a = gs.create(stores(), schema)
    with pytest.raises(UnsupportedError, match=r"nobody\.knows.*register_filter"):
        a[...] = 1
    a.alter(filters={"v": "zstd"})
    a[...] = 1
    assert a[3] == 1
