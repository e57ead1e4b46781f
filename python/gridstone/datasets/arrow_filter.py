"""Reads filters of pyarrow.

pyarrow gives no access to the parts of an expression, but pickles one as an Arrow file: the metadata of its schema are
the expression (`call`, `field_ref`, `literal`, `options`, `end`, in order, keys repeated), its columns the values.
What is unknown there is left to pyarrow, which filters every batch once more.
"""

import ctypes
from typing import Any

import numpy as np
import pyarrow as pa

from .predicate import TURNED, Among, Compare, Constant, Flag, Missing, Negated, Node, NotANumber, Unknown, joined

_SIGNS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_MATCH, _SKIP = 0, 1
"""How nulls match in `is_in`: a null in the list equals a null; a null equals nothing."""
_METADATA = 2
"""The place of the metadata among the pointers of Arrow's C schema."""


def node_of(expression: Any) -> Node:
    """The tree of a pyarrow expression."""
    try:
        parts, values = _pickled(expression)
        return _Reader(parts, values).node()
    except (pa.ArrowException, AttributeError, KeyError, IndexError, ValueError, TypeError, StopIteration) as error:
        return Unknown(f"pyarrow does not tell the parts of {expression}: {error}")


def columns_of(expression: Any) -> set[str] | None:
    """The columns that an expression reads; None if that is not known."""
    try:
        parts, _ = _pickled(expression)
    except (pa.ArrowException, AttributeError, ValueError, TypeError):
        return None
    if any(key == "nested_field_ref" for key, _ in parts):
        return None
    return {text for key, text in parts if key == "field_ref"}


def _pickled(expression: Any) -> tuple[list[tuple[str, str]], list[Any]]:
    """The parts of the expression, and the values that they refer to."""
    _, (buffer,) = expression.__reduce__()
    file = pa.ipc.open_file(buffer)
    batch = file.get_batch(0)
    return _metadata(file.schema), [column[0] for column in batch.columns]


def _metadata(schema: Any) -> list[tuple[str, str]]:
    """The metadata of a schema, repeated keys too, which pyarrow's own mapping loses."""
    exported = (ctypes.c_void_p * 9)()
    schema._export_to_c(ctypes.addressof(exported))
    try:
        at = exported[_METADATA]
        if at is None:
            return []
        texts = []
        count, at = ctypes.c_int32.from_address(at).value, at + 4
        for _ in range(2 * count):
            length, at = ctypes.c_int32.from_address(at).value, at + 4
            texts.append(ctypes.string_at(at, length).decode("utf-8", "surrogateescape"))
            at += length
    finally:
        # An import takes the structure over and frees it.
        pa.Schema._import_from_c(ctypes.addressof(exported))
    return list(zip(texts[::2], texts[1::2], strict=True))


class _Field(str):
    """The name of a column, as a side of a call."""

    __slots__ = ()


class _Value:
    """A literal, as a side of a call."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _Options(dict[str, Any]):
    """The options of a call."""


class _Reader:
    """Reads the parts from the first to the last, with a list of open calls instead of recursion."""

    def __init__(self, parts: list[tuple[str, str]], values: list[Any]) -> None:
        self._parts, self._values = parts, values

    def node(self) -> Node:
        open_calls: list[tuple[str, list[Any]]] = [("", [])]
        nested = 0
        for key, text in self._parts:
            sides = open_calls[-1][1]
            if nested and key == "field_ref":
                # The name of a field in a struct, of which arrays have none.
                nested -= 1
            elif key == "nested_field_ref":
                nested = int(text)
                sides.append(Unknown("a field of a struct"))
            elif key == "call":
                open_calls.append((text, []))
            elif key == "field_ref":
                sides.append(_Field(text))
            elif key == "literal":
                sides.append(_Value(self._values[int(text)]))
            elif key == "options":
                sides.append(_options(self._values[int(text)]))
            elif key == "end":
                name, inner = open_calls.pop()
                open_calls[-1][1].append(_call(name, inner))
            else:
                raise ValueError(f"an unknown part {key!r}")
        (found,) = open_calls[0][1]
        return _as_node(found)


def _options(scalar: Any) -> _Options:
    return _Options({field.name: scalar[field.name] for field in scalar.type})


def _as_node(side: Any) -> Node:
    """A side of `and`, `or` and `not`."""
    if isinstance(side, _Field):
        return Flag(str(side))
    if isinstance(side, _Value):
        value = side.value.as_py()
        return Constant(value) if value is None or isinstance(value, bool) else Unknown("a constant that is no bool")
    return side if isinstance(side, Node) else Unknown("a call without a meaning here")


def _call(name: str, sides: list[Any]) -> Node:
    """The node of a call of pyarrow's function `name`."""
    if name in ("and_kleene", "and", "or_kleene", "or"):
        return joined(map(_as_node, sides), every=name.startswith("and"))
    if name == "invert":
        return Negated(_as_node(sides[0]))
    if name in _SIGNS:
        left, right = sides[:2]
        if isinstance(left, _Field) and isinstance(right, _Value):
            return Compare(str(left), _SIGNS[name], value_of(right.value))
        if isinstance(left, _Value) and isinstance(right, _Field):
            return Compare(str(right), TURNED[_SIGNS[name]], value_of(left.value))
        return Unknown("a comparison of something else than a column and a value")
    if not sides or not isinstance(sides[0], _Field):
        return Unknown(f"{name} of something else than a column")
    column, options = str(sides[0]), next((side for side in sides if isinstance(side, _Options)), _Options())
    if name == "is_valid":
        return Negated(Missing(column))
    if name == "is_null":
        return Missing(column, bool(options["nan_is_null"].as_py()))
    if name == "is_nan":
        return NotANumber(column)
    if name == "is_in":
        return _among(column, options)
    return Unknown(f"the function {name}")


def _among(column: str, options: _Options) -> Node:
    how = options["null_matching_behavior"].as_py()
    if how not in (_MATCH, _SKIP):
        return Unknown("a list in which null is neither equal to null nor unequal to everything")
    values = [value_of(value) for value in options["value_set"].values]
    known = tuple(value for value in values if value is not None)
    return Among(column, known, how == _MATCH and len(known) < len(values))


def value_of(scalar: Any) -> Any:
    """The value of an Arrow scalar, times as NumPy's, nothing rounded. A `ValueError` if it has none."""
    kind = scalar.type
    if pa.types.is_dictionary(kind):
        return value_of(scalar.dictionary[scalar.index.as_py()]) if scalar.is_valid else None
    if not scalar.is_valid:
        return None
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            raise ValueError("a time with a zone")
        return np.datetime64(scalar.value, kind.unit)
    if pa.types.is_duration(kind):
        return np.timedelta64(scalar.value, kind.unit)
    if pa.types.is_date32(kind):
        return np.datetime64(scalar.value, "D")
    if pa.types.is_date64(kind):
        return np.datetime64(scalar.value, "ms")
    return scalar.as_py()
