"""Infers what columns are: types that widen from block to block, domains, tile extents."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..column import arrow, arrow_types, category, codes, datatype
from ..column.columns import Field
from ..errors import InputError, SchemaError, UnsupportedError
from ..schema.array_schema import Schema
from ..schema.arrow import metadata_categories
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from ..schema.tile_shape import auto_tile
from . import integers, numbers
from .dimensions import Chosen, ends_of
from .target import room

_TILES_PER_DATA_TILE = 16
_TILES_MAX = 1 << 20
_AXES_MAX = 32
"""Axes of an array: one for a number, one for each 8 bytes of text."""
_NUMBERS = (pa.int64(), pa.uint64(), integers.LONG, pa.float64())
"""The types of numbers that a CSV file is inferred to have, each with what the ones before it hold."""
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d([.,]\d+)?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII)
"""A date or time in ISO 8601, whether the calendar has it or not."""
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@dataclass(slots=True)
class Column:
    """What is known of one column so far."""

    name: str
    type: Any = None
    nulls: bool = False
    zoned: bool = False
    low: Any = None
    high: Any = None
    known_dtype: str | None = None
    """The datatype that the field's own metadata tells."""
    fill: Any = None
    """What an empty cell of a dense array reads as, if not the type's own fill."""
    longest: int = 0
    """Bytes of UTF-8 of the longest text, of columns whose bounds were asked for."""
    negative: bool = False
    """Whether a column of int64 has had values below zero, which uint64 does not hold."""
    inexact: bool = False
    """Whether it has had whole numbers beyond 2^53, not all of which float64 holds."""
    numeric: bool = False
    """Whether a column of texts has many that are numbers or times, so that the others may be mistakes."""
    zeros: bool = False
    """Whether whole numbers with leading zeros are among its texts, which are names then."""
    entries: list[Any] | None = None
    """The categories seen in dictionaries so far; None: values of any kind."""
    ordered: bool = False
    known_categories: dict[str, Any] | None = None
    """The categories that the field's own metadata tells, as arguments of `Attr`."""
    nat: bool = False
    """Whether the field's own metadata tells that a missing time is NaT, and no null."""

    @classmethod
    def of_field(cls, field: Any) -> "Column":
        """The column that a typed field is; an `UnsupportedError` names it if its type has no place in an array."""
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        kind = pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind
        made = cls(field.name, None if pa.types.is_null(kind) else kind, known_dtype=arrow_types.metadata_dtype(field))
        try:
            # The type of the field, not of the column: decimals are refused here, not taken as numbers of any length.
            dtype = made.known_dtype or arrow_types.dtype_of(pa.string() if made.type is None else made.type)
        except UnsupportedError as error:
            raise UnsupportedError(f"column {field.name!r}: {error}, or leave it out with attrs=") from error
        # Parquet gives dictionaries of text only; what this package wrote says what there were.
        made.known_categories = metadata_categories(field)
        made.nat = datatype.is_time(dtype) and arrow_types.metadata_nullable(field) is False
        if made.known_categories is None and pa.types.is_dictionary(field.type) and category.may_be(dtype):
            made.entries, made.ordered = [], field.type.ordered
        return made

    def collect(self, found: Any) -> None:
        """Adds the entries of the dictionaries of a column; too many of them are values of any kind."""
        for chunk in found.chunks:
            if self.entries is None:
                return
            entries = codes.entries_of(Field(self.name, self.dtype, True, "column"), chunk.dictionary)
            if entries is not None and self.ordered and not category.in_order(self.entries, entries):
                raise InputError(
                    f"column {self.name!r} has ordered categories, in one order here and in another there: "
                    f"{self.entries} and {entries}; give a schema that says which"
                )
            self.entries = None if entries is None else category.gathered(self.entries, entries)

    @property
    def enumeration(self) -> dict[str, Any]:
        """The categories as arguments of `Attr`."""
        if self.entries is None:
            return self.known_categories or {}
        return {"categories": self.entries, "ordered": self.ordered}

    def measure(self, nulls: int, low: Any, high: Any) -> None:
        """Widens the bounds of a typed column; None: no values."""
        self.nulls = self.nulls or nulls > 0
        if low is not None:
            self.low = low if self.low is None else min(self.low, low, key=_key)
            self.high = high if self.high is None else max(self.high, high, key=_key)

    def see(self, found: Any, bounds: bool) -> None:
        """Widens the column by one block of it."""
        self.nulls = self.nulls or found.null_count > 0
        if pa.types.is_null(found.type):
            return
        kind = _plain(found)
        zoned = pa.types.is_timestamp(found.type) and found.type.tz is not None
        self.zoned = self.zoned or zoned
        if bounds and self.type is not None and pa.types.is_string(kind) != pa.types.is_string(self.type):
            self.numeric = True
        if bounds and pa.types.is_string(kind):
            self.numeric = self.numeric or _mostly_values(found)
            self.zeros = self.zeros or _any_zeros(found)
            self.see_texts(found)
        if pa.types.is_int64(kind) and not self.negative:
            self.negative = bool(pc.any(pc.less(found, 0)).as_py())
        self.inexact = self.inexact or _is_inexact(kind, found)
        self.type = kind if self.type is None else _wider(self.type, kind)
        if bounds and found.null_count < len(found):
            low, high = _range(found, zoned)
            self.low = low if self.low is None else _least(self.low, low)
            self.high = high if self.high is None else _greatest(self.high, high)

    def see_texts(self, found: Any) -> None:
        """Remembers the longest text of a block."""
        longest = pc.max(pc.binary_length(found.cast(pa.large_string()))).as_py()
        self.longest = max(self.longest, longest or 0)

    def join(self, other: "Column") -> None:
        """Widens the column by the same one of another file. Whole numbers that floats do not hold become text."""
        self.nulls, self.zoned = self.nulls or other.nulls, self.zoned or other.zoned
        self.negative, self.numeric = self.negative or other.negative, self.numeric or other.numeric
        self.zeros, self.nat = self.zeros or other.zeros, self.nat and other.nat
        self.longest = max(self.longest, other.longest)
        if other.type is None:
            return
        if self.type is not None and pa.types.is_string(self.type) != pa.types.is_string(other.type):
            self.numeric = True
        pair = {self.type, other.type}
        loses = pa.float64() in pair and any(c.inexact and c.type != pa.float64() for c in (self, other))
        self.type = other.type if self.type is None else pa.string() if loses else _wider(self.type, other.type)
        self.numeric, self.inexact = self.numeric or loses, self.inexact or other.inexact
        if other.low is not None:
            self.low = other.low if self.low is None else _least(self.low, other.low)
            self.high = other.high if self.high is None else _greatest(self.high, other.high)

    @property
    def beyond(self) -> bool:
        """Whether it has whole numbers only, and no type of integers holds all of them."""
        return self.type == integers.LONG or (self.type == pa.uint64() and self.negative)

    @property
    def _settled(self) -> Any:
        """The type of its values: text where any other would lose some of them."""
        return pa.string() if self.type is None or self.beyond else self.type

    @property
    def is_text(self) -> bool:
        """Whether a dimension made of it is one of texts."""
        return self.dtype == "string"

    @property
    def read_type(self) -> Any:
        """The type to read the file with."""
        kind = self._settled
        return pa.timestamp(kind.unit, "UTC") if self.zoned and pa.types.is_timestamp(kind) else kind

    @property
    def dtype(self) -> str:
        """The datatype of an attribute or dimension made of it."""
        if self.known_dtype is not None:
            return self.known_dtype
        return arrow_types.dtype_of(self._settled)


def _plain(found: Any) -> Any:
    """The type of a block's column, reduced to those that a column of an array can have."""
    kind = found.type
    if pa.types.is_timestamp(kind):
        if kind.unit != "ns":
            return pa.timestamp("us" if kind.unit == "ms" else kind.unit)
        ticks = found.cast(pa.timestamp(kind.unit)).cast(pa.int64()).drop_null()
        fine = pc.any(pc.not_equal(pc.subtract(ticks, pc.multiply(pc.divide(ticks, 1000), 1000)), 0)).as_py()
        return pa.timestamp("ns" if fine else "us")
    if pa.types.is_time(kind):
        return pa.string()
    return kind


def _range(found: Any, zoned: bool) -> tuple[Any, Any]:
    """The lowest and highest value. (Arrow finds none of durations.)"""
    if pa.types.is_duration(found.type):
        ends = pc.min_max(found.cast(pa.int64()))
        return ends["min"].cast(found.type), ends["max"].cast(found.type)
    ends = pc.min_max(found.cast(pa.timestamp(found.type.unit)) if zoned else found)
    return ends["min"], ends["max"]


def _is_inexact(kind: Any, found: Any) -> bool:
    if not pa.types.is_int64(kind):
        return kind in (pa.uint64(), integers.LONG)
    ends = pc.min_max(found)
    return any(end.is_valid and abs(end.as_py()) > 2**53 for end in (ends["min"], ends["max"]))


def _mostly_values(found: Any) -> bool:
    """Whether more than half of the first texts of a block are numbers, or times."""
    texts = [text for text in found.slice(0, 1_000).to_pylist() if text]
    return any(
        sum(1 for text in texts if is_one(text)) * 2 > len(texts) for is_one in (numbers.is_number, _ISO.fullmatch)
    )


def _any_zeros(found: Any) -> bool:
    """Whether a text is a whole number with leading zeros."""
    return bool(numbers.matches(numbers.bare(found), integers.ZEROS).any())


def _wider(a: Any, b: Any) -> Any:
    """The narrowest type that holds both."""
    if a == b:
        return a
    kinds = pa.types
    if kinds.is_timestamp(a) and kinds.is_timestamp(b):
        units = ("s", "us", "ns")
        return pa.timestamp(max(a.unit, b.unit, key=units.index))
    if a in _NUMBERS and b in _NUMBERS:
        return max(a, b, key=_NUMBERS.index)
    if kinds.is_date32(a) and kinds.is_timestamp(b):
        return b
    if kinds.is_timestamp(a) and kinds.is_date32(b):
        return a
    return pa.string()


def _least(a: Any, b: Any) -> Any:
    return a if a.type != b.type and not _comparable(a, b) else min(a, b, key=_key)


def _greatest(a: Any, b: Any) -> Any:
    return a if a.type != b.type and not _comparable(a, b) else max(a, b, key=_key)


def _comparable(a: Any, b: Any) -> bool:
    return not pa.types.is_string(a.type) and not pa.types.is_string(b.type)


def _key(bound: Any) -> Any:
    """What bounds of a column compare by: times, whose units may differ, as nanoseconds of any size."""
    if not pa.types.is_temporal(bound.type):
        return bound.as_py()
    if pa.types.is_date32(bound.type):
        return bound.value * 86_400 * 10**9
    return bound.value * (10**6 if pa.types.is_date64(bound.type) else _NANOSECONDS[bound.type.unit])


def schema_of(
    columns: Sequence[Column],
    dims: Sequence[str],
    rows: int,
    *,
    sparse: bool,
    duplicates: bool,
    capacity: int,
    chosen: Mapping[str, Chosen] = MappingProxyType({}),
) -> Schema:
    """The schema for these columns; `chosen`: what the caller says of dimensions.

    Sparse: domains are exact, and there are about 16 space tiles per data tile, equally many along each dimension,
    their extents rounded to two digits; texts may be twice as long as the longest (see `target.room`).
    Dense: tiles as `gridstone.array` makes them.
    """
    stated = {name: found.dim for name, found in chosen.items() if found.dim is not None}
    columns = [_as_chosen(column, chosen.get(column.name)) if column.name in dims else column for column in columns]
    by_name = {column.name: column for column in columns}
    attrs = [
        Attr(c.name, c.dtype, nullable=(c.nulls and not c.nat) or c.type is None, fill=c.fill, **c.enumeration)
        for c in columns
        if c.name not in dims
    ]
    if not attrs:
        raise SchemaError(
            f"no column is left for attributes: the dimensions are {', '.join(map(repr, dims))}, and there is no "
            "other; values without coordinates go into a dense array: gridstone.array(uri, values)"
        )
    for name in dims:
        if name not in stated:
            _check_integers(by_name[name])
    texts = {name for name in dims if by_name[name].is_text}
    if texts and not sparse:
        raise UnsupportedError(f"column {min(texts)!r} is string, which only sparse arrays have as a dimension")
    bounds = [None if name in texts else _bounds(by_name[name], chosen.get(name, Chosen())) for name in dims]
    lengths = _lengths([by_name[name] for name in dims], stated)
    if sparse:
        data_tiles = max(1.0, rows / capacity)
        numbers = max(1, len(dims) - len(texts))
        parts = max(1, round(min(_TILES_MAX, _TILES_PER_DATA_TILE * data_tiles) ** (1 / numbers)))
        pairs = [(by_name[name], ends) for name, ends in zip(dims, bounds, strict=True)]
        extents: list[Any] = [None if b is None or c.name in stated else _extent_of(c, b, parts) for c, b in pairs]
    else:
        sizes = [datatype.ticks_of(b[1]) - datatype.ticks_of(b[0]) + 1 for b in bounds if b is not None]
        width = max(datatype.numpy_of(attr.dtype).itemsize for attr in attrs) if attrs else 8
        extents = list(auto_tile(sizes, width))
    made = [
        stated.get(name)
        or (_text_dim(by_name[name], lengths[name], chosen.get(name)) if bound is None else None)
        or Dim(name, bound, extent, by_name[name].dtype)
        for name, bound, extent in zip(dims, bounds, extents, strict=True)
    ]
    if not sparse:
        return Schema(made, attrs)
    return Schema(made, attrs, sparse=True, duplicates=duplicates, capacity=capacity)


def _check_integers(column: Column) -> None:
    """No coordinates that would be compared as text, digit by digit, without being asked for."""
    if column.beyond and column.known_dtype is None:
        raise InputError(
            f"column {column.name!r} has whole numbers from {column.low} to {column.high}, and neither int64 nor "
            f"uint64 holds all of them; correct those that are wrong, or give a schema with "
            f"gridstone.Dim({column.name!r}, dtype='string') for one of texts, or float64, which rounds them"
        )


def _as_chosen(column: Column, found: Chosen | None) -> Column:
    """The column as the type that the caller chose."""
    return column if found is None or found.kind is None else replace(column, known_dtype=found.kind)


def _bounds(column: Column, found: Chosen) -> tuple[Any, Any]:
    """The domain of a dimension of numbers or times: as chosen, else that of the data."""
    if found.dim is not None:
        low, high = found.dim.domain
        return low, high
    low, high = ends_of(found, column.name, column.dtype, _domain(column))
    return low, high


def _lengths(columns: Sequence[Column], stated: Mapping[str, Dim]) -> dict[str, int]:
    """`max_bytes` of each dimension of texts: with room, as far as the axes of an array allow for all of them."""
    texts = [column for column in columns if column.is_text and column.name not in stated]
    others = len(columns) - len(texts)  # Each one axis, or as many as the texts of a stated dimension have words.
    others += sum(-(-dim.max_bytes // 8) - 1 for dim in stated.values() if dim.max_bytes is not None)
    least = {column.name: max(8, -(-column.longest // 8) * 8) for column in texts}
    made = {column.name: room(column.longest) for column in texts}
    while made != least and others + sum(made.values()) // 8 > _AXES_MAX:
        widest = max(made, key=lambda name: made[name] - least[name])
        made[widest] -= 8
    return made


def _text_dim(column: Column, longest: int, found: Chosen | None) -> Dim:
    if found is not None and found.domain is not None:
        raise InputError(f"column {column.name!r} is text, which has no domain: every text is inside; leave it out")
    if column.numeric and not column.zeros and (found is None or found.dtype is None):
        raise UnsupportedError(
            f"column {column.name!r} has numbers and other texts, or times and others; correct those that are none, or "
            f"give a schema with gridstone.Dim({column.name!r}, dtype='string') if it is to be a dimension of texts"
        )
    return Dim(column.name, dtype="string", max_bytes=longest)


def _domain(column: Column) -> tuple[Any, Any]:
    kind = column.dtype
    if datatype.is_var(kind) or kind == "bool":
        raise UnsupportedError(
            f"column {column.name!r} is {kind}, which cannot be a dimension in this version; "
            f"use a column of numbers or times, or correct the values that are none"
        )
    if column.low is None:
        raise InputError(f"column {column.name!r} has no values; a dimension needs a coordinate in every row")
    try:
        ends = pa.array([_as(bound, column.type) for bound in (column.low, column.high)], column.type)
    except pa.ArrowInvalid as error:
        raise InputError(f"column {column.name!r}: {error}; no type holds all of its values") from error
    low, high = arrow.column_of(Field(column.name, kind, False, "dimension"), ends).values
    return (low, high) if datatype.is_time(kind) else (low.item(), high.item())


def _as(bound: Any, kind: Any) -> Any:
    """A bound in the type of the column; of whole numbers beyond int64 the float that their text is read as."""
    if pa.types.is_float64(kind) and bound.type in (pa.uint64(), integers.LONG):
        return float(bound.as_py())
    return bound.cast(kind)


def _extent_of(column: Column, ends: tuple[Any, Any], parts: int) -> Any:
    """A tile extent for where the data lies; for the whole domain if all of it has one coordinate."""
    low, high = _domain(column)
    return _extent(column.dtype, ends if low == high else (low, high), parts)


def _extent(dtype: str, bounds: tuple[Any, Any], parts: int) -> Any:
    """One part of the domain, rounded up to two digits."""
    if datatype.is_float(dtype):
        span = bounds[1] - bounds[0]
        return _rounded(span / parts) if span > 0 and math.isfinite(span) else None
    size = datatype.ticks_of(bounds[1]) - datatype.ticks_of(bounds[0]) + 1
    return min(size, max(1, math.ceil(_rounded(size / parts))))


def _rounded(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit) * unit:.12g}")
