"""What an array should hold: a naive model in plain Python, and the plain form that cells are compared in.

A value in plain form is None (null), a bool, int, str or bytes; a float is its `repr` (so that NaN equals NaN and -0.0
differs from 0.0); a datetime or timedelta is its ticks, NaT the text "NaT". A place is a tuple of ticks (floats for
float dimensions).
"""

import copy
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import gridstone as gs
from gridstone import dtypes

Plain = None | bool | int | str | bytes
Place = tuple[Any, ...]
Bounds = Sequence[tuple[Any, Any]]
Row = dict[str, Plain]

NAT = "NaT"
_SECONDS = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60}


def plain(dtype: str, values: Any) -> list[Plain]:
    """The values of an array (masked where null) as NumPy gives them, flat in row-major order."""
    masked = np.ma.getmaskarray(values).ravel().tolist() if np.ma.isMaskedArray(values) else None
    flat = np.ma.getdata(values).ravel()
    if dtypes.is_time(dtype):
        assert flat.dtype == np.dtype(dtype), (flat.dtype, dtype)
        found = [NAT if nat else t for nat, t in zip(np.isnat(flat), flat.view(np.int64).tolist(), strict=True)]
    elif dtypes.is_var(dtype):
        found = flat.tolist()
    else:
        assert flat.dtype == np.dtype(dtype), (flat.dtype, dtype)
        found = [repr(v) for v in flat.tolist()] if dtypes.is_float(dtype) else flat.tolist()
    if masked is not None:
        return [None if null else v for null, v in zip(masked, found, strict=True)]
    return found


def plain_arrow(dtype: str, column: Any) -> list[Plain]:
    """An Arrow column; NaT is null there, so that both come back as None."""
    if dtypes.is_time(dtype):
        factor = _SECONDS.get(dtypes.unit_of(dtype), 1)
        ticks = column.cast(pa.int64()).to_pylist()
        return [None if t is None else t // factor for t in ticks]
    found = column.to_pylist()
    return [None if v is None else repr(v) for v in found] if dtypes.is_float(dtype) else found


def as_arrow_shows(dtype: str, values: Iterable[Plain]) -> list[Plain]:
    """Plain values as `plain_arrow` gives them."""
    return [None if v == NAT else v for v in values] if dtypes.is_time(dtype) else list(values)


def unplain(dtype: str, values: Sequence[Plain]) -> Any:
    """The NumPy array of plain values (a masked array where one is null); the mirror of `plain`."""
    target = dtypes.numpy_of(dtype)
    nulls = [v is None for v in values]
    if dtypes.is_var(dtype):
        made = np.empty(len(values), object)
        made[:] = [("" if dtype == "string" else b"") if v is None else v for v in values]
    elif dtypes.is_time(dtype):
        nat = np.iinfo(np.int64).min
        made = np.array([nat if v in (NAT, None) else v for v in values], np.int64).view(target)
    else:
        zero = "0" if dtypes.is_float(dtype) else 0
        read = float if dtypes.is_float(dtype) else (lambda v: v)
        made = np.array([read(zero if v is None else v) for v in values], target)
    return np.ma.MaskedArray(made, mask=nulls) if any(nulls) else made


def ticks(dim: gs.Dim, values: Any) -> list[Any]:
    """Coordinates as places hold them."""
    found = np.asarray(values)
    return found.view(np.int64).tolist() if found.dtype.kind in "mM" else found.tolist()


def coordinates(dim: gs.Dim, values: Sequence[Any]) -> Any:
    """The NumPy array of coordinates; the mirror of `ticks`."""
    target = dtypes.numpy_of(dim.dtype)
    return np.array(values, np.int64).view(target) if target.kind in "mM" else np.array(values, target)


def bounds_of(dim: gs.Dim) -> tuple[Any, Any]:
    """The domain in ticks."""
    lo, hi = dim.domain
    return (lo, hi) if dtypes.is_float(dim.dtype) else (dtypes.ticks_of(lo), dtypes.ticks_of(hi))


class Failed(Exception):
    """The write must be refused."""


@dataclass
class State:
    """What one version holds. Dense: `boxes[attribute][place]`; sparse: `cells[place]`, rows in order of writing."""

    boxes: dict[str, dict[Place, Plain]] = field(default_factory=dict)
    cells: dict[Place, list[Row]] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    wrote: bool = False
    # The number of its schema; see `Model.shapes`.
    shape: int = 0


class Model:
    """All versions of an array."""

    def __init__(self, schema: gs.Schema) -> None:
        self.schema = schema
        self.dtypes = {attr.name: attr.dtype for attr in schema.attrs}
        self.now = State(boxes={attr.name: {} for attr in schema.attrs})
        self.versions: dict[int, State] = {}
        self.messages: dict[int, str | None] = {}
        # Schemas that states have had by their numbers, with the coordinates in use.
        self.shapes: dict[int, tuple[gs.Schema, Any]] = {}

    # Writing: changes `now`; `commit` makes a version of it.

    def commit(self, version: int, message: str | None = None) -> None:
        """Keeps `now` as this version."""
        assert version == max(self.versions, default=0) + 1, (version, sorted(self.versions))
        self.versions[version], self.messages[version] = copy.deepcopy(self.now), message

    @property
    def newest(self) -> int:
        """The last version."""
        return max(self.versions)

    def put(self, places: Sequence[Place], columns: dict[str, Sequence[Plain]], dedup: str = "error") -> None:
        """Writes cells; `Failed` where several are at one place and may not be."""
        kept = self._deduplicated(places, dedup)
        for i in kept:
            if not self.schema.sparse:
                for name, values in columns.items():
                    self.now.boxes[name][places[i]] = values[i]
                continue
            row = {name: values[i] for name, values in columns.items()}
            if self.schema.duplicates:
                self.now.cells.setdefault(places[i], []).append(row)
            else:
                self.now.cells[places[i]] = [row]
        self.now.wrote = True

    def _deduplicated(self, places: Sequence[Place], dedup: str) -> list[int]:
        if dedup == "error":
            if not self.schema.duplicates and len(set(places)) < len(places):
                raise Failed("several cells at one place")
            return list(range(len(places)))
        last = {place: i for i, place in enumerate(places)}
        first = {place: i for i, place in reversed(list(enumerate(places)))}
        return sorted((first if dedup == "first" else last).values())

    def delete(self, places: Iterable[Place]) -> None:
        """Deletes cells."""
        for place in places:
            self.now.cells.pop(place, None)
            for box in self.now.boxes.values():
                box.pop(place, None)

    # Reading.

    def unwritten(self, name: str) -> Plain:
        """What an unwritten dense cell reads as."""
        return self.blank(self.schema.attr(name))

    @staticmethod
    def blank(attr: gs.Attr) -> Plain:
        """What an attribute reads as where nothing was written."""
        if attr.nullable:
            return None
        dtype = attr.dtype
        if dtypes.is_var(dtype):
            return attr.fill
        return plain(dtype, np.array([attr.fill], np.dtype(dtype)))[0]

    def dense(self, state: State, name: str, places: Iterable[Place]) -> list[Plain]:
        """The values of an attribute at these places of a dense array."""
        found, empty = state.boxes[name], self.unwritten(name)
        return [found.get(place, empty) for place in places]

    def rows(self, state: State, box: Bounds, order: str) -> list[tuple[Place, Row]]:
        """The cells of a sparse array in a box, in this order ("any": the row order)."""
        inside = [p for p in state.cells if all(lo <= c <= hi for c, (lo, hi) in zip(p, box, strict=True))]
        inside.sort(key=lambda place: self.order_key(place, order))
        return [(place, row) for place in inside for row in state.cells[place]]

    def order_key(self, place: Place, order: str) -> Any:
        """What places are sorted by."""
        if order in ("row", "any"):
            return place
        if order == "col":
            return place[::-1]
        tiles = tuple(self._tile(dim, c) for dim, c in zip(self.schema.dims, place, strict=True))
        tiles = tiles if self.schema.tile_order == "row" else tiles[::-1]
        return tiles, place if self.schema.cell_order == "row" else place[::-1]

    @staticmethod
    def _tile(dim: gs.Dim, coordinate: Any) -> int:
        if dim.tile is None:
            return 0
        low = bounds_of(dim)[0]
        if dtypes.is_float(dim.dtype):
            return math.floor((coordinate - low) / dim.tile)
        return (coordinate - low) // dtypes.ticks_of(dim.tile)

    def places(self, box: Bounds, order: str = "row") -> list[Place]:
        """Every place of a dense box in this order ("any": the global order)."""
        found = list(itertools.product(*(range(lo, hi + 1) for lo, hi in box)))
        found.sort(key=lambda place: self.order_key(place, "global" if order == "any" else order))
        return found

    def written_places(self, state: State) -> set[Place]:
        """Every place that holds something."""
        return set(state.cells).union(*state.boxes.values())
