"""Random schemas, cells, boxes and keys for the state machine, with the edges of every type.

Everything comes from a `random.Random` that Hypothesis seeds: cheap, and a failing run can be repeated.
"""

import math
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from model import NAT, Place, Plain, bounds_of, coordinates, plain, unplain

import gridstone as gs
from gridstone.column import arrow_types
from gridstone.column import datatype as dtypes

_INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
_TIMES = ["datetime64[D]", "datetime64[s]", "datetime64[us]", "datetime64[ns]", "timedelta64[ms]", "timedelta64[h]"]
_FLOATS = ["float32", "float64"]
_COMPOSITE = [
    "float16",
    "complex64",
    "complex128",
    "bytes[3]",
    "uint8[3]",
    "float32[2,3]",
    "complex64[2]",
    "bool[4]",
    "int64[1]",
    "list[int16]",
    "list[float64]",
    "list[bool]",
    "list[complex128]",
]
_SIDE_MAX = {1: 40, 2: 11, 3: 5, 4: 4}
_WINDOW_MAX = 5
_TEXTS = ["", "a", "ab", "é", "harbour", "x" * 300, "naïve\n", "𝔘", "\x00", "a\x00"]
_BLOBS = [Random(seed).randbytes(9_000) for seed in range(9)]
"""A few dozen of these make a fragment too large for a commit's record, or for the overlay of small fragments."""
OWN_FILTER = "machine.xor"
"""A filter that is drawn once it is registered."""
_COARSE_TICKS = [-1_000_000, -1, 0, 1, 19_000, 2_000_000]


class Window(NamedTuple):
    """A dimension, and the coordinates (ticks) that tests use of it, ascending."""

    dim: gs.Dim
    values: list[Any]
    huge: bool


def _limits(dtype: str) -> tuple[int, int]:
    if dtypes.is_time(dtype):
        return -(2**63) + 1, 2**63 - 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def window(r: Random, name: str, sparse: bool, ndim: int) -> Window:
    """A dimension: small anywhere in its type (at the ends, around zero), or as large as its type; or of texts."""
    if sparse and r.random() < 0.2:
        return _text_window(r, name)
    kinds = _INTEGERS + _TIMES + (_FLOATS if sparse else [])
    dtype = r.choice(kinds)
    if dtypes.is_float(dtype):
        return _float_window(r, name, dtype)
    low, high = _limits(dtype)
    if r.random() < 0.25:
        return _huge_window(r, name, dtype, sparse)
    size = r.randint(1, _SIDE_MAX[ndim])
    start = r.choice(
        [low, high - size + 1, min(max(-(size // 2), low), high - size + 1), r.randint(low, high - size + 1)]
    )
    tile = r.choice([None, 1, size, r.randint(1, size)])
    dim = gs.Dim(name, _domain(dtype, start, start + size - 1), tile, dtype)
    return Window(dim, list(range(start, start + size)), False)


def _huge_window(r: Random, name: str, dtype: str, sparse: bool) -> Window:
    low, high = _limits(dtype)
    span = high - low + 1
    longest = None if span >= 2**63 else span
    tile = r.choice([1, 2, 3, 7] if not sparse else [1, 7, 100, min(span, 2**40), longest, None])
    dim = gs.Dim(name, _domain(dtype, low, high), tile, dtype)
    if sparse:
        inner = [r.randint(low, high) for _ in range(6)]
        return Window(dim, sorted({low, low + 1, high - 1, high, *inner}), True)
    first = r.choice([low, high - _WINDOW_MAX + 1, min(max(-2, low), high), r.randint(low, high - _WINDOW_MAX)])
    return Window(dim, list(range(first, min(high + 1, first + _WINDOW_MAX))), True)


def _float_window(r: Random, name: str, dtype: str) -> Window:
    kind = np.dtype(dtype).type
    low, high = r.choice([(-4.0, 4.0), (0.0, 1.0), (-1e30, 1e30), (-180.0, -179.5)])
    low, high = float(kind(low)), float(kind(high))
    tile = r.choice([None, 0.5, 0.1, 1e6]) if high - low < 1e9 else r.choice([None, 1e29])
    inner = [float(kind(low + (high - low) * r.random())) for _ in range(8)]
    edges = [low, high, float(np.nextafter(kind(low), kind(high))), *([0.0] if low <= 0.0 <= high else [])]
    return Window(
        gs.Dim(name, (low, high), tile, dtype), sorted({min(max(v, low), high) for v in inner + edges}), False
    )


def _text_window(r: Random, name: str) -> Window:
    dim = gs.Dim(name, dtype="string", max_bytes=r.choice([5, 8, 16, 20]))
    longest = dim.max_bytes or 0
    heads = ["", "a", "ab", "aaaaaaa", "aaaaaaaa", "aaaaaaaaaaaaaaa", "é", "漢字漢", "\x01", "\U0010ffff", "z"]
    tails = ["", "", "a", "b", "é", "\x7f", "漢", "𝔘", "\ud7ff", "\uffff", "\U0010ffff"]
    made = {r.choice(heads) + r.choice(tails) + r.choice(tails) for _ in range(30)}
    return Window(dim, sorted({"", *(text for text in made if len(text.encode()) <= longest)}), False)


def _domain(dtype: str, low: int, high: int) -> tuple[Any, Any]:
    return dtypes.from_text(dtype, str(low)), dtypes.from_text(dtype, str(high))


def pool(dtype: str, nullable: bool, blobs: bool = False) -> list[Plain]:
    """Values of a type, its edges among them. NaT is left out where there is null: pandas and Arrow know one only."""
    if dtype == "bool":
        return [False, True]
    if dtype == "string":
        return list(_TEXTS)
    if dtype == "bytes":
        return [*_BLOBS] if blobs else [text.encode() for text in _TEXTS] + [b"\xff\xfe", b"\x00\x00"]
    base = dtypes.base_of(dtype)
    if base != dtype:
        some, inner = pool(base, True), dtypes.shape_of(dtype)
        lengths = [math.prod(inner)] * 6 if inner else [0, 0, 1, 2, 3, 9]
        return [tuple(some[(i * 7 + k * 3) % len(some)] for k in range(n)) for i, n in enumerate(lengths)]
    if dtypes.is_fixed_bytes(dtype):
        return [b"", b"a", b"\x00a", b"\xff\xfe\xfd", b"abc", b"ab"]
    if dtypes.is_complex(dtype):
        found = [0j, complex(-0.0, 1.5), complex(np.nan, 1), complex(1, -np.inf), 2.5 - 1j]
        return [repr(np.dtype(dtype).type(v).item()) for v in found]
    if dtypes.is_float(dtype):
        info = np.finfo(dtype)
        found = [0.0, -0.0, 1.0, -1.5, np.nan, np.inf, -np.inf, info.max, info.min, info.tiny, 1 / 3]
        return [repr(float(np.dtype(dtype).type(v))) for v in found]
    if dtypes.is_time(dtype):
        unit = dtypes.unit_of(dtype)
        edges = [] if unit in ("D", "h") else [-(2**63) + 1, 2**63 - 1]
        return [*_COARSE_TICKS, *edges, *([] if nullable else [NAT])]
    low, high = _limits(dtype)
    return [low, low + 1, 0, 1, 2, 3, 7, high // 2, high - 1, high]


def attribute(r: Random, name: str) -> gs.Attr:
    """An attribute of any type, perhaps nullable, with a fill and filters."""
    dtype = r.choice(["bool", *_INTEGERS, *_FLOATS, *_FLOATS, *_TIMES, "string", "string", "bytes", *_COMPOSITE])
    nullable = r.random() < 0.4
    if r.random() < 0.2 and may_be_category(dtype):
        return _enumerated(r, name, dtype, nullable)
    fill = None
    if r.random() < 0.4:
        value = r.choice([v for v in pool(dtype, nullable) if v != NAT])
        fill = _as_fill(dtype, value)
    return gs.Attr(name, dtype, nullable=nullable, fill=fill, filters=rounded(r, dtype, r.choice(_filters(dtype))))


def rounded(r: Random, dtype: str, filters: Any) -> Any:
    """Filters of a type, of floats sometimes with rounding in front."""
    base = dtypes.base_of(dtype)
    if not (dtypes.is_float(base) or dtypes.is_complex(base)) or r.random() < 0.7:
        return filters
    return [f"bitround:{r.randint(1, 9)}", *([filters] if isinstance(filters, str) else filters)]


def may_be_category(dtype: str) -> bool:
    """Whether values of a type may be categories."""
    return dtype in ("string", "bytes") or (dtypes.is_primitive(dtype) and not dtypes.is_complex(dtype))


def some_categories(r: Random, dtype: str, count: int) -> list[Any]:
    """Different values, as users write them; fewer where the type has no more."""
    found = [v for v in pool(dtype, True) if v not in ("nan", "-0.0")]
    return [_as_fill(dtype, v) for v in r.sample(list(dict.fromkeys(found)), min(count, len(set(found))))]


def as_given(attr: gs.Attr) -> list[Any]:
    """The categories of an attribute as `some_categories` gives them."""
    return [_as_fill(attr.dtype, value) for value in values_of(attr)]


def _enumerated(r: Random, name: str, dtype: str, nullable: bool) -> gs.Attr:
    known = some_categories(r, dtype, r.randint(1, 6))
    return gs.Attr(
        name,
        dtype,
        nullable=nullable,
        fill=r.choice([None, r.choice(known)]),
        filters=r.choice(["auto", "none", "zstd:1", "for", ["dict", "lz4"]]),
        categories=known,
        ordered=r.random() < 0.4,
        codes=r.choice([None, None, "uint16", "uint32"]),
    )


def values_of(attr: gs.Attr) -> list[Plain]:
    """The plain values that cells of an attribute are drawn from."""
    if attr.enumeration is not None:
        return plain(attr.dtype, attr.enumeration.array)
    return pool(attr.dtype, attr.nullable, attr.name == "blob")


def _as_fill(dtype: str, value: Any) -> Any:
    """A plain value as users write a fill."""
    if isinstance(value, tuple):
        flat = [_as_fill(dtypes.base_of(dtype), one) for one in value]
        inner = dtypes.shape_of(dtype)
        return np.array(flat, dtypes.numpy_of(dtype)).reshape(inner).tolist() if inner else flat
    return float(value) if dtypes.is_float(dtype) else complex(value) if dtypes.is_complex(dtype) else value


def _filters(dtype: str) -> list[Any]:
    found: list[Any] = [
        "auto",
        "auto",
        "none",
        "zstd:1",
        "gzip",
        "lz4",
        ["shuffle", "lz4"],
        ["bitshuffle", "zstd"],
        "rle",
        ["dict", "lz4"],
    ]
    if OWN_FILTER in gs.registered_filters():
        found[4:4] = [OWN_FILTER, ["shuffle", OWN_FILTER, "lz4"]]
    dtype = dtypes.base_of(dtype)
    if dtypes.is_var(dtype) or dtypes.is_fixed_bytes(dtype) or dtype == "bool":
        return [filters for filters in found[:6] if "shuffle" not in filters]
    whole = dtype in _INTEGERS or dtypes.is_time(dtype)
    wide = np.dtype(dtype).itemsize > 1
    return found + (["delta", "for", ["delta", "for", "zstd"]] if whole else []) + (["pco"] if wide else [])


def schema(r: Random, sparse: bool, ndim: int) -> tuple[gs.Schema, list[Window]]:
    """A schema, and the coordinates to use of it."""
    windows = [window(r, name, sparse, ndim) for name in r.sample(["x", "y", "time", "été", "a b"], ndim)]
    attrs = [attribute(r, name) for name in ["v", "w", "s"][: r.randint(1, 3)]]
    if r.random() < 0.3:
        attrs[-1] = gs.Attr("blob", bytes, nullable=r.random() < 0.3, filters="none")
    orders = {"tile_order": r.choice(["row", "col"]), "cell_order": r.choice(["row", "col"])}
    if sparse:
        orders |= {"capacity": r.choice([1, 3, 10, 10_000]), "duplicates": r.random() < 0.4}
        orders |= {"coord_filters": r.choice(["auto", "none", "zstd"])}
        numbers = all(dtypes.numpy_of(w.dim.dtype).kind in "iufmM" for w in windows)
        orders |= {"cell_order": "hilbert"} if numbers and r.random() < 0.3 else {}
    return gs.Schema([w.dim for w in windows], attrs, sparse=sparse, **orders), windows


def values(r: Random, attr: gs.Attr, count: int) -> list[Plain]:
    """Plain values, nulls among them where they may be."""
    found = r.choices(values_of(attr), k=count)
    if attr.nullable and r.random() < 0.6:
        found = [None if r.random() < 0.3 else value for value in found]
    return found


def box(r: Random, windows: Sequence[Window]) -> list[tuple[Any, Any]]:
    """Inclusive bounds in ticks; small where the domain is huge."""
    pairs = [sorted(r.choices(w.values, k=2)) for w in windows]
    if r.random() < 0.2:
        pairs = [[w.values[0], w.values[-1]] for w in windows]
    return [(lo, hi) for lo, hi in pairs]


def key_value(dim: gs.Dim, tick: Any) -> Any:
    """A coordinate as users write it."""
    return dtypes.from_text(dim.dtype, str(tick)) if dtypes.is_time(dim.dtype) else tick


def coordinate_slice(r: Random, dim: gs.Dim, lo: Any, hi: Any) -> slice:
    """The half-open slice of coordinates that means lo..hi, open ends where it ends with the domain."""
    low, high = bounds_of(dim)
    start = None if lo == low and r.random() < 0.5 else key_value(dim, lo)
    if dim.is_text:
        return slice(start, hi + "\x01")  # no text lies in between
    if hi == high and (r.random() < 0.5 or dtypes.is_time(dim.dtype) or dtypes.is_float(dim.dtype)):
        return slice(start, None)
    if dtypes.is_float(dim.dtype):
        kind = np.dtype(dim.dtype).type
        return slice(start, float(np.nextafter(kind(hi), kind(np.inf))))
    return slice(start, key_value(dim, hi + 1))


def box_form(r: Random, windows: Sequence[Window], bounds: Sequence[tuple[Any, Any]]) -> Any:
    """One of the ways to say a box."""
    dims = [w.dim for w in windows]
    if all(b == bounds_of(d) for d, b in zip(dims, bounds, strict=True)) and r.random() < 0.5:
        return None
    slices = [coordinate_slice(r, d, lo, hi) for d, (lo, hi) in zip(dims, bounds, strict=True)]
    pairs = [(key_value(d, lo), key_value(d, hi)) for d, (lo, hi) in zip(dims, bounds, strict=True)]
    form = r.choice(["pairs", "slices", "tuple"])
    if form == "tuple":
        return tuple(slices)
    return {d.name: part for d, part in zip(dims, pairs if form == "pairs" else slices, strict=True)}


def positions(r: Random, windows: Sequence[Window]) -> tuple[Any, ...]:
    """A key of integers and slices, negative ones and steps among them, that stays in the windows."""
    return tuple(_position(r, w) for w in windows)


def _position(r: Random, w: Window) -> Any:
    low, size = bounds_of(w.dim)[0], w.dim.size
    first, last = w.values[0] - low, w.values[-1] - low
    a, b = sorted(r.choices(range(first, last + 1), k=2))

    def signed(position: int) -> int:
        return position - size if r.random() < 0.3 else position

    form = r.choice(["one", "span", "step", "back", "all"])
    if form == "one":
        return np.int64(a) if r.random() < 0.2 and a < 2**63 else signed(a)
    if form == "all" and not w.huge:
        return r.choice([slice(None), slice(None, None, -1), slice(-(size + 5), size + 5, 2)])
    if form == "back":
        return slice(signed(b), signed(a - 1) if a > 0 else None, r.choice([-1, -2, -3]))
    stop = b + 1 if b + 1 == size or r.random() < 0.7 else b + 1 - size
    return slice(signed(a), stop, r.choice([2, 3, 9]) if form == "step" else None)


def places(r: Random, windows: Sequence[Window], count: int) -> list[Place]:
    """Places, repeated ones among them."""
    return [tuple(r.choice(w.values) for w in windows) for _ in range(count)]


def cells(
    r: Random, schema: gs.Schema, where: Sequence[Place], columns: dict[str, list[Plain]]
) -> tuple[tuple[Any, ...], dict[str, list[Plain]]]:
    """The arguments of `write_cells` in one of its forms, and the plain values that this form stands for."""
    dims = {d.name: coordinates(d, [p[i] for p in where]) for i, d in enumerate(schema.dims)}
    attrs = {name: unplain(schema.attr(name).dtype, found) for name, found in columns.items()}
    form = r.choice(["dict", "dict", "tuple", "matrix", "arrow", "pandas"])
    if form in ("arrow", "pandas") and not all(fits_arrow(d, [p[i] for p in where]) for i, d in enumerate(schema.dims)):
        form = "dict"
    if form == "arrow":
        made = {n: _arrow_column(schema.dim(n).dtype, v) for n, v in dims.items()}
        made |= {n: _arrow_column(schema.attr(n).dtype, v) for n, v in attrs.items()}
        coded = [name for name in attrs if schema.attr(name).categories and r.random() < 0.6]
        return (pa.table({n: _as_dictionary(v) if n in coded else v for n, v in made.items()}),), columns
    if form == "pandas":
        made = {**dims, **{name: _series(schema.attr(name).dtype, v) for name, v in attrs.items()}}
        for name in attrs:
            if schema.attr(name).categories and schema.attr(name).dtype != "float16" and r.random() < 0.6:
                made[name] = made[name].astype("category")
        return (pd.DataFrame(made),), {n: _as_pandas_means(schema.attr(n), v) for n, v in columns.items()}
    given: Any = attrs if len(schema.attrs) > 1 or r.random() < 0.5 else next(iter(attrs.values()))
    if form == "matrix" and len({d.dtype for d in schema.dims}) == 1:
        return (np.stack(list(dims.values()), axis=1), given), columns
    return (tuple(dims.values()) if form == "tuple" else dims, given), columns


def fits_arrow(dim: gs.Dim, ticks: Sequence[Any]) -> bool:
    """Whether Arrow has room for these coordinates: days and hours at the ends of int64 overflow its seconds."""
    return not dim.dtype.endswith(("[D]", "[h]")) or max(map(abs, ticks), default=0) < 2**45


def _arrow_column(dtype: str, column: Any) -> Any:
    mask = np.ma.getmaskarray(column) if np.ma.isMaskedArray(column) else None
    found = np.ma.getdata(column)
    if dtypes.is_list(dtype) or dtypes.shape_of(dtype) or dtypes.is_complex(dtype) or dtypes.is_fixed_bytes(dtype):
        wanted, nulls = arrow_types.type_of(dtype), [v is None for v in plain(dtype, column)]
        return pa.array([None if n else _for_arrow(dtype, v) for n, v in zip(nulls, found, strict=True)], wanted)
    if dtypes.is_time(dtype):
        kind, unit = dtype.partition("[")[0], dtypes.unit_of(dtype)
        found = found.astype(f"{kind}[{unit if unit in ('s', 'ms', 'us', 'ns') else 's'}]")
    return pa.array(found, arrow_types.type_of(dtype), mask=mask)


def _as_dictionary(column: Any) -> Any:
    """A column with a dictionary, in two chunks that have different ones."""
    half = len(column) // 2
    parts = [column[:half], column[half:]]
    try:
        return pa.chunked_array([part.dictionary_encode() for part in parts], pa.dictionary(pa.int32(), column.type))
    except pa.ArrowNotImplementedError:  # of halves
        return column


def _for_arrow(dtype: str, value: Any) -> Any:
    """A value as a list or as bytes: a complex number is a list of two."""
    if isinstance(value, np.ndarray):
        return [_for_arrow(dtypes.base_of(dtype), one) for one in value]
    if isinstance(value, complex | np.complexfloating):
        return [value.real, value.imag]
    if isinstance(value, bytes):
        return value.ljust(dtypes.length_of(dtype), b"\0")
    return value


def _series(dtype: str, column: Any) -> Any:
    if dtypes.shape_of(dtype) or dtypes.is_list(dtype):
        cells = [None if v is None else row for v, row in zip(plain(dtype, column), np.ma.getdata(column), strict=True)]
        made = np.empty(len(cells), object)
        for i, cell in enumerate(cells):
            made[i] = cell
        return pd.Series(made)
    if dtypes.is_fixed_bytes(dtype):
        return pd.Series(plain(dtype, column), dtype=object)
    if not np.ma.isMaskedArray(column):
        return pd.Series(column)
    found, mask = column.data, column.mask
    if dtypes.is_float(dtype) or dtypes.is_complex(dtype):
        return pd.Series(np.where(mask, np.nan, found).astype(dtype))
    if dtypes.is_time(dtype):
        return pd.Series(np.where(mask, np.array("NaT", dtype), found))
    return pd.Series([None if null else v for v, null in zip(found.tolist(), mask.tolist(), strict=True)], dtype=object)


def _as_pandas_means(attr: gs.Attr, column: list[Plain]) -> list[Plain]:
    """In a data frame NaN is null, where there may be null."""
    if attr.nullable and (dtypes.is_float(attr.dtype) or dtypes.is_complex(attr.dtype)):
        return [None if value is not None and "nan" in str(value) else value for value in column]
    return column


def repeated(column: Any) -> Any:
    """Twice as many values."""
    return np.ma.concatenate([column, column]) if np.ma.isMaskedArray(column) else np.concatenate([column, column])


def outside(dim: gs.Dim, count: int) -> Any:
    """Coordinates of which the last is outside the domain, NaN or too long; None if the type ends with the domain."""
    if dim.is_text:
        return coordinates(dim, ["a"] * (count - 1) + ["x" * ((dim.max_bytes or 0) + 1)])
    low, high = bounds_of(dim)
    if dtypes.is_float(dim.dtype):
        return coordinates(dim, [low] * (count - 1) + [float("nan")])
    return None if high == _limits(dim.dtype)[1] else coordinates(dim, [low] * (count - 1) + [high + 1])
