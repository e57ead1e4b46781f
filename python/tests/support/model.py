"""What an array should hold: a naive model in plain Python, and the plain form that cells are compared in.

A value in plain form is None (null), a bool, int, str or bytes; a float or complex number is its `repr` (so that NaN
equals NaN and -0.0 differs from 0.0); a vector or list is a tuple of plain values (a vector's in row-major order); a
datetime or timedelta is its ticks, NaT the text "NaT". A place is a tuple of ticks (floats for float dimensions).
"""

import copy
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import curve
import numpy as np
import pyarrow as pa

import gridstone as gs
from gridstone.column import datatype as dtypes

Plain = None | bool | int | str | bytes | tuple[Any, ...]
Place = tuple[Any, ...]
Bounds = Sequence[tuple[Any, Any]]
Row = dict[str, Plain]

NAT = "NaT"
_SECONDS = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60}


def plain(dtype: str, values: Any) -> list[Plain]:
    """The values of an array (masked where null) as NumPy gives them, flat in row-major order."""
    masked = np.ma.getmaskarray(values).ravel() if np.ma.isMaskedArray(values) else None
    flat = np.ma.getdata(values).ravel()
    base = dtypes.base_of(dtype)
    if inner := math.prod(dtypes.shape_of(dtype)) if dtypes.shape_of(dtype) else 0:
        found = [tuple(plain(base, row)) for row in flat.reshape(-1, inner)]
        if masked is not None:
            masked = masked.reshape(-1, inner)
            assert (masked.all(1) == masked.any(1)).all()
            masked = masked[:, 0]
    elif dtypes.is_list(dtype):
        found = [() if v is None else tuple(plain(base, v)) for v in flat]
    elif dtypes.is_time(dtype):
        assert flat.dtype == np.dtype(dtype), (flat.dtype, dtype)
        found = [NAT if nat else t for nat, t in zip(np.isnat(flat), flat.view(np.int64).tolist(), strict=True)]
    elif dtypes.is_var(dtype):
        found = flat.tolist()
    else:
        assert flat.dtype.kind == "S" or flat.dtype == dtypes.numpy_of(dtype), (flat.dtype, dtype)
        numbers = dtypes.is_float(dtype) or dtypes.is_complex(dtype)
        found = [repr(v) for v in flat.tolist()] if numbers else flat.tolist()
    if masked is not None:
        return [None if null else v for null, v in zip(masked.tolist(), found, strict=True)]
    return found


def positive(dtype: str, value: Plain) -> Plain:
    """A plain value with zeros of either sign as one."""
    if isinstance(value, tuple):
        return tuple(positive(dtypes.base_of(dtype), one) for one in value)
    base = dtypes.base_of(dtype)
    if isinstance(value, str) and dtypes.is_complex(base):
        return repr(complex(value) + 0)
    return "0.0" if value == "-0.0" and dtypes.is_float(base) else value


def plain_arrow(dtype: str, column: Any) -> list[Plain]:
    """An Arrow column; NaT is null there, so that both come back as None."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if dtypes.is_time(dtype):
        factor = _SECONDS.get(dtypes.unit_of(dtype), 1)
        ticks = column.cast(pa.int64()).to_pylist()
        return [None if t is None else t // factor for t in ticks]
    return [None if v is None else _of_arrow(dtype, v) for v in column.to_pylist()]


def _of_arrow(dtype: str, value: Any) -> Plain:
    if dtypes.is_list(dtype):
        return tuple(_of_arrow(dtypes.base_of(dtype), one) for one in value)
    if shape := dtypes.shape_of(dtype):
        for _ in shape[1:]:
            value = [one for part in value for one in part]
        return tuple(_of_arrow(dtypes.base_of(dtype), one) for one in value)
    if dtypes.is_fixed_bytes(dtype):
        assert len(value) == dtypes.length_of(dtype)
        return bytes(value.rstrip(b"\0"))
    if dtypes.is_complex(dtype):
        return repr(complex(*value))
    return repr(value) if dtypes.is_float(dtype) else value


def as_arrow_shows(dtype: str, values: Iterable[Plain]) -> list[Plain]:
    """Plain values as `plain_arrow` gives them."""
    return [None if v == NAT else v for v in values] if dtypes.is_time(dtype) else list(values)


def unplain(dtype: str, values: Sequence[Plain]) -> Any:
    """The NumPy array of plain values (a masked array where one is null); the mirror of `plain`."""
    nulls: Any = [v is None for v in values]
    made = _unplain(dtype, values)
    if inner := dtypes.shape_of(dtype):
        nulls = np.broadcast_to(np.array(nulls, bool).reshape(-1, *(1 for _ in inner)), made.shape)
    return np.ma.MaskedArray(made, mask=nulls) if np.any(nulls) else made


def _unplain(dtype: str, values: Sequence[Plain]) -> Any:
    target, base = dtypes.numpy_of(dtype), dtypes.base_of(dtype)
    if inner := dtypes.shape_of(dtype):
        flat = [one for v in values for one in ([None] * math.prod(inner) if v is None else v)]  # type: ignore[union-attr]
        return _unplain(base, flat).reshape(len(values), *inner)
    if dtypes.is_list(dtype):
        made = np.empty(len(values), object)
        for i, v in enumerate(values):
            made[i] = _unplain(base, () if v is None else v)  # type: ignore[arg-type]
        return made
    if dtypes.is_var(dtype):
        made = np.empty(len(values), object)
        made[:] = [("" if dtype == "string" else b"") if v is None else v for v in values]
        return made
    if dtypes.is_time(dtype):
        nat = np.iinfo(np.int64).min
        return np.array([nat if v in (NAT, None) else v for v in values], np.int64).view(target)
    if dtypes.is_fixed_bytes(dtype):
        return np.array([b"" if v is None else v for v in values], target)
    number = complex if dtypes.is_complex(dtype) else float if dtypes.is_float(dtype) else int
    return np.array([number("0") if v is None else number(v) for v in values], target)  # type: ignore[arg-type]


def shaped(dtype: str, values: Sequence[Plain], shape: tuple[int, ...]) -> Any:
    """The NumPy array of plain values for cells of `shape`."""
    return unplain(dtype, values).reshape(cells_shape(dtype, shape))


def cells_shape(dtype: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the array that holds values of a type for cells of `shape`."""
    return (*shape, *dtypes.shape_of(dtype))


def ticks(dim: gs.Dim, values: Any) -> list[Any]:
    """Coordinates as places hold them."""
    found = np.asarray(values)
    return found.view(np.int64).tolist() if found.dtype.kind in "mM" else found.tolist()


def coordinates(dim: gs.Dim, values: Sequence[Any]) -> Any:
    """The NumPy array of coordinates; the mirror of `ticks`."""
    target = dtypes.numpy_of(dim.dtype)
    return np.array(values, np.int64).view(target) if target.kind in "mM" else np.array(values, target)


def bounds_of(dim: gs.Dim) -> tuple[Any, Any]:
    """The domain in ticks; of texts, between which all are that are not too long."""
    if dim.is_text:
        return "", "\U0010ffff" * 9
    lo, hi = dim.domain
    return (lo, hi) if dtypes.is_float(dim.dtype) else (dtypes.ticks_of(lo), dtypes.ticks_of(hi))


def stored(attr: gs.Attr, value: Plain) -> Plain:
    """What is kept of a value where the attribute is rounded."""
    if not attr.lossy or value is None:
        return value
    keep, base = int(attr.filters.partition(",")[0].partition(":")[2]), dtypes.base_of(attr.dtype)
    if isinstance(value, tuple):
        return tuple(_rounded(base, keep, one) for one in value)
    return _rounded(base, keep, value)


def _rounded(dtype: str, keep: int, value: Any) -> str:
    if dtypes.is_complex(dtype):
        part, whole = ("float32" if dtype == "complex64" else "float64"), complex(value)
        return repr(complex(*(float(_rounded(part, keep, repr(v))) for v in (whole.real, whole.imag))))
    return repr(nearest(dtype, float(value), keep))


def nearest(dtype: str, value: float, keep: int) -> float:
    """Of the two neighbours of a float with `keep` bits of mantissa the nearer one, of two as near the even one."""
    if not math.isfinite(value):
        return value
    info = np.finfo(dtype)
    exponent = math.frexp(abs(value))[1]
    step = math.ldexp(1.0, max(exponent - 1, int(info.minexp)) - keep)
    count = abs(value) / step
    made = round(count) * step if math.isfinite(count) else math.inf
    if made > float(info.max):
        made = math.floor(count) * step
    return math.copysign(made, value)


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
        # Tiles are counted, and a curve is framed, from the first domain.
        self.first_dims = schema.dims
        self.dtypes = {attr.name: attr.dtype for attr in schema.attrs}
        self.now = State(boxes={attr.name: {} for attr in schema.attrs})
        self.versions: dict[int, State] = {}
        self.messages: dict[int, str | None] = {}
        # Schemas that states have had by their numbers, with the coordinates in use.
        self.shapes: dict[int, tuple[gs.Schema, Any]] = {}

    # Writing: changes `now`; `commit` makes a version of it.

    def commit(self, version: int, message: str | None = None) -> None:
        """Keeps `now` as this version."""
        assert not self.versions or version == max(self.versions) + 1, (version, sorted(self.versions))
        self.versions[version], self.messages[version] = copy.deepcopy(self.now), message

    @property
    def newest(self) -> int:
        """The last version."""
        return max(self.versions)

    def put(self, places: Sequence[Place], columns: dict[str, Sequence[Plain]], dedup: str = "error") -> None:
        """Writes cells; `Failed` where several are at one place and may not be."""
        kept = self._deduplicated(places, dedup)
        columns = {name: [stored(self.schema.attr(name), value) for value in found] for name, found in columns.items()}
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
        if dtype in ("string", "bytes"):
            return attr.fill
        made = np.empty(1, object) if dtypes.is_list(dtype) else np.empty((1, *attr.shape), dtypes.numpy_of(dtype))
        made[0] = np.array(attr.fill, dtypes.numpy_of(dtypes.base_of(dtype)))
        return plain(dtype, made)[0]

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
        tiles = tuple(self._tile(dim, c) for dim, c in zip(self.first_dims, place, strict=True))
        tiles = tiles if self.schema.tile_order == "row" else tiles[::-1]
        if self.schema.cell_order == "hilbert":
            return tiles, curve.index(self.first_dims, place), place
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
