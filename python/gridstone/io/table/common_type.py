"""One schema for several files: the type of a column holds what its types in all files hold.

Integers widen to wider ones and to floats, numbers to text, times to finer units. No digit is lost: a whole number that
a float does not hold is an error later, with its row. What has no common type is an error if the column is wanted.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ...errors import InputError
from ..columns import Part

_WIDTHS = (8, 16, 32, 64)
_UNITS = ("s", "ms", "us", "ns")


class Unified(NamedTuple):
    """The columns of several files."""

    schema: Any
    parts: Sequence[Part]
    conflicts: Mapping[str, InputError]
    """Columns whose types have none in common, each with an error that names two files."""


def unified(files: Sequence[Path], schemas: Sequence[Any]) -> Unified:
    """All columns of the files, in the order that they come in, with their common types."""
    fields: dict[str, Any] = {}
    origins: dict[str, Path] = {}
    conflicts: dict[str, InputError] = {}
    for file, schema in zip(files, schemas, strict=True):
        for field in schema:
            known = fields.get(field.name)
            if known is None:
                fields[field.name], origins[field.name] = field, file
            elif known.type != field.type:
                kind = common(known.type, field.type)
                if kind is None:
                    conflicts.setdefault(field.name, _conflict(field, file, known, origins[field.name]))
                elif kind != known.type:
                    # The datatype of the metadata is too narrow now.
                    fields[field.name], origins[field.name] = pa.field(field.name, kind), file
    doubled = next((schema for schema in schemas if len(set(schema.names)) < len(schema.names)), None)
    made = schemas[0] if doubled is None else doubled
    # Columns of one name twice are reported where they are wanted.
    made = made if doubled is not None else pa.schema(list(fields.values()), schemas[0].metadata)
    parts = [Part(str(file), schema.names) for file, schema in zip(files, schemas, strict=True)]
    return Unified(made, parts, conflicts)


def _conflict(field: Any, file: Path, known: Any, other: Path) -> InputError:
    return InputError(
        f"column {field.name!r} is {field.type} in {file} and {known.type} in {other}, and no type holds both; cast "
        f"one of them, leave the column out with attrs=, or load into an array that is there file by file"
    )


def common(a: Any, b: Any) -> Any:
    """The narrowest type that holds both; None: there is none."""
    if a == b:
        return a
    kinds = pa.types
    if kinds.is_null(a) or kinds.is_null(b):
        return b if kinds.is_null(a) else a
    if kinds.is_dictionary(a) or kinds.is_dictionary(b):
        return _of_dictionaries(a, b)
    if _is_number(a) and _is_number(b):
        return _of_numbers(a, b)
    if _is_text(a) and _is_text(b):
        return pa.large_string()
    if (_is_text(a) and _is_number(b)) or (_is_number(a) and _is_text(b)):
        return pa.large_string()
    if kinds.is_temporal(a) and kinds.is_temporal(b):
        return _of_times(a, b)
    if (kinds.is_binary(a) or kinds.is_large_binary(a)) and (kinds.is_binary(b) or kinds.is_large_binary(b)):
        return pa.large_binary()
    return None


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _of_dictionaries(a: Any, b: Any) -> Any:
    """Categories of one type stay categories; others are what their values are."""
    both = pa.types.is_dictionary(a) and pa.types.is_dictionary(b)
    values = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (a, b)]
    if both and values[0] == values[1] and a.ordered == b.ordered:
        return a if a.index_type.bit_width >= b.index_type.bit_width else b
    return common(*values)


def _of_numbers(a: Any, b: Any) -> Any:
    kinds = pa.types
    if kinds.is_floating(a) and kinds.is_floating(b):
        return max(a, b, key=lambda kind: kind.bit_width)
    if kinds.is_floating(a) or kinds.is_floating(b):
        wide, whole = (a, b) if kinds.is_floating(a) else (b, a)
        digits = {16: 8, 32: 16, 64: 64}[wide.bit_width]
        return wide if whole.bit_width <= digits else pa.float32() if whole.bit_width <= 16 else pa.float64()
    signed = kinds.is_signed_integer(a) or kinds.is_signed_integer(b)
    # A signed type holds an unsigned one of half its width.
    needed = max(kind.bit_width * (2 if signed and not kinds.is_signed_integer(kind) else 1) for kind in (a, b))
    if needed > _WIDTHS[-1]:
        return None
    return pa.type_for_alias(f"{'' if signed else 'u'}int{needed}")


def _of_times(a: Any, b: Any) -> Any:
    kinds = pa.types
    if kinds.is_timestamp(a) and kinds.is_timestamp(b):
        if (a.tz is None) != (b.tz is None):
            return None
        unit = max(a.unit, b.unit, key=_UNITS.index)
        return pa.timestamp(unit, None if a.tz is None else "UTC")
    if kinds.is_duration(a) and kinds.is_duration(b):
        return pa.duration(max(a.unit, b.unit, key=_UNITS.index))
    stamp, day = (a, b) if kinds.is_timestamp(a) else (b, a)
    if kinds.is_timestamp(stamp) and kinds.is_date(day):
        return stamp if stamp.tz is None and (kinds.is_date32(day) or stamp.unit != "s") else None
    if kinds.is_date(a) and kinds.is_date(b):
        return pa.date64()
    return None


def cast(data: Any, kind: Any) -> Any:
    """A column of one file in the type that all files have in common; the same where it has no other."""
    if data.type == kind or pa.types.is_dictionary(kind):
        return data
    number = _is_number(data.type)
    if _is_text(kind) and number:
        return data.cast(kind)
    return data
