"""Small files of every layout and filter, cut and damaged: the right values, or an error of this package.

A file without checksums may change its values silently. Then the format's library, which reads the same bytes, says
what is right. Where it refuses a file over one change that does not matter, the values are those of the sound file.
"""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from .readers import Outcome, Reader

h5py = pytest.importorskip("h5py")

MEMORY_BYTES_MAX = 1 << 30
"""What a process that reads small files may come to have; a chunk that a header declares is at most 1 GiB."""
NUMBERS = np.arange(9 * 14, dtype="<i4").reshape(9, 14) * 7
COMPOUND = np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "S3"), ("d", "<u4", (2,))])


def _filters() -> dict[str, dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {
        "deflate": {"compression": "gzip", "shuffle": True},
        "fletcher": {"fletcher32": True},
        "lzf": {"compression": "lzf", "fletcher32": True},
        "szip": {"compression": "szip"},
        "scale-offset": {"scaleoffset": 0},
    }
    try:
        import hdf5plugin
    except ImportError:
        return made
    return made | {
        "zfp": dict(hdf5plugin.Zfp(reversible=True)),
        "blosc": dict(hdf5plugin.Blosc(cname="lz4", shuffle=1)),
        "blosc2": dict(hdf5plugin.Blosc2()),
        "bitshuffle": dict(hdf5plugin.Bitshuffle(cname="lz4")),
        "zstd": dict(hdf5plugin.Zstd()),
        "lz4": dict(hdf5plugin.LZ4()),
        "bzip2": dict(hdf5plugin.BZip2()),
        "sz": dict(hdf5plugin.SZ(absolute=0.5)),
    }


def _hdf5(fill: Callable[[Any], None], libver: Any) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver=libver) as file:
        fill(file)
    return buffer.getvalue()


def _layouts(file: Any) -> None:
    file.attrs["title"] = "layouts"
    file["contiguous"] = NUMBERS
    file["big"] = NUMBERS.astype(">f4")
    file["record"] = np.zeros((3, 4), COMPOUND)
    file.create_dataset("chunks", data=NUMBERS, chunks=(4, 5), fillvalue=-1)
    file.create_dataset("grows", data=NUMBERS, chunks=(4, 5), maxshape=(None, 14), compression="gzip")
    file.create_dataset("grows2", data=NUMBERS, chunks=(4, 5), maxshape=(None, None))
    file.create_dataset("some", (40, 14), "<i4", chunks=(4, 5), fillvalue=9)[3:8, 2:9] = 1
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((9, 14))
    compact = h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I32LE, space, plist)
    compact.write(h5py.h5s.ALL, h5py.h5s.ALL, NUMBERS)
    scale = file.create_dataset("x", data=np.arange(14.0))
    scale.make_scale("x")
    file["contiguous"].dims[1].attach_scale(scale)
    file["enumeration"] = np.zeros(5, h5py.enum_dtype({"a": 0, "b": 1}, "i1"))
    file["texts"] = np.asarray([b"one", b"three", b""], "S5")


def _heaps(file: Any) -> None:
    file.create_dataset("texts", (9,), h5py.string_dtype())[:] = [f"text {n}" * n for n in range(9)]
    lists = file.create_dataset("inner/lists", (7,), h5py.vlen_dtype("<i4"))
    for place in range(7):
        lists[place] = np.arange(place)
    record = np.dtype([("n", "<i4"), ("t", h5py.string_dtype())])
    file.create_dataset("record", (3,), record, chunks=(2,))[:] = [(1, b"a"), (2, b"bb"), (3, b"")]


def _made() -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    for libver in ("earliest", "latest"):
        made[f"layouts, {libver}"] = _hdf5(_layouts, libver)
        made[f"heaps, {libver}"] = _hdf5(_heaps, libver)
        for name, options in _filters().items():
            values = NUMBERS if name != "sz" else NUMBERS.astype("<f4")
            if name == "zfp":
                values = NUMBERS.astype("<f8")

            def fill(file: Any, options: dict[str, Any] = options, values: Any = values) -> None:
                file.create_dataset("d", data=values, chunks=(5, 7), **options)

            made[f"{name}, {libver}"] = _hdf5(fill, libver)
    buffer = io.BytesIO()
    np.save(buffer, NUMBERS)
    made["numpy"] = buffer.getvalue()
    return made | _netcdf()


def _netcdf() -> dict[str, bytes]:
    try:
        import netCDF4
    except ImportError:
        return {}
    made = {}
    for kind in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF4"):
        file = netCDF4.Dataset("memory", "w", format=kind, memory=1 << 14)
        file.createDimension("t", None)
        file.createDimension("x", 14)
        file.createVariable("t", "f8", ("t",))[:] = np.arange(9)
        file.createVariable("v", "i4", ("t", "x"))[:] = NUMBERS
        made[kind] = bytes(file.close())
    return made


FILES = _made()
NAMES = sorted(FILES)


class Bench:
    """Both readers, and what they read of the sound files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.attached, self.peer = Reader("attached", folder, 40.0), Reader("peer", folder, 10.0)
        self._sound: dict[str, Outcome] = {}
        self._number = 0

    def put(self, data: bytes, suffix: str = ".h5") -> Path:
        """A file with these bytes."""
        self._number += 1
        path = self.folder / f"{self._number}{suffix}"
        path.write_bytes(data)
        return path

    def sound(self, name: str) -> Outcome:
        """What this package reads of a sound file."""
        if name not in self._sound:
            found = self.attached.read(self.put(FILES[name]))
            assert isinstance(found, Outcome)
            self._sound[name] = found
        return self._sound[name]

    def check(self, name: str, data: bytes, changes: int = 1) -> Outcome:
        """Reads damaged bytes both ways, and compares. One of several changes may hide another from the peer."""
        sound, path = self.sound(name), self.put(data)
        found = self.attached.read(path)
        assert isinstance(found, Outcome), found
        assert found.foreign_errors == []
        assert found.memory_bytes < MEMORY_BYTES_MAX, found.memory_bytes
        peer = self.peer.read(path) if found.values else Outcome()
        expected = peer.values if isinstance(peer, Outcome) else {}
        path.unlink()
        for (dataset, member), values in found.values.items():
            if (dataset, member) in expected and same(values, expected[dataset, member]):
                continue
            unseen = changes > 1 and (dataset, member) not in expected
            alike = unseen or [one for one in sound.values.values() if same(values, one)]
            told = peer.errors if isinstance(peer, Outcome) else peer
            assert alike, (dataset, member, values, expected.get((dataset, member)), told)
        return found

    def end(self) -> None:
        """Ends both processes."""
        self.attached.end()
        self.peer.end()


def same(a: Any, b: Any) -> bool:
    """Whether values are equal, bit for bit where they are numbers."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    if any(one.dtype.kind in "OTSUV" for one in (a, b)):
        return [plain(one) for one in a.ravel().tolist()] == [plain(one) for one in b.ravel().tolist()]
    native = [one.astype(one.dtype.newbyteorder("=")) for one in (a, b)]
    return native[0].dtype == native[1].dtype and native[0].tobytes() == native[1].tobytes()


def plain(value: Any) -> Any:
    """A text or a list of numbers in one form."""
    if isinstance(value, np.ndarray | list):
        return [plain(one) for one in value]
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    return value.rstrip(b"\0") if isinstance(value, bytes) else value


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("malformed"))
    yield made
    made.end()


@pytest.mark.parametrize("name", NAMES)
def test_sound_files_are_read_as_their_libraries_do(bench: Bench, name: str) -> None:
    found = bench.check(name, FILES[name])
    assert found.errors == {}
    assert found.values
    peer = bench.peer.read(bench.put(FILES[name]))
    assert isinstance(peer, Outcome)
    bare = {place for place in peer.values if name == "NETCDF4" and place[0] == "/x"}
    assert peer.values.keys() - bare == found.values.keys()
    assert all(same(values, peer.values[place]) for place, values in found.values.items())


@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(name=st.sampled_from(NAMES), share=st.floats(0, 1, exclude_max=True), near=st.sampled_from([0, 1, 2, 8, 24]))
@example(name="layouts, earliest", share=0.0, near=0)
@example(name="numpy", share=0.0, near=8)
def test_files_that_were_cut(bench: Bench, name: str, share: float, near: int) -> None:
    data = FILES[name]
    length = int(share * len(data)) if near == 0 else max(0, len(data) - near if share > 0.5 else near * 4 - 1)
    found = bench.check(name, data[:length])
    if length < 4:
        assert "/" in found.errors


Edit = tuple[int, bytes]
"""Where a file is changed, and to what."""


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """A file, and changes of some bytes, more often near its begin and in runs."""
    name = draw(st.sampled_from(NAMES))
    data, edits = FILES[name], []
    for _ in range(draw(st.integers(1, 3))):
        near = draw(st.sampled_from([256, 2048, len(data)]))
        at = draw(st.integers(0, min(near, len(data)) - 1))
        run = min(draw(st.sampled_from([1, 1, 2, 4, 8])), len(data) - at)
        match draw(st.sampled_from(["bit", "byte", "ones", "zeros", "copy"])):
            case "bit":
                edits.append((at, bytes([data[at] ^ 1 << draw(st.integers(0, 7))])))
            case "byte":
                edits.append((at, bytes([draw(st.integers(0, 255))])))
            case "copy":
                other = draw(st.integers(0, len(data) - run))
                edits.append((at, data[other : other + run]))
            case kind:
                edits.append((at, (b"\xff" if kind == "ones" else b"\0") * run))
    return name, edits


@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(made=damages())
def test_files_with_damaged_bytes(bench: Bench, made: tuple[str, list[Edit]]) -> None:
    name, edits = made
    data = bytearray(FILES[name])
    for at, changed in edits:
        data[at : at + len(changed)] = changed
    bench.check(name, bytes(data), len(edits))
