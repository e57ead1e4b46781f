"""Chunks that Python libraries decode, and h5py in processes of its own: what they give, and what their ends become."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs
from gridstone.errors import CorruptionError, StorageError, UnsupportedError
from gridstone.foreign import child, decoders, filter_names, filters

h5py = pytest.importorskip("h5py")

VALUES = np.arange(600, dtype="<i4").reshape(20, 30)
DIES = """
import json, os, runpy, signal, sys
sys.path[:] = json.loads(sys.argv[1])
made = runpy.run_path(sys.argv[2])
answers = made["Server"].answers
def dies(self, asked, body):
    given = 0
    for reply in answers(self, asked, body):
        if asked["do"] == DO and given >= AFTER:
            HOW
        given += 1
        yield reply
made["Server"].answers = dies
made["main"]()
"""


@pytest.fixture
def _own_children() -> Iterator[None]:
    """Children of this test alone, and decoders that are found anew."""
    child.CHILDREN.end()
    decoders.decoder.cache_clear()
    yield
    child.CHILDREN.end()
    decoders.decoder.cache_clear()


def _dying(monkeypatch: pytest.MonkeyPatch, do: str, how: str, after: int = 0) -> None:
    """Children that end as `how` says when they are asked to `do` something, after some answers."""
    code = DIES.replace("DO", repr(do)).replace("AFTER", str(after)).replace("HOW", how)
    monkeypatch.setattr(child, "_BEGIN", code)


def _szip(path: Path, values: np.ndarray[Any, Any] = VALUES) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=values, chunks=(7, 16), compression="szip")


def _attached(folder: Path, **options: Any) -> gs.Array:
    made = gs.attach(folder / "x.gs", folder / "x.h5", "/d", **options)
    assert isinstance(made, gs.Array)
    return made


def _lists(path: Path, count: int = 3000) -> list[list[int]]:
    made = [list(range(place % 5)) for place in range(count)]
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("d", (count,), h5py.vlen_dtype("<i8"))
        cells = np.empty(count, dtype=object)
        cells[:] = [np.asarray(one, "<i8") for one in made]
        dataset[...] = cells
    return made


def test_sources_say_which_library_decodes(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("d", data=VALUES, chunks=(7, 16), compression="szip", shuffle=True, fletcher32=True)
        file.create_dataset("e", data=VALUES, chunks=(7, 16), compression="gzip")
        file.create_dataset("f", data=VALUES)
    made = _attached(tmp_path)
    (told,) = made.sources.column("filters").to_pylist()
    assert told == "shuffle, szip by h5py, fletcher32"
    assert np.array_equal(made[...], VALUES)
    for name, expected in (("e", "deflate"), ("f", "none")):
        other = gs.attach(tmp_path / f"{name}.gs", tmp_path / "x.h5", f"/{name}")
        assert isinstance(other, gs.Array)
        assert other.sources.column("filters").to_pylist() == [expected]
    assert filter_names.told("numcodecs.zfpy:%7B%7D,hdf5.32013:1%2C2,hdf5.40000,lz4") == (
        "zfpy by numcodecs, ZFP by hdf5plugin, filter 40000 by hdf5plugin, lz4"
    )


def test_another_process_decodes_without_being_told(tmp_path: Path) -> None:
    _szip(tmp_path / "x.h5")
    _attached(tmp_path)
    code = """
import sys, gridstone as gs
a = gs.open(sys.argv[1])
assert a.shape == (20, 30) and "h5py" not in sys.modules and "gridstone.foreign.child" not in sys.modules
assert a[...].tolist() == [list(range(30 * n, 30 * n + 30)) for n in range(20)]
assert a.verify()["damage"] == [] and a.max() == 599
print("h5py" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.gs")], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


@pytest.mark.usefixtures("_own_children")
def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _szip(tmp_path / "x.h5")
    _lists(tmp_path / "l.h5")
    made = _attached(tmp_path)
    decoders.decoder.cache_clear()
    monkeypatch.setitem(sys.modules, "h5py", None)
    for work in (
        lambda: made[0],
        made.verify,
        lambda: gs.attach(tmp_path / "y.gs", tmp_path / "x.h5", "/d"),
        lambda: gs.attach(tmp_path / "z.gs", tmp_path / "l.h5", "/d"),
    ):
        with pytest.raises(UnsupportedError, match=r"h5py.*pip install 'gridstone\[hdf5\]'"):
            work()
    tree = gs.attach(tmp_path / "t.gs", tmp_path / "x.h5")
    assert isinstance(tree, gs.Group)
    assert "gridstone[hdf5]" in tree.meta["not attached"]["d"]
    assert not gs.exists(tmp_path / "y.gs")


@pytest.mark.usefixtures("_own_children")
def test_filters_that_nobody_has_are_refused_by_number(tmp_path: Path) -> None:
    for name in ("hdf5.0", "hdf5.65536", "hdf5.40001", "hdf5.x", "numcodecs.nobody", "numcodecs.pickle", "other.1"):
        with pytest.raises(UnsupportedError):
            decoders.decoder(name)
    with pytest.raises(UnsupportedError, match=r"filter 40001 \(mine\).*no decoder"):
        filters.pipeline([{"id": 40001, "parameters": [1], "name": "mine"}], 4)
    gs.register_filter("hdf5.40002", encode=lambda data, width: data, decode=lambda data, width: data, overwrite=True)
    assert filters.pipeline([{"id": 40002, "parameters": [1, 2]}], 4) == "hdf5.40002:1%2C2"


def test_what_decode_is_given_and_gives() -> None:
    import zlib

    decode = decoders.decoder("hdf5.1")
    packed = zlib.compress(b"abc" * 1000)
    assert decode(packed, "6", 3000) == b"abc" * 1000
    assert decode(packed, "6", 9000) == b"abc" * 1000  # its own length, not the room's
    for chunk, parameters, room in [(packed, "6", 2999), (b"", "6", 9), (packed[:-9], "6", 3000), (b"x" * 99, "6", 9)]:
        with pytest.raises(CorruptionError):
            decode(chunk, parameters, room)
    for parameters in ("x", "6,", "-1", "4294967296", "6;7", "٦"):
        with pytest.raises(CorruptionError, match="parameters"):
            decode(packed, parameters, 3000)
    assert decode(packed, "6", 3000) == b"abc" * 1000


def test_damaged_chunks_are_errors(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    _szip(tmp_path / "x.h5", random.integers(0, 1000, (20, 30), dtype="<i4"))
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        dataset = file["d"]
        _, raw = dataset.id.read_direct_chunk((0, 0))
        dataset.id.write_direct_chunk((0, 0), raw[: len(raw) // 2])
        dataset.id.write_direct_chunk((7, 0), b"\x10\x00\x00\x00" + raw[4:])
    made = _attached(tmp_path)
    for place in (0, 7):
        with pytest.raises(CorruptionError, match=r"tile \d, attribute 0.*decodes to \d+ bytes; 448 were expected"):
            made[place, 0]
    assert made[15, 20] >= 0
    assert len(made.verify()["damage"]) > 0


@pytest.mark.usefixtures("_own_children")
@pytest.mark.parametrize(
    ("how", "error", "told"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", CorruptionError, "SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGKILL)", StorageError, "SIGKILL"),
        ("os.abort()", CorruptionError, "SIGABRT"),
        ("sys.stderr.write('out of luck\\n'); sys.stderr.flush(); os._exit(3)", StorageError, "status 3: out of luck"),
    ],
)
def test_a_death_while_a_chunk_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, error: type[Exception], told: str
) -> None:
    _szip(tmp_path / "x.h5")
    made = _attached(tmp_path)
    child.CHILDREN.end()
    with monkeypatch.context() as patched:
        _dying(patched, "decode", how)
        with pytest.raises(error, match=rf"szip.*{told}"):
            made[...]
    # The next one starts another process.
    assert np.array_equal(made[...], VALUES)


@pytest.mark.usefixtures("_own_children")
def test_what_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _lists(tmp_path / "x.h5")
    with monkeypatch.context() as patched:
        patched.setattr(child, "ANSWER_S_MAX", 4.0)
        for after in (0, 1):
            _dying(patched, "copy", "signal.pause()", after)
            with pytest.raises(UnsupportedError, match=r"x\.h5.*no answer for 4 s"):
                _attached(tmp_path)
    assert not (tmp_path / "x.gs").exists()
    assert [one.tolist() for one in _attached(tmp_path)[...]] == expected


@pytest.mark.skipif(sys.platform != "linux", reason="memory is filled by glibc")
def test_output_that_a_filter_does_not_write_is_refused() -> None:
    with h5py.File("szip", "w", driver="core", backing_store=False) as file:
        values = np.arange(9 * 14, dtype="<i4").reshape(9, 14) * 7
        dataset = file.create_dataset("d", data=values[:5, :7], chunks=(5, 7), compression="szip")
        packed = dataset.id.read_direct_chunk((0, 0))[1]
        parameters = ",".join(str(value) for value in dataset.id.get_create_plist().get_filter(0)[2])
    decode = decoders.decoder("hdf5.4")
    assert decode(packed, parameters, 140) == values[:5, :7].tobytes()
    assert decode(packed, parameters, 140) == values[:5, :7].tobytes()  # What is left in memory may be these values.
    outcomes = set()
    for place in range(4, len(packed)):
        for bit in range(8):
            damaged = bytearray(packed)
            damaged[place] ^= 1 << bit
            found = [_outcome(decode, bytes(damaged), parameters) for _ in range(3)]
            assert found[0] == found[1] == found[2]
            outcomes.add(found[0] if isinstance(found[0], str) else "values")
    assert {"unwritten", "values"} <= outcomes


def _outcome(decode: decoders.Decode, chunk: bytes, parameters: str) -> Any:
    try:
        return bytes(decode(chunk, parameters, 140))
    except CorruptionError as error:
        return "unwritten" if "unwritten" in str(error) else "refused"


@pytest.mark.usefixtures("_own_children")
@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize(("how", "error"), [("SIGSEGV", UnsupportedError), ("SIGKILL", StorageError)])
def test_a_death_while_values_are_copied_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, error: type[Exception], after: int
) -> None:
    expected = _lists(tmp_path / "x.h5")
    with monkeypatch.context() as patched:
        _dying(patched, "copy", f"os.kill(os.getpid(), signal.{how})", after)
        with pytest.raises(error, match=rf"x\.h5.*/d.*{how}"):
            _attached(tmp_path)
    assert not (tmp_path / "x.gs").exists()
    assert [one.tolist() for one in _attached(tmp_path)[...]] == expected


@pytest.mark.usefixtures("_own_children")
def test_ctrl_c_stops_a_copy_and_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _lists(tmp_path / "x.h5")
    (tmp_path / "pid").touch()
    waits = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); import time; time.sleep(60)"
    _dying(monkeypatch, "copy", waits)

    def interrupt() -> None:
        while not (tmp_path / "pid").read_text():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    beside = threading.Thread(target=interrupt)
    beside.start()
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _attached(tmp_path)
    beside.join()
    assert time.monotonic() - before < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert not (tmp_path / "x.gs").exists()


@pytest.mark.usefixtures("_own_children")
def test_one_process_serves_all_portions_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [_lists(tmp_path / f"x_{number}.h5", 2500) for number in range(3)]
    started: list[int] = []
    begin = child.Child.__init__

    def counted(self: child.Child) -> None:
        begin(self)
        started.append(self.process.pid)

    monkeypatch.setattr(child.Child, "__init__", counted)
    made = gs.attach(tmp_path / "x.gs", tmp_path / "x_*.h5", "/d", concat="d0")
    assert isinstance(made, gs.Array)
    assert [one.tolist() for one in made[...]] == [one for part in expected for one in part]
    assert len(started) == 1
    monkeypatch.setattr(child, "_IDLE_S", 0.0)
    child.CHILDREN._end_idle()
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_big_endian_lists_are_in_this_machines_order(tmp_path: Path) -> None:
    record = np.dtype([("n", "<i4"), ("v", h5py.vlen_dtype(">f4"))])
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, dtype in (("i", ">i2"), ("j", "<u8"), ("f", ">f8")):
            file.create_dataset(name, (3,), h5py.vlen_dtype(dtype))[1] = [1, 2, 300]
        compound = np.zeros(2, record)
        compound["v"][0], compound["v"][1] = np.asarray([1.5, 2], ">f4"), np.asarray([], ">f4")
        file.create_dataset("c", data=compound)
        assert b"\x00\x01\x00\x02\x01\x2c" in (tmp_path / "x.h5").read_bytes() or file.flush() is None
    assert b"\x00\x01\x00\x02\x01\x2c" in (tmp_path / "x.h5").read_bytes()
    tree = gs.attach(tmp_path / "x.gs", tmp_path / "x.h5")
    assert isinstance(tree, gs.Group)
    for name in "ijf":
        assert [one.tolist() for one in tree[name][...]] == [[], [1, 2, 300], []]  # type: ignore[index]


def test_reads_inside_a_callback_of_h5py_do_not_wait_for_its_lock(tmp_path: Path) -> None:
    _szip(tmp_path / "x.h5")
    code = """
import sys, h5py, gridstone as gs
a = gs.open(sys.argv[1])
found = []
with h5py.File(sys.argv[2]) as file:
    file.visititems(lambda name, item: found.append(int(a[...].sum())))
print(found)
"""
    _attached(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.gs"), str(tmp_path / "x.h5")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == f"[{VALUES.sum()}]", done.stderr


def _sum(uri: str) -> int:
    found: int = int(gs.open(uri)[...].sum())  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_processes_of_every_kind_decode(tmp_path: Path, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system does not {method}")
    _szip(tmp_path / "x.h5")
    made = _attached(tmp_path)
    assert made[...].sum() == VALUES.sum()  # There is an idle child now.
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(_sum, [made.uri] * 4).get(60) == [VALUES.sum()] * 4
    assert made.at(version=made.version)[...].sum() == VALUES.sum()


def test_many_threads_decode_at_once(tmp_path: Path) -> None:
    _szip(tmp_path / "x.h5", np.arange(24_000, dtype="<i4").reshape(80, 300))
    made = _attached(tmp_path)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(int(gs.open(made.uri)[...].astype("i8").sum())))  # type: ignore[union-attr]
        for _ in range(6)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert found == [sum(range(24_000))] * 6


def test_codecs_of_numcodecs() -> None:
    numcodecs = pytest.importorskip("numcodecs")
    values = np.arange(1000, dtype="<i4")
    raw = values.tobytes()
    for codec in (numcodecs.Zlib(3), numcodecs.LZMA(), numcodecs.Delta("<i4", "<i2"), numcodecs.Quantize(3, "<f8")):
        given = values.astype("<f8") if codec.codec_id == "quantize" else values
        packed = bytes(memoryview(np.ascontiguousarray(codec.encode(given))).cast("B"))
        config = {key: value for key, value in codec.get_config().items() if key != "id"}
        made = decoders.decoder(f"numcodecs.{codec.codec_id}")(packed, json.dumps(config), 8000)
        assert bytes(made) == given.tobytes()
    zlib = decoders.decoder("numcodecs.zlib")
    for chunk, parameters, room, error in [
        (b"not zlib", "", 9, CorruptionError),
        (numcodecs.Zlib().encode(raw), "", 3999, CorruptionError),
        (numcodecs.Zlib().encode(raw), '{"level": 1, "nonsense": 2}', 4000, UnsupportedError),
        (numcodecs.Zlib().encode(raw), "[]", 4000, UnsupportedError),
        (numcodecs.Zlib().encode(raw), '{"level"', 4000, UnsupportedError),
    ]:
        with pytest.raises(error):
            zlib(chunk, parameters, room)
    # No parameters make another codec of it, least of all one that runs what it reads.
    assert bytes(zlib(numcodecs.Zlib().encode(raw), '{"id": "pickle"}', 4000)) == raw


def test_pcodec_of_numcodecs() -> None:
    pytest.importorskip("pcodec")
    numcodecs = pytest.importorskip("numcodecs")
    from numcodecs.pcodec import PCodec

    assert numcodecs is not None
    values = np.cumsum(np.arange(500)).astype("<f8")
    made = decoders.decoder("numcodecs.pcodec")(bytes(PCodec().encode(values)), "{}", 4000)
    assert bytes(made) == values.tobytes()


def test_the_core_decodes_by_numcodecs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numcodecs")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("d", data=VALUES, chunks=(7, 16), compression="gzip")
        file["d"].id.write_direct_chunk((7, 16), b"not zlib")
    name = "numcodecs.zlib:" + json.dumps({"level": 1}).replace(" ", "%20").replace(",", "%2C")
    monkeypatch.setattr("gridstone.foreign.pieces.pipeline", lambda given, size: name)
    made = _attached(tmp_path)
    assert made.sources.column("filters").to_pylist() == ["zlib by numcodecs"]
    assert np.array_equal(made[:7], VALUES[:7])
    with pytest.raises(CorruptionError, match=r"zlib cannot decode"):
        made[7, 16]


def test_a_short_chunk_of_lzma_cannot_take_all_memory() -> None:
    numcodecs = pytest.importorskip("numcodecs")
    import tracemalloc

    packed = bytes(numcodecs.LZMA().encode(np.zeros(64 << 20, "u1")))
    assert len(packed) < 1 << 16
    decode = decoders.decoder("numcodecs.lzma")
    tracemalloc.start()
    with pytest.raises(CorruptionError, match="at most 1000 were expected"):
        decode(packed, "{}", 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20
