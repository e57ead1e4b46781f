"""Arrays of Zarr in every type, codec and order of chunks, attached: equal to what zarr-python reads."""

import hashlib
import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gridstone as gs

zarr = pytest.importorskip("zarr", minversion="3")
numcodecs = pytest.importorskip("numcodecs")

from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

NUMBERS = [*("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"), *("f2", "f4", "f8", "c8", "c16")]
TYPES = [
    *(f"{order}{name}" for name in NUMBERS for order in "<>"),
    "?",
    "S5",
    "U3",
    "V3",
    "<M8[us]",
    "<m8[s]",
    "<M8[10s]",
]
COMPOUND = np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "S3")])


def folder_hash(path: Path) -> str:
    """A hash of all files in a folder, their names and times."""
    found = hashlib.sha256()
    for one in sorted(path.rglob("*")):
        found.update(str(one.relative_to(path)).encode())
        if one.is_file():
            found.update(one.read_bytes())
            found.update(str(one.stat().st_mtime_ns).encode())
    return found.hexdigest()


def values_of(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Any bits there are, for floats too."""
    random = np.random.default_rng(seed)
    if dtype.kind == "U":
        letters = np.array(["", "a", "ä€", "\U0001f600bc"], dtype=dtype)
        return letters[random.integers(0, 4, shape)]
    raw = random.integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8)
    if dtype == np.bool_:
        return (raw[..., 0] % 2).astype(bool)
    if dtype.kind == "S":
        raw = np.where(raw < 200, 65 + raw % 26, 0).astype(np.uint8)
    return np.ascontiguousarray(raw).view(dtype).reshape(shape)


def same(found: Any, expected: np.ndarray[Any, Any]) -> None:
    """The same cells, bit by bit; those of Zarr in this machine's order."""
    found = np.asarray(found)
    assert found.shape == expected.shape
    if expected.dtype.kind == "U":
        assert found.tolist() == expected.tolist()
        return
    native = expected.astype(expected.dtype.newbyteorder("="))
    if native.dtype.kind in "VS" or found.dtype.kind == "V":
        wide = (np.uint8, native.dtype.itemsize)
        assert (np.ascontiguousarray(found).view(wide) == np.ascontiguousarray(native).view(wide)).all()
        return
    assert found.dtype == native.dtype
    assert found.tobytes() == native.tobytes()


COMPRESSORS_2: list[Any] = [
    None,
    numcodecs.Zlib(1),
    numcodecs.GZip(1),
    numcodecs.BZ2(1),
    numcodecs.Zstd(1),
    numcodecs.LZ4(),
    *(numcodecs.Blosc(name, 5, shuffle) for name in ("lz4", "zstd", "blosclz", "zlib") for shuffle in (0, 1, 2)),
]
COMPRESSORS_3: list[Any] = [
    None,
    [GzipCodec(level=1)],
    [ZstdCodec(level=1, checksum=True)],
    [BloscCodec(cname="lz4", shuffle="shuffle")],
    [BloscCodec(cname="zstd", shuffle="bitshuffle")],
    [Crc32cCodec()],
    [GzipCodec(level=1), Crc32cCodec()],
]


@st.composite
def arrays(draw: st.DrawFn) -> dict[str, Any]:
    """An array: shape, type, chunks, version, order, codecs, keys, shards, and which part of it is written."""
    ndim = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, (40, 14, 7, 5)[ndim - 1])) for _ in range(ndim))
    version = draw(st.sampled_from([2, 3]))
    made = {
        "shape": shape,
        "chunks": tuple(draw(st.integers(1, size + 2)) for size in shape),
        "dtype": np.dtype(draw(st.sampled_from(TYPES))),
        "version": version,
        "separator": draw(st.sampled_from(["/", "."])),
        "written": draw(st.sampled_from(["all", "all", "some", "none"])),
        "seed": draw(st.integers(0, 2**32)),
    }
    if version == 2:
        return made | {"order": draw(st.sampled_from("CF")), "packed": draw(st.sampled_from(COMPRESSORS_2))}
    turn = draw(st.permutations(range(ndim)))
    shards = tuple(side * draw(st.integers(1, 3)) for side in made["chunks"])
    return made | {
        "packed": draw(st.sampled_from(COMPRESSORS_3)),
        "transposed": turn if draw(st.booleans()) else None,
        "shards": shards if draw(st.booleans()) else None,
        "encoding": draw(st.sampled_from(["default", "v2"])),
        "index": draw(st.sampled_from(["start", "end"])),
    }


def create(path: Path, made: dict[str, Any]) -> Any:
    """The array in a folder, still empty."""
    dtype = made["dtype"]
    fill = values_of(dtype, (1,), made["seed"] + 1)[0]
    given: dict[str, Any] = {"shape": made["shape"], "chunks": made["chunks"], "dtype": dtype, "fill_value": fill}
    if made["version"] == 2:
        keys = {"name": "v2", "separator": made["separator"]}
        given |= {"order": made["order"], "compressors": made["packed"], "filters": made.get("filters")}
    else:
        keys = {"name": made["encoding"], "separator": made["separator"]}
        filters = None if made["transposed"] is None else [TransposeCodec(order=made["transposed"])]
        shards = made["shards"] and {"shape": made["shards"], "index_location": made["index"]}
        given |= {"compressors": made["packed"], "filters": filters, "shards": shards}
    return zarr.create_array(path, zarr_format=made["version"], chunk_key_encoding=keys, **given)


def write(path: Path, made: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Writes the array; gives what zarr reads of it."""
    array = create(path, made)
    values = values_of(made["dtype"], made["shape"], made["seed"])
    if made["written"] == "all":
        array[...] = values
    elif made["written"] == "some":
        part = tuple(slice(size // 3, size // 3 + max(1, size // 2)) for size in made["shape"])
        array[part] = values[part]
    return np.asarray(zarr.open_array(path, mode="r")[...])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(made=arrays(), data=st.data())
def test_attached_arrays_are_those_that_zarr_reads(
    tmp_path_factory: pytest.TempPathFactory, made: dict[str, Any], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("zarr")
    expected = write(folder / "x.zarr", made)
    before = folder_hash(folder / "x.zarr")
    a = gs.attach(folder / "x.gs", folder / "x.zarr", "/")
    assert isinstance(a, gs.Array)
    same(a.read()["array"], expected)
    box = tuple(
        slice(low, data.draw(st.integers(low + 1, size)), data.draw(st.integers(1, 3)))
        for size in expected.shape
        for low in [data.draw(st.integers(0, size - 1))]
    )
    same(a[box], expected[box])
    points = [
        np.asarray(data.draw(st.lists(st.integers(0, size - 1), min_size=5, max_size=5))) for size in expected.shape
    ]
    same(a.vindex[tuple(points)], expected[tuple(points)])
    assert folder_hash(folder / "x.zarr") == before


PLAIN_2 = {"shape": (23, 9), "chunks": (5, 4), "dtype": np.dtype("<i4"), "version": 2, "separator": ".", "order": "C",
           "written": "all", "seed": 3, "packed": None}  # fmt: skip
PLAIN_3 = {"shape": (23, 9), "chunks": (5, 4), "dtype": np.dtype("<i4"), "version": 3, "separator": "/",
           "encoding": "default", "written": "all", "seed": 3, "packed": None, "transposed": None, "shards": None,
           "index": "end"}  # fmt: skip
SHARDED = PLAIN_3 | {"shards": (10, 8), "packed": [ZstdCodec(level=1)]}


@pytest.mark.parametrize("packed", COMPRESSORS_2, ids=str)
@pytest.mark.parametrize("dtype", ["<i2", ">f8", "S5"])
def test_every_compressor_of_version_2(tmp_path: Path, dtype: str, packed: Any) -> None:
    expected = write(tmp_path / "x.zarr", PLAIN_2 | {"dtype": np.dtype(dtype), "packed": packed})
    same(gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", "/")[...], expected)


@pytest.mark.parametrize("packed", COMPRESSORS_3, ids=str)
@pytest.mark.parametrize(("shards", "index"), [(None, "end"), ((10, 8), "end"), ((15, 4), "start")])
def test_every_codec_of_version_3(tmp_path: Path, packed: Any, shards: Any, index: str) -> None:
    made = PLAIN_3 | {"packed": packed, "shards": shards, "index": index, "transposed": (1, 0)}
    expected = write(tmp_path / "x.zarr", made)
    same(gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", "/")[...], expected)


FILTERS = [
    [numcodecs.Delta("<i4")],
    [numcodecs.Delta("<i4", "<i2")],
    [numcodecs.Shuffle(4)],
    [numcodecs.FixedScaleOffset(10, 0.5, "<i4", "<i8")],
    [numcodecs.Delta("<i4"), numcodecs.Shuffle(4), numcodecs.Fletcher32()],
    [numcodecs.Fletcher32()],
    [numcodecs.CRC32C(location="end")],
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("order", "CF")
def test_filters_of_version_2(tmp_path: Path, filters: Any, order: str) -> None:
    array = create(tmp_path / "x.zarr", PLAIN_2 | {"filters": filters, "packed": numcodecs.Zlib(1), "order": order})
    array[...] = np.arange(23 * 9, dtype="<i4").reshape(23, 9) * 2
    same(gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", "/")[...], array[...])


def test_numcodecs_in_version_3(tmp_path: Path) -> None:
    codecs = pytest.importorskip("numcodecs.zarr3")
    values = np.arange(23 * 9, dtype="<i4").reshape(23, 9) * 2
    cases: dict[str, dict[str, Any]] = {
        "bz2": {"compressors": [codecs.BZ2(level=1)]},
        "lz4": {"compressors": [codecs.Shuffle(elementsize=4), codecs.LZ4()]},
        "delta": {"filters": [codecs.Delta(dtype="<i4")], "compressors": [codecs.Zlib(level=1)]},
        "scaled": {"filters": [codecs.FixedScaleOffset(offset=0, scale=0.5, dtype="<i4", astype="<i2")]},
    }
    for name, given_ in cases.items():
        array = zarr.create_array(tmp_path / name, shape=(23, 9), chunks=(5, 4), dtype="<i4", **given_)
        array[...] = values
        same(gs.attach(tmp_path / f"{name}.gs", tmp_path / name, "/")[...], values)


@pytest.mark.parametrize("version", [2, 3])
def test_records_become_attributes(tmp_path: Path, version: int) -> None:
    dtype = COMPOUND if version == 2 else np.dtype([("a", "<i2"), ("b", "<f8"), ("c", "S3")])
    array = zarr.create_array(tmp_path / "x", shape=(7,), chunks=(3,), dtype=dtype, zarr_format=version)
    values = np.array([(n, n / 2, f"{n}x".encode()) for n in range(7)], dtype=dtype)
    array[:5] = values[:5]
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x", "/")
    expected = array[...]
    for name in dtype.names:
        same(a[name][...], expected[name])


def test_data_of_tensorstore(tmp_path: Path) -> None:
    ts = pytest.importorskip("tensorstore")
    values = np.arange(23 * 9, dtype="<i2").reshape(23, 9)
    store = {"driver": "file", "path": str(tmp_path / "three")}
    sharding = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [5, 2],
            "codecs": [
                {"name": "transpose", "configuration": {"order": [1, 0]}},
                {"name": "bytes", "configuration": {"endian": "big"}},
                {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2}},
            ],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}],
            "index_location": "start",
        },
    }
    grid = {"name": "regular", "configuration": {"chunk_shape": [10, 4]}}
    metadata: dict[str, Any] = {"shape": [23, 9], "chunk_grid": grid, "data_type": "int16", "codecs": [sharding]}
    made = ts.open({"driver": "zarr3", "kvstore": store, "metadata": metadata}, create=True).result()
    made[...].write(values).result()
    same(gs.attach(tmp_path / "three.gs", tmp_path / "three", "/")[...], values)
    metadata = {"shape": [23, 9], "chunks": [5, 4], "dtype": ">i2", "order": "F", "dimension_separator": "/",
                "compressor": {"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 2}}  # fmt: skip
    store = {"driver": "file", "path": str(tmp_path / "two")}
    made = ts.open({"driver": "zarr", "kvstore": store, "metadata": metadata}, create=True).result()
    made[...].write(values).result()
    same(gs.attach(tmp_path / "two.gs", tmp_path / "two", "/")[...], values)


def chunk_files(folder: Path) -> list[Path]:
    """The chunks in a folder, in order."""
    metadata = ("zarr.json", ".zarray", ".zattrs", ".zgroup")
    return [one for one in sorted(folder.rglob("*")) if one.is_file() and one.name not in metadata]


@pytest.mark.parametrize("made", [PLAIN_2, PLAIN_3, SHARDED], ids=["2", "3", "sharded"])
def test_a_chunk_that_changed_shrank_or_vanished_is_named(tmp_path: Path, made: dict[str, Any]) -> None:
    write(tmp_path / "x.zarr", made)
    gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", "/")
    chunk = chunk_files(tmp_path / "x.zarr")[0]
    whole, times = chunk.read_bytes(), (chunk.stat().st_atime_ns, chunk.stat().st_mtime_ns)

    def refused(part: str) -> None:
        for context in (None, gs.Context()):
            a = gs.open(tmp_path / "x.gs", context=context)
            with pytest.raises(gs.errors.SourceChangedError, match=part) as error:
                a[0:2, 0:2]
            assert str(chunk.relative_to(tmp_path)) in str(error.value)
            assert a.sources["state"].to_pylist() != ["unchanged"]

    chunk.write_bytes(whole[:-1])
    os.utime(chunk, ns=times)
    refused("size")
    chunk.write_bytes(whole)
    os.utime(chunk, ns=(times[0], times[1] + 10**9))
    refused("time of change")
    chunk.unlink()
    refused("gone")
    chunk.write_bytes(whole)
    os.utime(chunk, ns=times)
    a = gs.open(tmp_path / "x.gs")
    assert a.sources["state"].to_pylist() == ["unchanged"]
    same(a[...], zarr.open_array(tmp_path / "x.zarr")[...])


def test_a_handle_that_is_open_sees_a_change(tmp_path: Path) -> None:
    write(tmp_path / "x.zarr", PLAIN_3)
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", "/")
    last = chunk_files(tmp_path / "x.zarr")[-1]
    last.write_bytes(last.read_bytes()[:-1])
    assert a[0, 0] == zarr.open_array(tmp_path / "x.zarr")[0, 0], "a chunk that is as it was is read"
    with pytest.raises(gs.errors.SourceChangedError, match=last.name):
        a[...]
    found = a.verify()
    assert not found.ok
    assert "changed" in str(found)


def test_a_chunk_that_appears_is_seen_by_sources(tmp_path: Path) -> None:
    made = PLAIN_2 | {"written": "none"}
    write(tmp_path / "x.zarr", made)
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", "/")
    assert a.sources["state"].to_pylist() == ["unchanged"]
    zarr.open_array(tmp_path / "x.zarr", mode="r+")[0, 0] = 1
    assert "has changed since it was attached" in a.sources["state"].to_pylist()[0]
    assert np.asarray(a[...]).tolist() == np.full((23, 9), a[1, 1]).tolist(), "what is attached is as it was"


def test_flipped_bytes_are_errors_or_seen(tmp_path: Path) -> None:
    write(tmp_path / "x.zarr", SHARDED | {"packed": [ZstdCodec(level=1), Crc32cCodec()]})
    shard = chunk_files(tmp_path / "x.zarr")[0]
    whole = shard.read_bytes()
    random = np.random.default_rng(5)
    for number, at in enumerate([*random.integers(0, len(whole), 20), len(whole) - 1, len(whole) - 5]):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << int(random.integers(0, 8))
        shard.write_bytes(flipped)
        with pytest.raises((gs.errors.CorruptionError, gs.errors.UnsupportedError)):
            gs.attach(f"mem://flipped-{number}", tmp_path / "x.zarr", "/")[...]


def test_updates_and_bringing_home(tmp_path: Path) -> None:
    expected = write(tmp_path / "x.zarr", SHARDED)
    before = folder_hash(tmp_path / "x.zarr")
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", "/")
    a[3:7, 2:5] = -1
    expected = expected.copy()
    expected[3:7, 2:5] = -1
    same(a[...], expected)
    assert a.max() == expected.max()
    a.consolidate("all")
    assert a.sources.num_rows == 0
    same(a[...], expected)
    assert folder_hash(tmp_path / "x.zarr") == before


def test_sources_of_a_folder_are_one_row(tmp_path: Path) -> None:
    write(tmp_path / "x.zarr", PLAIN_2)
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", "/")
    (row,) = a.sources.to_pylist()
    files = [one for one in (tmp_path / "x.zarr").rglob("*") if one.is_file()]
    assert row["uri"] == "x.zarr"
    assert row["size"] == sum(one.stat().st_size for one in files)
    assert row["etag"].startswith(f"{len(files)} files, ")
    assert row["cells"] == 23 * 9
    assert a.verify().ok


def test_trust_is_that_of_where_chunks_really_lie(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in/x.zarr", PLAIN_3)
    chunk = chunk_files(tmp_path / "in/x.zarr")[0]
    secret = tmp_path / "secret"
    secret.write_bytes(chunk.read_bytes())
    chunk.unlink()
    chunk.symlink_to(secret)
    gs.attach(tmp_path / "in/x.gs", tmp_path / "in/x.zarr", "/")
    with pytest.raises(gs.errors.AccessError, match=r"c/0/0"):
        gs.open(tmp_path / "in/x.gs")[0, 0]
    allowed = gs.open(tmp_path / "in/x.gs", context=gs.Context(sources=[str(tmp_path)]))
    assert allowed[0, 0] == zarr.open_array(tmp_path / "in/x.zarr")[0, 0]
    write(tmp_path / "out.zarr", PLAIN_3)
    far = gs.attach(tmp_path / "in/far.gs", tmp_path / "out.zarr", "/")
    same(far[...], zarr.open_array(tmp_path / "out.zarr")[...])
    with pytest.raises(gs.errors.AccessError, match=str(tmp_path)):
        gs.open(tmp_path / "in/far.gs")[...]


@pytest.mark.parametrize("version", [2, 3])
def test_scalars_texts_and_empty_arrays_of_a_tree(tmp_path: Path, version: int) -> None:
    root = zarr.create_group(
        tmp_path / "x.zarr", zarr_format=version, attributes={"title": "t", "list": [1.5], "of": {"a": None}}
    )
    root.create_array("scalar", shape=(), dtype="f4", fill_value=2.5)
    root.create_array("written", shape=(), dtype="i2")[...] = 7
    root.create_array("empty", shape=(0, 3), chunks=(1, 3), dtype="i2")
    group = root.create_group("g")
    texts = group.create_array("texts", shape=(5,), chunks=(2,), dtype=str)
    texts[:3] = np.array(["a", "", "ä€"], dtype=object)
    made = gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr")
    assert (made["scalar"][()], made["written"][()]) == (2.5, 7)
    assert made["empty"].shape == (0, 3)
    assert made["g/texts"][...].tolist() == texts[...].tolist()
    assert (made.meta["title"], made.meta["list"], made.meta["of"]) == ("t", [1.5], {"a": None})
    assert "not attached" not in made.meta
    with pytest.raises(gs.errors.UnsupportedError, match="vary in length"):
        gs.attach(tmp_path / "y.gs", tmp_path / "x.zarr", "/g/texts", variable="refuse")


def test_what_is_no_folder_of_zarr_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(gs.errors.InputError, match="no Zarr"):
        gs.attach(tmp_path / "x.gs", tmp_path / "empty")
    write(tmp_path / "a", PLAIN_2)
    with zarr.storage.ZipStore(tmp_path / "x.zarr.zip", mode="w") as store:
        zarr.create_array(store, shape=(3,), dtype="i2")
    with pytest.raises(gs.errors.UnsupportedError, match="archive of ZIP"):
        gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr.zip")
    with pytest.raises(gs.errors.UnsupportedError, match="local files"):
        gs.attach(tmp_path / "x.gs", "https://example.org/x.zarr")
    assert not (tmp_path / "x.gs").exists()


def test_metadata_that_are_wrong_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "x.zarr", PLAIN_3)
    path = tmp_path / "x.zarr/zarr.json"
    whole = json.loads(path.read_text())
    for change in (
        {"shape": [2**40, 2**40]},
        {"shape": [-1, 4]},
        {"shape": [23] * 9, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5] * 9}}},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2**40, 2**40]}}},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 4]}}},
        {"data_type": "float8_e4m3"},
        {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "numcodecs.nonsense"}]},
        {"must": "know"},
    ):
        path.write_text(json.dumps(whole | change))
        with pytest.raises(gs.errors.GridstoneError) as error:
            gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", "/")
        assert isinstance(error.value, gs.errors.UnsupportedError | gs.errors.CorruptionError | gs.errors.InputError)
        assert not (tmp_path / "x.gs").exists()


@pytest.mark.parametrize(("version", "dtype"), list(itertools.product([2, 3], ["<i2", ">f4", "U3"])))
def test_series_of_folders(tmp_path: Path, version: int, dtype: str) -> None:
    base = PLAIN_2 if version == 2 else SHARDED
    parts = [write(tmp_path / f"run_{n}.zarr", base | {"seed": n, "dtype": np.dtype(dtype)}) for n in (1, 2, 10)]
    a = gs.attach(tmp_path / "x.gs", str(tmp_path / "run_*.zarr"), "/", concat="d0")
    same(a[...], np.concatenate(parts))
    assert a.sources.num_rows == 3
    stacked = gs.attach(tmp_path / "y.gs", str(tmp_path / "run_*.zarr"), "/", concat="new:run")
    same(stacked[...], np.stack(parts))
    more = write(tmp_path / "more.zarr", base | {"seed": 11, "dtype": np.dtype(dtype)})
    a.attach(tmp_path / "more.zarr")
    same(a[...], np.concatenate([*parts, more]))


def test_arrays_of_one_shape_are_attributes(tmp_path: Path) -> None:
    root = zarr.create_group(tmp_path / "x.zarr")
    made = {
        "a": {"chunks": (5, 4), "dtype": "i4"},
        "b": {"chunks": (5, 4), "dtype": "f8", "filters": [TransposeCodec(order=(1, 0))]},
        "c": {"chunks": (2, 3), "shards": (6, 6), "dtype": "u1"},
        "d": {"chunks": (5, 4), "dtype": "i2"},
    }
    expected = {}
    for name, given_ in made.items():
        array = root.create_array(name, shape=(23, 9), **given_)
        expected[name] = values_of(array.dtype, (23, 9), len(expected))
        array[...] = expected[name]
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", {"e": "/a", "b": "/b", "c": "/c", "d": "/d"})
    read = a.read()
    for name, values in expected.items():
        same(read["e" if name == "a" else name], values)
    assert sorted(a.sources["uri"].to_pylist()) == [f"x.zarr/{name}" for name in "abcd"]
    with pytest.raises(gs.errors.NotFoundError, match="/a, /b, /c, /d"):
        gs.attach(tmp_path / "y.gs", tmp_path / "x.zarr", "/")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files as Linux lists them")
def test_files_are_not_kept_open(tmp_path: Path) -> None:
    expected = write(tmp_path / "x.zarr", PLAIN_2 | {"shape": (40, 40), "chunks": (2, 2)})
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", "/")
    before = len(os.listdir("/proc/self/fd"))
    same(a[...], expected)
    assert len(os.listdir("/proc/self/fd")) < before + 20


def test_a_link_is_another_name(tmp_path: Path) -> None:
    root = zarr.create_group(tmp_path / "x.zarr")
    root.create_array("a", shape=(3,), dtype="i4")[...] = [1, 2, 3]
    zarr.create_array(tmp_path / "far", shape=(3,), dtype="i4")
    (tmp_path / "x.zarr/near").symlink_to("a")
    (tmp_path / "x.zarr/out").symlink_to(tmp_path / "far")
    made = gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr")
    assert "link to /a" in made.meta["not attached"]["near"]
    assert "outside of the folder" in made.meta["not attached"]["out"]
    assert np.asarray(gs.attach(tmp_path / "y.gs", tmp_path / "x.zarr", "/near")[...]).tolist() == [1, 2, 3]
