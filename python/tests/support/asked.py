"""Arrays of many types, and predicates over them, as SQL, as pyarrow has them and as polars has them."""

import datetime as dt
import math
import uuid
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import gridstone as gs

QUICK = gs.Context(durability="close")
NAN, INF = math.nan, math.inf

ATTRS = [
    gs.Attr("i", "int8", nullable=True),
    gs.Attr("u", "uint64"),
    gs.Attr("f", "float64", nullable=True),
    gs.Attr("g", "float32"),
    gs.Attr("s", "string", nullable=True),
    gs.Attr("b", "bool", nullable=True),
    gs.Attr("by", "bytes"),
    gs.Attr("t", "datetime64[us]", nullable=True),
    gs.Attr("day", "datetime64[D]"),
    gs.Attr("ns", "datetime64[ns]"),
    gs.Attr("ms", "datetime64[ms]"),
    gs.Attr("e", "string", nullable=True, categories=["lee", "luff", "o'er", ""]),
    gs.Attr("w", "timedelta64[ms]"),
    gs.Attr("h", "bytes[2]"),
    gs.Attr('a "b', "int64"),
]
_DAY = np.datetime64("2024-05-01", "D")
VALUES: dict[str, list[Any]] = {
    "x": [0, 1, 7, 20, 39, -5, 1_000],
    "y": [-(2**63), -1, 0, 2**63 - 1],
    "i": [-128, -1, 0, 5, 127],
    "u": [0, 1, 2**53 + 1, 2**63, 2**64 - 1],
    "f": [NAN, INF, -INF, -0.0, 0.0, 1.5, -2.25, 1e308, 5e-324],
    "g": [NAN, INF, -0.0, 0.5, float(np.float32(0.1)), -3.0],
    "s": ["", "a", "ab", "é", "it's", "𝔘", "z" * 40, "\x00"],
    "b": [True, False],
    "by": [b"", b"\x00", b"ab", b"\xff\x00"],
    "t": [np.datetime64(n, "us") for n in (-1, 0, 1_714_521_600_000_001, 1_714_608_000_000_000)],
    "day": [_DAY, _DAY + 1, np.datetime64("1970-01-01"), np.datetime64("1600-02-29")],
    "ns": [np.datetime64(n, "ns") for n in (-1, 0, 1_714_521_600_000_000_001)],
    "ms": [np.datetime64(n, "ms") for n in (-86_400_001, 0, 1_714_521_600_123)],
    "e": ["lee", "luff", "o'er", ""],
    "w": [np.timedelta64(n, "ms") for n in (-1, 0, 90_000)],
    "h": [b"\x00\x00", b"ab", b"\xff\x00"],
    'a "b': [0, 1, 2, -(2**63), 2**63 - 1],
}
"""What the cells of each column hold, and what predicates compare with."""
_OPS = ["=", "<>", "<", "<=", ">", ">="]
_NO_ORDER = {"b", "e"}
NAT = {"t", "day"}


def schema_of(r: Random, sparse: bool) -> gs.Schema:
    """A schema of all these columns, with tiles of few cells."""
    dims = [gs.Dim("x", (0, 39), r.choice([3, 10]))]
    if sparse:
        dims.append(gs.Dim("y", (-(2**63), 2**63 - 1), 2**62))
    order = r.choice(["row", "col", "hilbert"]) if sparse else "row"
    return gs.Schema(dims, ATTRS, sparse=sparse, capacity=r.choice([2, 10]), cell_order=order)


def _cells(r: Random, count: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for attr in ATTRS:
        values = [r.choice(VALUES[attr.name]) for _ in range(count)]
        if attr.name in NAT:
            values = [np.datetime64("NaT", "us") if r.random() < 0.1 else value for value in values]
        if attr.nullable:
            made[attr.name] = [None if r.random() < 0.2 else value for value in values]
        elif attr.dtype == "bytes[2]":
            made[attr.name] = np.array(values, "S2")
        else:
            made[attr.name] = (
                np.array(values, object) if attr.dtype in ("string", "bytes") else np.array(values, attr.dtype)
            )
    return made


def array_of(r: Random, sparse: bool, uri: str | None = None) -> gs.Array:
    """An array of these columns: empty or of several fragments, with cells that hide others, and deleted ones."""
    a = gs.create(uri or f"mem://{uuid.uuid4()}", schema_of(r, sparse), context=QUICK)
    for _ in range(r.choice([0, 1, 3])):
        if sparse:
            places = {(r.randrange(40), r.choice(VALUES["y"])) for _ in range(r.choice([1, 30]))}
            xs, ys = zip(*sorted(places), strict=True)
            a.write_cells({"x": list(xs), "y": np.array(ys, np.int64)}, _cells(r, len(places)))
        else:
            low = r.randrange(40)
            high = r.randrange(low, 40)
            a.write(_masked(_cells(r, high - low + 1)), {"x": (low, high)})
        if r.random() < 0.3:
            a.delete(box={"x": (5, 9)})
    return a


def _masked(cells: dict[str, Any]) -> dict[str, Any]:
    return {name: values if isinstance(values, np.ndarray) else np.ma.masked_array(
        np.array([VALUES[name][0] if value is None else value for value in values],
                 object if name in ("s", "e") else None),
        [value is None for value in values]) for name, values in cells.items()}  # fmt: skip


def table_of(a: gs.Array, *, keep: bool = False) -> pa.Table:
    """All cells as a table, without the metadata of this package, in the order of their places; with `keep` times in
    their own units."""
    table = a.read(order="row").to_arrow()
    table = table.cast(
        pa.schema([pa.field(f.name, f.type if keep else _unit(f.type), f.nullable) for f in table.schema])
    )
    if "w" in table.column_names:
        # DuckDB converts what lies beneath nulls, which overflows.
        place, field = table.schema.get_field_index("w"), table.schema.field("w")
        table = table.set_column(place, field, pa.array(table["w"].to_pylist(), field.type))
    return table


def _unit(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us") if kind in (pa.timestamp("s"), pa.timestamp("ms")) else kind


@dataclass
class Asked:
    """One predicate in three languages; None where one of them has no words for it."""

    sql: str
    arrow: Any
    polars: Any


def literal(value: Any) -> str:
    """A value in DuckDB's SQL."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"'{value}'::double"
    if isinstance(value, str):
        parts = value.replace("'", "''").split("\x00")
        return "(" + " || chr(0) || ".join(f"'{part}'" for part in parts) + ")"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'::blob"
    if isinstance(value, np.datetime64):
        unit = np.datetime_data(value.dtype)[0]
        return f"timestamp_ns '{value}'" if unit == "ns" else f"timestamp '{str(value).replace('T', ' ')}'"
    if isinstance(value, np.timedelta64):
        return f"to_milliseconds({int(value.astype(np.int64))})"
    return str(value)


def _arrow_value(name: str, value: Any) -> Any:
    if isinstance(value, np.datetime64 | np.timedelta64):
        unit = np.datetime_data(value.dtype)[0]
        kind = pa.timestamp if isinstance(value, np.datetime64) else pa.duration
        return pa.scalar(int(value.astype(f"{value.dtype.kind}8[{'s' if unit == 'D' else unit}]").astype(np.int64)),
                         pa.int64()).cast(kind("s" if unit == "D" else unit))  # fmt: skip
    kinds = {"u": pa.uint64(), "i": pa.int8(), "h": pa.binary(2), "by": pa.large_binary()}
    return pa.scalar(value, kinds.get(name))


def _polars_value(name: str, value: Any) -> Any:
    if isinstance(value, np.datetime64):
        unit = np.datetime_data(value.dtype)[0]
        ticks = int(value.astype("M8[ms]" if unit == "D" else value.dtype).astype(np.int64))
        return pl.lit(ticks, pl.Int64).cast(pl.Datetime("ms" if unit == "D" else unit))
    if isinstance(value, np.timedelta64):
        return pl.lit(dt.timedelta(milliseconds=int(value.astype(np.int64))))
    if isinstance(value, int) and not isinstance(value, bool):
        return pl.lit(value, {"i": pl.Int8, "u": pl.UInt64}.get(name, pl.Int64))
    return pl.lit(value)


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def predicate(r: Random, names: list[str], depth: int = 0) -> Asked:
    """A random predicate over these columns."""
    if depth < 3 and r.random() < 0.5:
        how = r.choice(["and", "or", "not"])
        parts = [predicate(r, names, depth + 1) for _ in range(1 if how == "not" else r.choice([2, 2, 3]))]
        if how == "not":
            only = parts[0]
            return Asked(f"not ({only.sql})", ~only.arrow, ~only.polars)
        sql = f" {how} ".join(f"({part.sql})" for part in parts)
        arrow, polars = parts[0].arrow, parts[0].polars
        for part in parts[1:]:
            arrow = arrow & part.arrow if how == "and" else arrow | part.arrow
            polars = polars & part.polars if how == "and" else polars | part.polars
        return Asked(sql, arrow, polars)
    return _leaf(r, r.choice(names))


def _leaf(r: Random, name: str) -> Asked:
    field, column, sql = ds.field(name), pl.col(name), quoted(name)
    how = r.random()
    if how < 0.15:
        return Asked(f"{sql} is null", field.is_null(), column.is_null())
    if how < 0.2:
        return Asked(f"{sql} is not null", field.is_valid(), column.is_not_null())
    if name in ("f", "g") and how < 0.3:
        return Asked(f"isnan({sql})", pc.is_nan(field), column.is_nan())
    if how < 0.5 and name not in ("w", "h", "by", "day", "t", "ns", "ms"):
        values = r.sample(VALUES[name], r.randint(1, min(3, len(VALUES[name]))))
        arrow = pa.array(values, {"u": pa.uint64(), "i": pa.int8()}.get(name))
        listed = pl.Series(values, dtype={"u": pl.UInt64, "i": pl.Int8, "g": pl.Float32}.get(name), strict=False)
        texts = ", ".join(map(literal, values))
        return Asked(f"{sql} in ({texts})", field.isin(arrow), column.is_in(listed.implode()))
    op, value = r.choice(_OPS[:2] if name in _NO_ORDER else _OPS), r.choice(VALUES[name])
    given, other = _arrow_value(name, value), _polars_value(name, value)
    arrow = {"=": field == given, "<>": field != given, "<": field < given, "<=": field <= given,
             ">": field > given, ">=": field >= given}[op]  # fmt: skip
    polars = {"=": column == other, "<>": column != other, "<": column < other, "<=": column <= other,
              ">": column > other, ">=": column >= other}[op]  # fmt: skip
    return Asked(f"{sql} {op} {literal(value)}", arrow, polars)
