"""Datasets of one shape as the attributes of an array, and where its cells lie, in the core's terms."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..base.printable import brief
from ..errors import InputError, UnsupportedError
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from .conventions import Decoded, decoded
from .copied import Varied
from .filters import pipeline
from .tree import Dataset, dimension_names
from .values import Record, Stored, record_of

_TILE_BYTES = 1 << 20
"""Bytes of the tiles that contiguous data is cut into, about."""
_TILE_CELLS = 1 << 14
"""An array's tiles have at least so many cells, where chunks are smaller."""
_CHUNK_BYTES_MAX = 1 << 30
_DIMENSIONS_MAX = 8
_IN_CHUNKS = ("chunked", "objects")
"""Layouts in chunks, which are stored whole at the edges."""


@dataclass(frozen=True)
class Member:
    """An attribute of an array, and the value of a dataset that it shows."""

    attr: Attr
    decoded: Decoded
    dataset: Dataset
    given: str | None
    """The name that the caller gave to the dataset."""


@dataclass(frozen=True)
class Copy:
    """An attribute whose values vary in length, and are copied."""

    attr: Attr
    value: Varied
    dataset: Dataset
    given: str | None


@dataclass(frozen=True)
class Source:
    """A file, or a folder of chunks, as its state was when it was looked at."""

    path: str
    uri: str
    size: int | None
    time_us: int | None
    etag: str | None


@dataclass
class Pieces:
    """Datasets of one shape whose values are the attributes of one array."""

    shape: tuple[int, ...]
    members: list[Member] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)
    """The record of each dataset, by path."""
    datasets: list[Dataset] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """What has no form at all, by path and member, with the reason."""
    copies: list[Copy] = field(default_factory=list)

    def add(self, dataset: Dataset, name: str | None, decode: bool) -> None:
        """Adds the values of a dataset under `name`, or under its own; members of compounds under theirs.

        Raises:
            InputError: its shape is another one.
            UnsupportedError: its cells have no form in place.
        """
        if dataset.shape != self.shape:
            raise InputError(
                f"{dataset.path} has the shape {dataset.shape} and {self.datasets[0].path} {self.shape}; "
                "datasets of one array have one shape"
            )
        if not dataset.shape:
            raise UnsupportedError(
                f"{dataset.path} is a single value: attach the whole file, without dataset=, which copies it"
            )
        check_layout(dataset)
        record = record_of(dataset.raw["datatype"], dataset.raw["element_size"])
        for member, reason in record.refused.items():
            self.refused[_joined(dataset.path, member)] = reason
        if not record.members and not record.varied:
            raise UnsupportedError(f"{dataset.path} cannot be attached: {'; '.join(record.refused.values())}")
        for value in record.varied:
            own = value.member and (f"{name}.{value.member}" if name else value.member)
            self.copies.append(Copy(value.attr(own or name or dataset.name), value, dataset, name))
        self.datasets.append(dataset)
        self.records[dataset.path] = record
        for stored in record.members:
            kept = stored if decode else stored.as_stored()
            shown = decoded(kept, dataset.attributes) if decode and not kept.name else Decoded(kept, False, {})
            self.members.append(Member(_attr(_named(kept, name or dataset.name, name), shown), shown, dataset, name))
        names = [attr.name for attr in self.attrs]
        if twice := next((one for one in names if names.count(one) > 1), None):
            raise InputError(
                f"two values would be the attribute {brief(twice)}; name them: "
                'dataset={"a": "/path/a", "b": "/path/b"}'
            )

    @property
    def attrs(self) -> list[Attr]:
        """The attributes of the array: those that stay in the file, then those that are copied."""
        return [member.attr for member in self.members] + [copy.attr for copy in self.copies]

    def schema(self) -> Schema:
        """The schema of an array of these values: dimensions from 0, tiles as the chunks of the first dataset."""
        first = self.datasets[0]
        names = dimension_names(first)
        taken = {attr.name for attr in self.attrs}
        names = [name if name not in taken else f"{name}_dim" for name in names]
        tile = tile_of(first, self.records[first.path].size)
        dims = [Dim(name, (0, size - 1), extent) for name, size, extent in zip(names, self.shape, tile, strict=True)]
        return Schema(dims, self.attrs)


def check_layout(dataset: Dataset) -> None:
    """Raises an UnsupportedError if the cells of a dataset have no place that is known, or too many dimensions."""
    kind = dataset.layout["kind"]
    if len(dataset.shape) > _DIMENSIONS_MAX:
        raise UnsupportedError(f"{dataset.path} has {len(dataset.shape)} dimensions; an array has at most 8")
    if kind == "refused":
        raise UnsupportedError(f"{dataset.path} cannot be attached: {dataset.layout['reason']}")
    if kind == "virtual":
        raise UnsupportedError(f"{dataset.path} is virtual: its cells lie in other datasets; attach those")
    if kind == "external":
        raise UnsupportedError(f"{dataset.path} has its cells in other, raw files, which is not read yet")
    if kind in _IN_CHUNKS:
        size = math.prod(dataset.layout["chunk"]) * dataset.raw["element_size"]
        if size > _CHUNK_BYTES_MAX:
            raise UnsupportedError(f"{dataset.path} has chunks of {size} bytes; at most 1 GiB are read in place")
    if kind == "chunked":
        pipeline(dataset.layout["filters"], dataset.raw["element_size"])


def _joined(path: str, member: str) -> str:
    return f"{path}.{member}" if member else path


def _named(stored: Stored, own: str, given: str | None) -> Stored:
    """The value with the name of its attribute."""
    if not stored.name:
        return replace(stored, name=own)
    return replace(stored, name=f"{given}.{stored.name}" if given else stored.name)


def _attr(stored: Stored, shown: Decoded) -> Attr:
    dtype = shown.stored.dtype
    options: dict[str, Any] = {"nullable": shown.nullable}
    if stored.categories is not None:
        options |= {"categories": list(stored.categories)}
    if stored.shape:
        options |= {"shape": stored.shape}
    return Attr(stored.name, dtype, **options)


def tile_of(dataset: Dataset, record: int) -> tuple[int, ...]:
    """The extents of an array's tiles over a dataset: its chunks, several together where they are small."""
    shape = dataset.shape
    extents = [max(1, min(side, size)) for side, size in zip(sides_of(dataset, record), shape, strict=True)]
    for axis in reversed(range(len(shape))):
        while math.prod(extents) < _TILE_CELLS and extents[axis] < shape[axis]:
            extents[axis] = min(extents[axis] * 2, shape[axis])
    return tuple(extents)


def sides_of(dataset: Dataset, record: int) -> tuple[int, ...]:
    """The sides of the chunks that a dataset is read by."""
    if dataset.layout["kind"] in _IN_CHUNKS:
        return tuple(dataset.layout["chunk"])
    if dataset.layout["kind"] == "compact":
        return dataset.shape
    shape, layout = dataset.shape, dataset.layout
    if layout["kind"] == "column_major":
        return _run(shape[::-1], _TILE_BYTES // max(1, record))[::-1]
    if layout["kind"] == "records" and math.prod(shape[1:]) == 1:
        # A record has one cell: tiles are runs of records, with what other variables have in between.
        return (max(1, min(shape[0], _TILE_BYTES // max(1, layout["stride"]))), *shape[1:])
    if layout["kind"] == "records":
        return (1, *_run(shape[1:], _TILE_BYTES // max(1, record)))
    return _run(shape, _TILE_BYTES // max(1, record))


def _run(shape: Sequence[int], room: int) -> tuple[int, ...]:
    """The sides of boxes of at most `room` cells, about, that lie in one run, the last dimension going fastest."""
    room, sides = max(1, room), []
    for size in reversed(shape):
        side = max(1, min(size, room))
        sides.append(side)
        room = room // side if side == size else 1
    return tuple(reversed(sides))


def ranks_of(dataset: Dataset) -> tuple[int, ...]:
    """The place of each dimension in the order of a chunk's cells, 0 the slowest."""
    if dataset.is_in_objects:
        return tuple(dataset.layout["ranks"])
    ranks = range(len(dataset.shape))
    return tuple(reversed(ranks) if dataset.layout["kind"] == "column_major" else ranks)


def fragments(
    pieces: Pieces, sources: Mapping[str, Source], position: Sequence[int], *, new_axis: bool = False
) -> list[str]:
    """What the core attaches, as JSON: a fragment per shape of chunks, its box at `position` of the array.

    `sources` has the files and folders of the datasets by path. `new_axis`: the array has one dimension more, the
    outermost, along which the box has one cell.
    """
    groups: dict[Any, list[Dataset]] = {}
    for dataset in (one for one in pieces.datasets if pieces.records[one.path].members):
        sides = sides_of(dataset, pieces.records[dataset.path].size)
        groups.setdefault((dataset.layout["kind"] in _IN_CHUNKS, sides, ranks_of(dataset)), []).append(dataset)
    made = [_fragment(pieces, datasets, sources, *alike) for alike, datasets in groups.items()]
    return [json.dumps((_outside(one) if new_axis else one) | {"position": list(position)}) for one in made]


def _outside(fragment: Mapping[str, Any]) -> dict[str, Any]:
    """The same with one dimension more, the outermost, of one cell."""
    lists = [one | {"strides": [0, *one["strides"]]} if one["kind"] == "strided" else one for one in fragment["lists"]]
    longer = {name: [first, *fragment[name]] for name, first in (("shape", 1), ("lead", 0), ("sides", 1))}
    ranks = [0, *(rank + 1 for rank in fragment["ranks"])]
    return {**fragment, **longer, "ranks": ranks, "lists": lists}


def _fragment(
    pieces: Pieces,
    datasets: Sequence[Dataset],
    known: Mapping[str, Source],
    is_padded: bool,
    sides: Sequence[int],
    ranks: Sequence[int],
) -> dict[str, Any]:
    used = list(dict.fromkeys(dataset.source for dataset in datasets))
    sources = [known[path] for path in used]
    places = {dataset.path: place for place, dataset in enumerate(datasets)}
    members = [member for member in pieces.members if member.dataset.path in places]
    return {
        "shape": list(pieces.shape),
        "lead": [0] * len(pieces.shape),
        "sides": list(sides),
        "ranks": list(ranks),
        "padded": is_padded,
        "sources": [{"uri": one.uri, "size": one.size, "time_us": one.time_us, "etag": one.etag} for one in sources],
        "attrs": [member.attr.name for member in members],
        "fields": [_field(member, places, pieces) for member in members],
        "fills": [_fill(dataset, pieces.records[dataset.path]) for dataset in datasets],
        "lists": [_pages(dataset, pieces.records[dataset.path], used.index(dataset.source)) for dataset in datasets],
    }


def _field(member: Member, places: Mapping[str, int], pieces: Pieces) -> dict[str, Any]:
    stored = member.decoded.stored
    made = {
        "attr": 0,
        "list": places[member.dataset.path],
        "offset": stored.offset,
        "step": _step(member.dataset, pieces.records[member.dataset.path]),
        "value": stored.value,
    }
    return made | ({"steps": [dict(step) for step in stored.steps]} if stored.steps else {})


def _fill(dataset: Dataset, record: Record) -> str:
    given = dataset.raw.get("fill")
    return bytes(given).hex() if given and len(given) == record.size else bytes(record.size).hex()


def _strides(dataset: Dataset, record: Record) -> list[int]:
    """Bytes from a cell to the next along each dimension."""
    shape, kind = dataset.shape, dataset.layout["kind"]
    strides, stride = [], record.size
    for size in shape if kind == "column_major" else reversed(shape):
        strides.append(stride)
        stride *= size
    if kind == "records":
        strides[-1] = dataset.layout["stride"]
    return strides if kind == "column_major" else strides[::-1]


def _step(dataset: Dataset, record: Record) -> int:
    """Bytes from a cell of a tile to the next."""
    layout = dataset.layout
    if layout["kind"] == "records" and math.prod(dataset.shape[1:]) == 1:
        return int(layout["stride"])
    return record.size


def _pages(dataset: Dataset, record: Record, source: int) -> dict[str, Any]:
    layout = dataset.layout
    match layout["kind"]:
        case "compact":
            return {"kind": "kept", "bytes": list(layout["bytes"])}
        case "contiguous" if layout["offset"] is None:
            return {"kind": "nothing"}
        case "contiguous" | "column_major" | "records":
            return {
                "kind": "strided",
                "source": source,
                "offset": layout["offset"],
                "strides": _strides(dataset, record),
                "step": _step(dataset, record),
                "record": record.size,
            }
    decoded = math.prod(layout["chunk"]) * record.size
    place = {"dataset": dataset.raw, "source": source, "decoded": decoded}
    if layout["kind"] == "objects":
        return {"kind": "objects", "folder": dataset.file, **place}
    return {"kind": "hdf5", "file": dataset.file, "pipeline": pipeline(layout["filters"], record.size), **place}
