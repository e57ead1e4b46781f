"""Reads predicates of polars, as `Expr.meta.serialize(format="json")` writes them.

The form is polars' own and may change. What is unknown is left to polars, which filters every frame once more.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from . import arrow_filter
from .predicate import TURNED, Among, Compare, Constant, Flag, Missing, Negated, Node, NotANumber, Unknown, joined

_SIGNS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_UNITS: dict[str, Literal["ms", "us", "ns"]] = {"Milliseconds": "ms", "Microseconds": "us", "Nanoseconds": "ns"}
_NUMBERS = frozenset(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
_CLOSED = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}


def node_of(predicate: Any, dtypes: Mapping[str, str]) -> Node:
    """The tree of a predicate over columns of these datatypes."""
    try:
        return _Reader(dtypes).node(json.loads(predicate.meta.serialize(format="json")))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, pa.ArrowException) as error:
        return Unknown(f"the predicate is not known: {error}")
    except Exception as error:
        # Errors of polars share no class, and what it cannot write down is not pushed.
        return Unknown(f"polars does not write the predicate down: {error}")


class _Reader:
    def __init__(self, dtypes: Mapping[str, str]) -> None:
        self._dtypes = dtypes

    def node(self, tree: Any) -> Node:
        kind, body = _only(tree)
        if kind == "Column":
            return Flag(body)
        if kind == "Literal":
            value = self._literal(body, None)
            return Constant(value) if value is None or isinstance(value, bool) else Unknown("a constant")
        if kind == "BinaryExpr":
            return self._binary(body)
        if kind == "Function":
            return self._function(body)
        return Unknown(f"the node {kind}")

    def _guarded(self, tree: Any) -> Node:
        """A part, on its own: what is unknown in it does not spoil the parts beside it."""
        try:
            return self.node(tree)
        except (ValueError, KeyError, TypeError, IndexError, pa.ArrowException) as error:
            return Unknown(str(error))

    def _binary(self, body: Any) -> Node:
        sign = body["op"]
        if sign in ("And", "LogicalAnd", "Or", "LogicalOr"):
            return joined((self._guarded(body["left"]), self._guarded(body["right"])), every=sign.endswith("And"))
        if sign not in _SIGNS:
            return Unknown(f"the sign {sign}")
        (left, name), (right, other) = _only(body["left"]), _only(body["right"])
        if left == "Column" and right == "Literal":
            return Compare(name, _SIGNS[sign], self._literal(other, name))
        if left == "Literal" and right == "Column":
            return Compare(other, TURNED[_SIGNS[sign]], self._literal(name, other))
        return Unknown("a comparison of something else than a column and a value")

    def _function(self, body: Any) -> Node:
        inputs = body["input"]
        family, name = _only(body["function"])
        if family != "Boolean":
            return Unknown(f"the function {family}")
        call, options = (name, {}) if isinstance(name, str) else _only(name)
        if call == "Not":
            return Negated(self._guarded(inputs[0]))
        if call in ("AllHorizontal", "AnyHorizontal"):
            return joined(map(self._guarded, inputs), every=call == "AllHorizontal")
        kind, column = _only(inputs[0])
        if kind != "Column":
            return Unknown(f"{call} of something else than a column")
        if call in ("IsNull", "IsNotNull"):
            return Missing(column) if call == "IsNull" else Negated(Missing(column))
        if call in ("IsNan", "IsNotNan"):
            return NotANumber(column) if call == "IsNan" else Negated(NotANumber(column))
        if call == "IsBetween":
            low, high = (self._literal(_only(side, "Literal")[1], column) for side in inputs[1:])
            signs = _CLOSED[options["closed"]]
            return joined((Compare(column, signs[0], low), Compare(column, signs[1], high)), every=True)
        if call == "IsIn":
            return self._among(column, _only(inputs[1], "Literal")[1], bool(options["nulls_equal"]))
        return Unknown(f"the function {call}")

    def _among(self, column: str, literal: Any, nulls_equal: bool) -> Node:
        kind, body = _only(literal)
        if kind == "Scalar":
            kind, body = _only(body)
        if kind not in ("List", "Series"):
            return Unknown("a list of an unknown form")
        found = pa.ipc.open_stream(bytes(body)).read_all().column(0).combine_chunks()
        entries = found.values if pa.types.is_list(found.type) or pa.types.is_large_list(found.type) else found
        values = [arrow_filter.value_of(value) for value in entries]
        known = tuple(value for value in values if value is not None)
        of_null = (len(known) < len(values)) if nulls_equal else None
        return Among(column, known, of_null)

    def _literal(self, body: Any, column: str | None) -> Any:
        """The value of a literal; None is null."""
        kind, value = _only(body)
        if kind == "Dyn":
            kind, value = _only(value)
            if kind == "Int":
                return int(value)
            if kind == "Float" and value is not None:
                # A number without a type takes that of the column beside it.
                dtype = self._dtypes.get(column or "", "")
                return float(np.dtype(dtype).type(value)) if dtype in ("float16", "float32") else float(value)
            if kind == "Str":
                return str(value)
            raise ValueError(f"a literal {kind}")
        if kind != "Scalar":
            raise ValueError(f"a literal {kind}")
        if value == "Null":
            return None
        kind, value = _only(value)
        return _scalar(kind, value)


def _scalar(kind: str, value: Any) -> Any:
    if kind == "Null":
        return None
    if value is None:
        raise ValueError("a float that JSON has no number for: NaN or an infinity")
    if kind == "Boolean":
        return bool(value)
    if kind in _NUMBERS:
        return int(value)
    if kind in ("Float32", "Float64"):
        # The digits of a float32 are as few as tell it from its neighbours.
        return float(np.float32(value)) if kind == "Float32" else float(value)
    if kind in ("String", "StringOwned"):
        return str(value)
    if kind in ("Binary", "BinaryOwned"):
        return bytes(value)
    if kind == "Date":
        return np.datetime64(value, "D")
    if kind in ("Datetime", "DatetimeOwned"):
        ticks, unit, zone = value
        if zone is not None:
            raise ValueError("a time with a zone")
        return np.datetime64(ticks, _UNITS[unit])
    if kind == "Duration":
        return np.timedelta64(value[0], _UNITS[value[1]])
    raise ValueError(f"a value {kind}")


def _only(tree: Any, wanted: str | None = None) -> tuple[str, Any]:
    """The name and body of a node, which is an object with one key."""
    if isinstance(tree, str):
        return tree, None
    ((name, body),) = tree.items()
    if wanted is not None and name != wanted:
        raise ValueError(f"{name}, not {wanted}")
    return str(name), body
