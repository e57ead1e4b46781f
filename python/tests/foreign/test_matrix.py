"""Datasets of HDF5 in every type, layout and filter, attached: equal to what h5py reads."""

import hashlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gridstone as gs

h5py = pytest.importorskip("h5py")

NUMBERS = [*("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"), *("f2", "f4", "f8", "c8", "c16")]
COMPOUND = np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "S3"), ("d", "<u4", (2,))])
TYPES = [*(f"{order}{name}" for name in NUMBERS for order in "<>"), "?", "S5", "V3", COMPOUND]


def _values(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Any bits there are, for floats too; as h5py writes them."""
    random = np.random.default_rng(seed)
    raw = random.integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8)
    if dtype == np.bool_:
        return (raw[..., 0] % 2).astype(bool)
    if dtype.kind == "S":
        raw = np.where(raw < 200, 65 + raw % 26, 0).astype(np.uint8)
    return np.ascontiguousarray(raw).view(dtype).reshape(shape)


def _filters() -> list[dict[str, Any]]:
    plugins: list[dict[str, Any]] = []
    try:
        import hdf5plugin

        plugins = [
            dict(hdf5plugin.LZ4()),
            dict(hdf5plugin.Zstd()),
            dict(hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.SHUFFLE)),
            dict(hdf5plugin.Blosc(cname="zstd", shuffle=hdf5plugin.Blosc.BITSHUFFLE)),
            dict(hdf5plugin.Bitshuffle(cname="lz4")),
            dict(hdf5plugin.Bitshuffle(cname="none")),
            dict(hdf5plugin.BZip2()),
        ]
    except ImportError:
        pass
    own = [{}, {"compression": "gzip", "shuffle": True}, {"compression": "gzip"}, {"fletcher32": True}]
    return [
        *own,
        {"compression": "lzf", "shuffle": True},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        *plugins,
    ]


LAYOUTS: list[dict[str, Any]] = [{}, *({"chunks": True, **one} for one in _filters())]


@st.composite
def datasets(draw: st.DrawFn) -> dict[str, Any]:
    """A dataset: its shape, type, chunks, filters, the version of the library that may read it."""
    ndim = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, (40, 14, 7, 5)[ndim - 1])) for _ in range(ndim))
    layout = dict(draw(st.sampled_from(LAYOUTS)))
    maxshape = None
    if layout.pop("chunks", None):
        layout["chunks"] = tuple(draw(st.integers(1, size + 2)) for size in shape)
        kind = draw(st.sampled_from(["fixed", "one", "all", "bounded"]))
        maxshape = {
            "fixed": None,
            "one": (None, *shape[1:]),
            "all": (None,) * ndim,
            "bounded": tuple(size + 3 for size in shape),
        }[kind]
        most = maxshape or shape
        sides = zip(layout["chunks"], most, strict=True)
        layout["chunks"] = tuple(side if size is None else min(side, size) for side, size in sides)
    return {
        "shape": shape,
        "dtype": np.dtype(draw(st.sampled_from(TYPES))),
        "layout": layout,
        "maxshape": maxshape,
        "libver": draw(st.sampled_from(["earliest", "v108", "v110", "latest"])),
        "user_block": draw(st.sampled_from([0, 0, 512])),
        "written": draw(st.sampled_from(["all", "all", "some", "none"])),
        "seed": draw(st.integers(0, 2**32)),
    }


def _write(path: Path, made: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Writes the dataset; gives what h5py reads of it."""
    dtype, shape = made["dtype"], made["shape"]
    values = _values(dtype, shape, made["seed"])
    fill = None if dtype.names or dtype.kind in "V" else _values(dtype, (1,), made["seed"] + 1)[0]
    with h5py.File(
        path,
        "w",
        libver=("earliest", made["libver"]) if made["libver"] != "earliest" else "earliest",
        userblock_size=made["user_block"],
    ) as file:
        if made["maxshape"] is not None:
            made["layout"]["maxshape"] = made["maxshape"]
        dataset = file.create_dataset("group/d", shape, dtype, fillvalue=fill, **made["layout"])
        if made["written"] == "all":
            dataset[...] = values
        elif made["written"] == "some":
            part = tuple(slice(size // 3, size // 3 + max(1, size // 2)) for size in shape)
            dataset[part] = values[part]
    with h5py.File(path, "r") as file:
        read: np.ndarray[Any, Any] = file["group/d"][...]
        return read


def _same(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    assert found.shape == expected.shape
    native = expected.astype(expected.dtype.newbyteorder("="))
    if found.dtype.kind == "V" or native.dtype.kind in "VS":
        wanted = np.ascontiguousarray(native).view((np.uint8, native.dtype.itemsize))
        assert (np.ascontiguousarray(found).view((np.uint8, found.dtype.itemsize)) == wanted).all()
        return
    assert found.dtype == native.dtype
    assert found.tobytes() == native.tobytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(made=datasets(), data=st.data())
def test_attached_datasets_are_those_that_h5py_reads(
    tmp_path_factory: pytest.TempPathFactory, made: dict[str, Any], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("matrix")
    expected = _write(folder / "x.h5", made)
    before = hashlib.sha256((folder / "x.h5").read_bytes()).hexdigest()
    a = gs.attach(folder / "x.gs", folder / "x.h5", "/group/d")
    assert isinstance(a, gs.Array)
    assert a.shape == expected.shape
    columns = {name: expected[name] for name in expected.dtype.names} if expected.dtype.names else {"d": expected}
    whole = a.read()
    for name, values in columns.items():
        _same(whole[name], values)
    box = tuple(
        slice(low, data.draw(st.integers(low + 1, size)), data.draw(st.integers(1, 3)))
        for size in expected.shape
        for low in [data.draw(st.integers(0, size - 1))]
    )
    for name, values in columns.items():
        _same(np.asarray(a[name][box]), values[box])
    points = [
        np.asarray(data.draw(st.lists(st.integers(0, size - 1), min_size=5, max_size=5))) for size in expected.shape
    ]
    for name, values in columns.items():
        _same(np.asarray(a[name].vindex[tuple(points)]), values[tuple(points)])
    assert hashlib.sha256((folder / "x.h5").read_bytes()).hexdigest() == before


@pytest.mark.parametrize(("dtype", "layout"), itertools.product(["<i2", ">f8", COMPOUND], LAYOUTS), ids=str)
def test_every_layout_and_filter(tmp_path: Path, dtype: Any, layout: dict[str, Any]) -> None:
    made = {"shape": (23, 9), "dtype": np.dtype(dtype), "layout": dict(layout), "maxshape": None, "libver": "earliest",
            "user_block": 0, "written": "all", "seed": 3}  # fmt: skip
    if made["layout"].pop("chunks", None):
        made["layout"]["chunks"] = (5, 4)
    expected = _write(tmp_path / "x.h5", made)
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.h5", "/group/d")
    assert isinstance(a, gs.Array)
    for name in expected.dtype.names or ["d"]:
        _same(a.read()[name], expected[name] if expected.dtype.names else expected)


def _decoded_by_libraries() -> list[tuple[str, str, dict[str, Any]]]:
    """Filters that the core does not have, with types that they take."""
    found: list[tuple[str, str, dict[str, Any]]] = [
        *(("szip", dtype, {"compression": "szip"}) for dtype in ("<i4", ">i2", "<f8", "u1")),
        ("szip of pairs", "<u2", {"compression": "szip", "compression_opts": ("ec", 16)}),
        ("szip, shuffle, fletcher32", "<i4", {"compression": "szip", "shuffle": True, "fletcher32": True}),
        *(("scale-offset", dtype, {"scaleoffset": 0}) for dtype in ("<i4", ">i8", "u1")),
        *(("scale-offset of floats", dtype, {"scaleoffset": 3, "shuffle": True}) for dtype in ("<f4", ">f8")),
        *(("n-bit", dtype, {}) for dtype in ("<i4", ">f8", "<i2", "compound")),
    ]
    try:
        import hdf5plugin as known
    except ImportError:
        return found
    plugins: list[tuple[str, str, Any]] = [
        *(("ZFP, reversible", dtype, known.Zfp(reversible=True)) for dtype in ("<f4", "<f8", "<i4")),
        ("ZFP, of an accuracy", "<f8", known.Zfp(accuracy=0.01)),
        ("ZFP, of a rate", "<f4", known.Zfp(rate=8)),
        *(("SZ", dtype, known.SZ(absolute=0.1)) for dtype in ("<f4", "<f8")),
        *(("SZ3", dtype, known.SZ3(absolute=0.1)) for dtype in ("<f4", "<f8")),
        *(("Blosc 2", dtype, known.Blosc2(cname="zstd")) for dtype in ("<i4", ">i2", "<f8", "S5")),
        ("Blosc 2, filters", "<i4", known.Blosc2(cname="lz4", filters=known.Blosc2.BITSHUFFLE)),
        ("SPERR", "<f4", known.Sperr()),
        ("JPEG-LS", "<u2", known.FciDecomp()),
    ]
    return found + [(name, dtype, dict(options)) for name, dtype, options in plugins]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize(("name", "dtype", "layout"), _decoded_by_libraries(), ids=str)
def test_filters_that_libraries_decode(
    tmp_path: Path, name: str, dtype: str, layout: dict[str, Any], libver: str
) -> None:
    random = np.random.default_rng(2)
    made = np.dtype([("a", "<i2"), ("b", ">f4")]) if dtype == "compound" else np.dtype(dtype)
    walk = np.cumsum(random.integers(-3, 4, (23, 18)), axis=1) + 100
    values = walk.astype(made) if made.names is None else np.zeros(walk.shape, made)
    for member in made.names or []:
        values[member] = walk
    with h5py.File(tmp_path / "x.h5", "w", libver=libver) as file:
        if name == "n-bit":
            dataset = _n_bit(file, values)
        else:
            dataset = file.create_dataset("d", values.shape, made, chunks=(10, 8), **layout)
        dataset[:15] = values[:15]  # Chunks of the last rows were never written.
    with h5py.File(tmp_path / "x.h5", "r") as file:
        expected = file["d"][...]
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.h5", "/d")
    assert isinstance(a, gs.Array)
    assert "by h5py" in str(a.sources.column("filters")) or "by hdf5plugin" in str(a.sources.column("filters"))
    for member in made.names or ["d"]:
        wanted = expected[member] if made.names else expected
        _same(a.read()[member], wanted)
        _same(np.asarray(a[member][7:16:3, 2:17]), wanted[7:16:3, 2:17])
    assert a.verify()["damage"] == []
    a.consolidate("all")
    assert a.sources.num_rows == 0
    _same(a.read()[made.names[0] if made.names else "d"], expected[made.names[0]] if made.names else expected)


def _n_bit(file: Any, values: np.ndarray[Any, Any]) -> Any:
    """A dataset behind the n-bit filter, which h5py sets by its number only."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((10, 8))
    plist.set_filter(5, 0, ())
    space = h5py.h5s.create_simple(values.shape)
    return h5py.Dataset(h5py.h5d.create(file.id, b"d", h5py.h5t.py_create(values.dtype), space, plist))
