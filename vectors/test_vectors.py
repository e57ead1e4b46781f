"""The golden vectors, read by the independent reader and, where it is installed, by the engine."""

from __future__ import annotations

import json
import random
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gsreader import Absent, Damaged, Store, Unsupported, seal
from gsreader.checksums import crc32c, xxh3
from gsreader.schema import EMPTY, Cell, Datatype, Schema
from gsreader.sorted_copy import SortedCopy
from gsreader.store import column

CASES = sorted(path.parent for path in Path(__file__).parent.glob("gs[01]/*/expect.json"))
FORMS = sorted({case.parent.name for case in CASES})


def of(cases: list[Path]) -> Any:
    """A test of each of some cases."""
    return pytest.mark.parametrize("case", cases, ids=lambda case: f"{case.parent.name}-{case.name}")


def named(name: str) -> Any:
    """A test of a case in each form that has it."""
    return of([case for case in CASES if case.name == name])


by_case = of(CASES)
by_form = pytest.mark.parametrize("form", FORMS)


@cache
def expected(case: Path) -> dict[str, Any]:
    return json.loads((case / "expect.json").read_text())


def opened(case: Path, folder: Path) -> Store:
    """The vector, or a copy of it, with the key that it needs."""
    key = expected(case).get("key")
    return Store(folder, None if key is None else bytes.fromhex(key), {"test.xor": xor})


def xor(data: bytes, width: int) -> bytes:
    """The user-defined filter of the vectors: every byte with the width of a value."""
    return bytes(byte ^ (0xA0 | width) for byte in data)


def meaning(schema: Schema) -> list[Any]:
    """What a schema says, whether it has grown or was written so. Without tiles an origin places labels alone. Where an
    end is open a schema does not say how far the domain reaches."""
    placed = [d.origin if d.extent is not None or d.labels is not None else None for d in schema.dims]
    ends = [d.fixed if any(d.open) else (d.low, d.high) for d in schema.dims]
    dims = zip(schema.dims, placed, ends, strict=True)
    known = [(d.name, d.datatype, d.extent, d.word, d.max_bytes, d.open, d.labels, *rest) for d, *rest in dims]
    options = [schema.sparse, schema.duplicates, schema.capacity, schema.tile_order, schema.cell_order, schema.scalar]
    return [known, schema.attrs, schema.next_number, schema.frame, *options, schema.json["attrs"]]


def check(store: Store, expect: dict[str, Any]) -> None:
    """Compares every version, node and read; where no versions are expected there is no store."""
    if not expect["versions"]:
        with pytest.raises(Absent):
            store.newest()
    for version in expect["versions"]:
        state = store.at(version["version"])
        assert state.time_us == version["time_us"]
        assert state.retained.json() == version.get("retained")
        assert state.keys.json() == version.get("keys")
        nodes = {node.path: node for node in state.nodes.values()}
        assert sorted(nodes) == sorted(node["path"] for node in version["nodes"])
        for listed in version["nodes"]:
            node = nodes[listed["path"]]
            assert (node.kind, node.metadata) == (listed["kind"], listed["metadata"])
            assert (node.owner is not None) == listed.get("hidden", False)
            assert node.fields_json() == listed.get("fields", [])
            for read in listed.get("reads", []):
                schema = node.schemas[-1]
                assert meaning(schema) == meaning(Schema.of_json(listed["schema"]))
                box = node.domain if read["box"] is None else schema.box(read["box"])
                assert (read["box"] is None) == (EMPTY in node.domain)
                assert box == node.domain or not any(end for dim in schema.dims for end in dim.open)
                count, columns = store.columns(node, box)
                where = f"{expect['case']} version {version['version']} {node.path} {read['box']}"
                assert count == read["cells"], where
                for name, listed_column in read["columns"].items():
                    assert columns[name] == listed_column, f"{where} {name}"
                assert list(columns) == list(read["columns"])


def test_vectors_of_gs0_stay():
    assert FORMS[0] == "gs0"


@by_form
def test_there_are_vectors(form):
    cases = [case for case in CASES if case.parent.name == form]
    assert len(cases) >= 20
    sizes = [sum(f.stat().st_size for f in case.rglob("*") if f.is_file()) for case in cases]
    assert max(sizes) < 200_000 and sum(sizes) < 2_000_000


def test_checksums_of_known_bytes():
    assert crc32c(b"123456789") == 0xE3069283
    assert xxh3(b"") == 0x2D06800538D394C2
    pattern = bytes(i * 7 % 251 for i in range(5000))
    assert [xxh3(pattern[:n]) for n in KNOWN] == list(KNOWN.values())


KNOWN = {
    1: 0xC44BDFF4074EECDB,
    3: 0xC3489259E968AD9E,
    8: 0xB88DEE77F6BF6980,
    16: 0x9DA23836ADF2BE1E,
    100: 0x1023AE92E631EAC5,
    128: 0x4C659B745F435148,
    129: 0xB85222B83902B6E5,
    240: 0xD6DFBF67B0675B54,
    241: 0xC614C8C3575348C1,
    1024: 0xF22EF3DC84FF47EA,
    1025: 0x43F869A83769A435,
    5000: 0xCE29A19460EE1BFC,
}


@by_case
def test_the_independent_reader_agrees(case):
    store, versions = opened(case, case / "store"), expected(case)["versions"]
    assert not versions or store.newest() >= versions[-1]["version"]
    check(store, expected(case))


def read_by(case: Path) -> list[Path]:
    """The files of a vector on which what is expected depends: all but hints, sorted copies and kept files."""
    if not expected(case)["versions"]:
        return [case / "store" / "_log" / "floor"]
    files = [path for path in (case / "store").rglob("*") if path.is_file() and path.name != "latest"]
    return sorted(set(files) - set(sorted_copies(case)) - kept_files(case))


def kept_files(case: Path) -> set[Path]:
    """The files that a version keeps beside its arrays, whose content no page specifies."""
    store = opened(case, case / "store")
    states = [store.at(version["version"]) for version in expected(case)["versions"]]
    entries = [kept for state in states for node in state.nodes.values() for kept in node.kept.values()]
    return {case / "store" / "_data" / f"{name}.frag" for kept in entries for name, _ in kept.files}


def sorted_copies(case: Path) -> list[Path]:
    return sorted(path for path in case.glob("store/_data/*") if path.read_bytes().startswith(b"GS0SORT\n"))


def flips(case: Path, path: Path) -> list[tuple[int, int]]:
    """Bits to flip: some of every file, at both ends and at random places."""
    size = path.stat().st_size
    draw = random.Random(f"{case.name}/{path.name}")
    places = {0, size - 1, *(draw.randrange(size) for _ in range(4))}
    return [(place, draw.randrange(8)) for place in sorted(places)]


@by_case
def test_flipped_bits_are_refused(case, tmp_path):
    copy = tmp_path / "store"
    shutil.copytree(case / "store", copy)
    files = read_by(case)
    for path in random.Random(case.name).sample(files, min(12, len(files))):
        target = copy / path.relative_to(case / "store")
        for place, bit in flips(case, path):
            bad = bytearray(path.read_bytes())
            bad[place] ^= 1 << bit
            target.write_bytes(bad)
            with pytest.raises((Damaged, Unsupported)):
                check(opened(case, copy), expected(case))
        target.write_bytes(path.read_bytes())
    check(opened(case, copy), expected(case))


@by_case
def test_truncated_files_are_refused(case, tmp_path):
    copy = tmp_path / "store"
    shutil.copytree(case / "store", copy)
    files = read_by(case)
    for path in random.Random(case.name).sample(files, min(6, len(files))):
        target, whole = copy / path.relative_to(case / "store"), path.read_bytes()
        for length in (0, len(whole) // 2, len(whole) - 1):
            target.write_bytes(whole[:length])
            with pytest.raises((Damaged, Unsupported)):
                check(opened(case, copy), expected(case))
        if expected(case)["versions"]:
            target.unlink()
            with pytest.raises(Damaged):
                check(opened(case, copy), expected(case))
        target.write_bytes(whole)


def copies_of(store: Store) -> list[SortedCopy]:
    """The sorted copies beside the packs of the newest version, each checked against its fragments."""
    nodes = store.at(store.newest()).nodes.values()
    packs = {(node.path, d.file): node for node in nodes for d in node.fragments if isinstance(d.file, str)}
    return [copy for (_, pack), node in packs.items() if (copy := store.sorted_copy(node, pack))]


@named("sorted_copies")
def test_sorted_copies_are_of_their_fragments_and_nothing_rests_on_them(case, tmp_path):
    assert len(copies_of(opened(case, case / "store"))) == len(sorted_copies(case)) == 3
    copy = tmp_path / "store"
    shutil.copytree(case / "store", copy)
    for path in sorted_copies(case):
        target, whole = copy / path.relative_to(case / "store"), path.read_bytes()
        bad = [whole[:length] for length in (0, 11, len(whole) // 2, len(whole) - 1)]
        for place, bit in flips(case, path):
            bad.append(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
        for damaged in bad:
            target.write_bytes(damaged)
            with pytest.raises((Damaged, Unsupported)):
                copies_of(opened(case, copy))
            check_by_engine(case, copy)
        check(opened(case, copy), expected(case))
        target.unlink()
        assert len(copies_of(opened(case, copy))) == 2
        check_by_engine(case, copy)
        target.write_bytes(whole)


def test_the_cipher_of_known_bytes():
    """FIPS 197, appendix C.3; the GCM specification, test cases 13 and 14; RFC 5869, test case 1."""
    block = seal.Aes256(bytes(range(32))).block(bytes.fromhex("00112233445566778899aabbccddeeff"))
    assert block.hex() == "8ea2b7ca516745bfeafc49904b496089"
    gcm, nonce = seal.Gcm(bytes(32)), bytes(12)
    sealed = gcm.crypt(nonce, bytes(16))
    assert (sealed.hex(), gcm.tag(nonce, sealed).hex()) == (
        "cea7403d4d606b6e074ec5d3baf39d18",
        "d0d1c8a799996bf0265b98b5d48ab919",
    )
    assert gcm.tag(nonce, b"").hex() == "530f8afbc74536b9a963b4f1c4cb738b"
    derived = seal.hkdf(b"\x0b" * 22, bytes(range(13)), bytes(range(0xF0, 0xFA)))
    assert derived.hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"


@named("sealed")
def test_a_sealed_store_needs_its_key(case):
    for key in (None, bytes(32)):
        with pytest.raises(Unsupported, match="key"):
            Store(case / "store", key).at(1)
    with pytest.raises(Damaged, match="no sealed object"):
        Store(case.parent / "tiny" / "store", bytes.fromhex(expected(case)["key"])).at(1)


@named("user_filters")
def test_a_user_defined_filter_is_asked_for(case):
    with pytest.raises(Unsupported, match=r"test\.xor"):
        check(Store(case / "store"), expected(case))


@named("tiny")
def test_a_later_version_is_named(case, tmp_path):
    copy = tmp_path / "store"
    shutil.copytree(case / "store", copy)
    record = copy / "_log" / f"{1:020}"
    line, rest = record.read_bytes().split(b"\n", 1)
    later = re.sub(rb'^\{"gs":[01]', b'{"gs":7', line)
    record.write_bytes(later + f"\n{xxh3(later):016x}".encode() + rest[16:])
    with pytest.raises(Unsupported, match="7"):
        Store(copy).at(1)
    record.write_bytes(later + b"\n" + rest)
    with pytest.raises(Damaged, match="number"):
        Store(copy).at(1)


@named("dense_raw_pages")
@pytest.mark.parametrize(("bit", "words"), [(1, "which cells"), (1 << 40, "0x10000000000")])
def test_required_features_are_refused(case, tmp_path, bit, words):
    copy = tmp_path / "store"
    shutil.copytree(case / "store", copy)
    (file,) = copy.glob("_data/*.frag")
    data = bytearray(file.read_bytes())
    data[16:24] = bit.to_bytes(8, "little")
    data[56:64] = xxh3(bytes(data[:56])).to_bytes(8, "little")
    file.write_bytes(data)
    with pytest.raises(Unsupported, match="features"):
        check(Store(copy), expected(case))
    gs = pytest.importorskip("gridstone")
    with pytest.raises(gs.errors.UnsupportedError, match=words):
        gs.open(str(copy)).read()


def test_the_dumps_in_the_pages_are_those_of_the_vectors():
    page = Path(__file__).parent.parent / "docs/format/fragment.md"
    _, dense, sparse = re.split("(?m)^## A (?:dense|sparse) fragment.*$", page.read_text())
    for case, text in (("tiny", dense), ("tiny_sparse", sparse)):
        record = (Path(__file__).parent / "gs0" / case / "store" / "_log" / f"{1:020}").read_bytes()
        fragment = record[record.index(b"GRIDFRAG") :]
        dumps = re.findall("(?m)^([0-9a-f]{4})  ((?:[0-9a-f]{2} +)*[0-9a-f]{2})(?: |$)", text)
        assert len(dumps) > 10
        for address, digits in dumps:
            raw = bytes.fromhex(digits)
            at = int(address, 16)
            assert fragment[at : at + len(raw)] == raw, f"{case} {address}"


def coordinates(schema: Schema, box: list[list[str] | None]) -> dict[str, tuple[Any, Any]]:
    """A box as the engine's Python face takes it."""
    import numpy

    taken = {}
    for (dim, *_), ends in zip(schema.coordinates, box, strict=True):
        if ends is None:
            taken[dim.name] = (None, None)
            continue
        values = [dim.datatype.number(dim.datatype.bytes_of_text(end)) for end in ends]
        if dim.datatype.time:
            kind, _, unit = dim.datatype.name.partition("[")
            values = [getattr(numpy, kind)(value, unit[:-1]) for value in values]
        taken[dim.name] = tuple(values)
    return taken


def cells_of(datatype: Datatype, values: Any) -> list[Cell]:
    """The cells of a NumPy array, masked or not."""
    import numpy

    null, data = numpy.ma.getmaskarray(values).ravel(), numpy.ma.getdata(values).ravel()
    if datatype.listed:
        raw = [v.tobytes() for v in data]
    elif datatype.items is not None:
        null = null[:: datatype.count]
        raw = [v.tobytes() for v in data.reshape(-1, datatype.count)]
    elif datatype.fixed_bytes:
        raw = [v.tobytes() for v in data.view(f"V{datatype.width}")]
    elif datatype.varies:
        raw = [v.encode() if isinstance(v, str) else v for v in data]
    else:
        raw = [v.tobytes() for v in data.astype(data.dtype.newbyteorder("<"))]
    return [None if n else r for n, r in zip(null, raw, strict=True)]


@by_case
def test_the_engine_agrees(case):
    check_by_engine(case, case / "store")


def check_by_engine(case: Path, store: Path) -> None:
    """What the engine reads, where it is installed."""
    gridstone = pytest.importorskip("gridstone")
    key = expected(case).get("key")
    context = None if key is None else gridstone.Context(key=key)
    gridstone.register_filter("test.xor", encode=xor, decode=xor, overwrite=True)
    if not expected(case)["versions"]:
        assert not gridstone.exists(store)
        with pytest.raises(gridstone.errors.NotFoundError, match="beginning of a copy"):
            gridstone.open(store)
    for version in expected(case)["versions"]:
        for node in version["nodes"]:
            if node.get("hidden"):
                continue  # No path leads to it.
            where = {"path": node["path"], "version": version["version"], "context": context}
            opened = gridstone.open(str(store), **where)
            for read in node.get("reads", []):
                schema = Schema.of_json(node["schema"])
                order = "global" if schema.sparse else "row"
                # All is read of an array without a cell, and of one without a dimension.
                whole = read["box"] is None or schema.scalar
                box = None if whole else coordinates(schema, read["box"])
                found = opened.read(box, order=order).to_numpy()
                types = {c.name: c.datatype for c in schema.dims} | {a.name: a.shown for a in schema.attrs}
                types |= {dim.name: Datatype("string") for dim in schema.dims if dim.word is not None}
                for name, listed in read["columns"].items():
                    where = f"{version['version']} {node['path']} {read['box']} {name}"
                    assert column(types[name], cells_of(types[name], found[name])) == listed, where
