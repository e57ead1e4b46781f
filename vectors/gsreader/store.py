"""A store at a version: nodes, and the cells of arrays. ``docs/format/store.md``, ``log.md``, ``keys.md``."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from . import fragment, log, mask, root_gs0, root_gs1, seal, sorted_copy, value_bounds
from .bytes import Absent, Unsupported, need
from .checksums import xxh3
from .filters import Users
from .schema import Box, Cell, Datatype, Schema, fields, text_of
from .state import Node, Version, follow

LISTED_MAX = 240
UNFINISHED = b"gridstone: a copy of a store to this place was not finished\n"
SEALED_BYTES_MAX = 128
Row = list[Cell | bool]  # False: never written


def _bytes_max(name: str) -> int | None:
    """The most bytes of an object; None of a data file."""
    if name == "_log/floor":
        return 65_536
    if name.startswith("_log/"):
        return log.LINE_BYTES_MAX + 18 + log.ALIGNMENT + (1 << 30)
    return log.ROOT_OF_GS0_BYTES_MAX + 18 if name.startswith("_manifest/") else None


class Store:
    """A store in a folder; with a key a sealed one. ``users`` decode user-defined filters."""

    def __init__(self, folder: Path | str, key: bytes | None = None, users: Users | None = None) -> None:
        self.folder, self.key, self.users = Path(folder), key, users or {}
        self._decoded: dict[log.Description, fragment.Fragment] = {}

    def _read(self, name: str) -> bytes:
        path = self.folder / name
        need(path.is_file(), f"{name} is missing")
        most = _bytes_max(name)
        if most is not None:
            sealed = 0 if self.key is None else SEALED_BYTES_MAX + -(-most // 4096) * seal.TAG
            need(path.stat().st_size <= most + sealed, f"{name} is too long")
        data = path.read_bytes()
        if self.key is not None:
            return seal.unsealed(self.key, name, data)
        if seal.is_sealed(data):
            raise Unsupported(f"{name} is sealed; give the key")
        return data

    def record(self, version: int) -> log.Record:
        return log.read_record(self._read(f"_log/{version:020}"), version)

    def floor(self) -> tuple[int, str, int] | None:
        """The root of the lowest version still kept; None if nothing was cut off."""
        if not (self.folder / "_log/floor").is_file():
            return None
        data = self._read("_log/floor")
        if data == UNFINISHED:
            raise Absent("a copy of a store to this place was not finished")
        line = log.open_line(data, "the floor")
        value = fields(line.value, {"gs": int, "root": dict}, {"version": None}, "the floor")
        root = log.root_reference(value["root"])
        need(root and line.body == len(data) and log.whole(value["version"]) == root[0] > 0, "an impossible floor")
        return root

    def newest(self) -> int:
        """The newest version: records are contiguous from the floor. Absent if there is no store."""
        floor = self.floor()
        version = floor[0] if floor else 1
        need((self.folder / f"_log/{version:020}").is_file(), "this is no store")
        while (self.folder / f"_log/{version + 1:020}").is_file():
            version += 1
        return version

    def at(self, version: int) -> Version:
        """The store as ``version`` has it."""
        last, floor = self.record(version), self.floor()
        need(floor is None or floor[0] <= version, "that version has been cut off")
        root = max((r for r in (last.root, floor) if r), default=None)
        state = self._root(root) if root else Version(0, 0, None, "", {})
        while state.version < version:
            step = state.version + 1
            follow(state, last if step == version else self.record(step))
        need(state.record == last.xxh3, "the floor rests on another record")
        return state

    def _root(self, reference: tuple[int, str, int]) -> Version:
        """The state that a root of either form names."""
        version, name, checksum = reference
        data = self._read(f"_manifest/{name}")
        line = log.open_line(data, "a manifest root", root=True)
        need(line.xxh3 == checksum, "a manifest root is not the one named")
        form = root_gs1.state_of if line.gs == 1 else root_gs0.state_of
        state = form(line, data, self._read)
        need(state.version == version, "a manifest root of another version")
        self._check_packs(state)
        return state

    def _check_packs(self, state: Version) -> None:
        """Fragments of one data file lie one after the other, with zeros between."""
        every = [d for n in state.nodes.values() for d in n.fragments if isinstance(d.file, str) and not d.base]
        every.sort(key=lambda d: (d.file, d.offset))
        for file, group in itertools.groupby(every, key=lambda d: d.file):
            data, end = self._read(f"_data/{file}.frag"), 0
            for d in group:
                need(d.offset % log.ALIGNMENT == 0 and d.offset >= end, "fragments of a pack overlap")
                need(not data[end : d.offset].strip(b"\0"), "padding in a pack that is not zero")
                end = d.offset + d.length

    def cells(self, node: Node, within: Box) -> list[tuple[tuple[int, ...], Row]]:
        """The cells of a box: of a dense array in row-major order, of a sparse one in global order."""
        schema = node.schemas[-1]
        if schema.unknown:
            raise Unsupported(f"array {node.path} needs unknown features: {', '.join(schema.unknown)}")
        found: dict[tuple[int, ...], list[Row]] = {}
        for d in sorted(node.fragments, key=lambda d: d.order):
            pairs = zip(d.bounds, within, strict=True)
            if d.kind == "mask" or not all(a <= hi and lo <= b for (a, b), (lo, hi) in pairs):
                continue
            if d.kind == "deletion":
                for place in [p for p in found if all(a <= k <= b for k, (a, b) in zip(p, d.bounds, strict=True))]:
                    del found[place]
                continue
            _lay(schema, found, self._fragment(node, d), within, self._masked(node, d))
        if schema.sparse:
            places = sorted(found, key=schema.global_key)
            return [(place, row) for place in places for row in found[place]]
        unwritten: list[Row] = [[False] * len(schema.attrs)]
        every = itertools.product(*(range(lo, hi + 1) for lo, hi in within))
        return [(place, found.get(place, unwritten)[0]) for place in every]

    def _masked(self, node: Node, d: log.Description) -> set[int]:
        """The rows of a fragment that masks delete."""
        found: set[int] = set()
        for m in node.fragments:
            if m.over == d.id:
                sparse = d.kind == "sparse" and node.schemas[-1].sparse
                need(sparse and m.bounds == d.bounds, "a mask over another kind")
                found |= mask.rows(self._stored(m), d.id, self._fragment(node, d).tiles, m.cells)
        return found

    def _stored(self, d: log.Description) -> bytes:
        if d.base:
            raise Unsupported(f"fragment {d.id} lies on base {d.base}")
        name = f"_data/{d.file}.frag" if isinstance(d.file, str) else f"_log/{d.file:020}"
        data = self._read(name)[d.offset : d.offset + d.length]
        need(len(data) == d.length, "bytes that are not there")
        return data

    def _fragment(self, node: Node, d: log.Description) -> fragment.Fragment:
        if d not in self._decoded:
            need(d.schema < len(node.schemas), "a fragment of an unknown schema")
            data = self._stored(d)
            decoded = fragment.read(data, bytes.fromhex(d.id), node.schemas[d.schema], self.users, d.moved)
            value_bounds.check(d.stats, node.schemas[d.schema], decoded.attrs)
            self._decoded[d] = decoded
        decoded = self._decoded[d]
        # It may have been decoded for a later version, which has a larger domain.
        inside = zip(d.bounds, node.domain, strict=True)
        need(all(a <= lo and hi <= b for (lo, hi), (a, b) in inside), "a box outside the domain")
        described = (d.kind, list(d.bounds), d.cells, d.attrs)
        need(described == (decoded.kind, decoded.bounds, len(decoded.places), tuple(decoded.attrs)), "another fragment")
        return decoded

    def sorted_copy(self, node: Node, pack: str) -> sorted_copy.SortedCopy | None:
        """The sorted copy of a pack's fragments of an array, checked against these; None if there is none."""
        name = f"_data/{sorted_copy.id_of(pack, node.id)}.frag"
        if not (self.folder / name).is_file():
            return None
        copy = sorted_copy.read(self._read(name), pack, node.id, node.schemas, self.users)
        there = {(d.id, d.order): d for d in node.fragments if d.file == pack}
        for number, member in enumerate(copy.members):
            if member in there:  # One that a later merge replaced is in the copy, and nowhere else.
                held = self._fragment(node, there[member])
                values = (list(row) for row in zip(*(held.attrs[n] for n in sorted(held.attrs)), strict=True))
                cells = list(zip(held.places, values, strict=True))
                need(copy.of_member(number) == cells, "a sorted copy has other cells than its fragments")
        return copy

    def columns(self, node: Node, within: Box) -> tuple[int, dict[str, Any]]:
        """The number of cells of a box, and its columns as ``expect.json`` holds them."""
        schema, rows = node.schemas[-1], self.cells(node, within)
        columns: dict[str, Any] = {}
        if schema.sparse:
            first = 0
            for axes in schema.coordinates:
                dim, last = axes[0], first + len(axes)
                if dim.word is None:
                    raw: list[Cell] = [dim.datatype.bytes_of_key(place[first]) for place, _ in rows]
                    columns[dim.name] = column(dim.datatype, raw)
                else:
                    texts: list[Cell] = [text_of(axes, place[first:last]) for place, _ in rows]
                    columns[dim.name] = column(Datatype("string"), texts)
                first = last
        for i, attr in enumerate(schema.attrs):
            cells = [attr.unwritten if row[i] is False else row[i] for _, row in rows]
            columns[attr.name] = column(attr.shown, [attr.value(cell) for cell in cells])  # type: ignore[arg-type]
        return len(rows), columns


def _lay(
    schema: Schema,
    found: dict[tuple[int, ...], list[Row]],
    newer: fragment.Fragment,
    within: Box,
    masked: set[int],
) -> None:
    """Lays a fragment, without the rows that are masked, over older ones."""
    for i, place in enumerate(newer.places):
        if i in masked or not all(lo <= key <= hi for key, (lo, hi) in zip(place, within, strict=True)):
            continue
        if newer.kind == "tombstones":
            found.pop(place, None)
            continue
        rows = found.setdefault(place, [])
        blank: Row = [False] * len(schema.attrs)
        if schema.duplicates or not rows:
            rows.append(blank)
        # A cell of a sparse array is written whole, whatever attributes there were then.
        rows[-1] = blank if schema.sparse else rows[-1].copy()
        for column_of, attr in enumerate(schema.attrs):
            if attr.number in newer.attrs:
                rows[-1][column_of] = newer.attrs[attr.number][i]


def value(datatype: Datatype, cell: Cell) -> Any:
    """A cell as JSON holds it: floats as the hexadecimal digits of their bits, bytes, vectors and so on as those of
    their bytes."""
    if cell is None:
        return None
    if datatype.name == "string":
        return cell.decode()
    if datatype.name == "bytes" or datatype.fixed_bytes or not datatype.order:
        return cell.hex()
    if datatype.name == "bool":
        return cell == b"\1"
    return cell[::-1].hex() if datatype.element.kind == "f" else datatype.number(cell)


def column(datatype: Datatype, cells: list[Cell]) -> Any:
    """A column as ``expect.json`` holds it: listed, or counted with the checksum of its canonical bytes."""
    if len(cells) <= LISTED_MAX:
        return [value(datatype, cell) for cell in cells]
    out = bytearray()
    for cell in cells:
        if cell is None:
            out.append(0)
        else:
            out += b"\1" + (len(cell).to_bytes(4, "little") if datatype.varies else b"") + cell
    return {"count": len(cells), "xxh3": f"{xxh3(bytes(out)):016x}"}
