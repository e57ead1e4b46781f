"""Reads the filters that DuckDB offers, as its private module `duckdb._sources.nodes` has them."""

import datetime as dt
from typing import Any

from .predicate import Among, Compare, Missing, Negated, Node, Unknown, joined

_SIGNS = {"=": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def node_of(offered: Any) -> Node:
    """The tree of a predicate, of which DuckDB's classes are known by their names."""
    kind = type(offered).__name__
    if kind == "Binary" and offered.op in ("AND", "OR"):
        return joined(map(node_of, _chain(offered)), every=offered.op == "AND")
    if kind == "Binary" and offered.op in _SIGNS:
        return Compare(_column(offered.left), _SIGNS[offered.op], _value(offered.right))
    if kind == "Unary" and offered.op == "NOT":
        return Negated(node_of(offered.operand))
    if kind == "Postfix" and offered.op in ("IS NULL", "IS NOT NULL"):
        missing = Missing(_column(offered.operand))
        return missing if offered.op == "IS NULL" else Negated(missing)
    if kind == "In":
        return Among(_column(offered.operand), tuple(_value(value) for value in offered.values), None)
    return Unknown(f"the node {kind}")


def _chain(offered: Any) -> list[Any]:
    """The parts of a chain of one word, which DuckDB nests, however long it is."""
    found, waiting = [], [offered]
    while waiting:
        part = waiting.pop()
        if type(part).__name__ == "Binary" and part.op == offered.op:
            waiting += [part.right, part.left]
        else:
            found.append(part)
    return found


def _column(node: Any) -> str:
    if type(node).__name__ != "Col" or len(node.parts) != 1:
        raise ValueError("a field of a struct")
    return str(node.parts[0])


def _value(node: Any) -> Any:
    if type(node).__name__ != "Lit" or node.value is None:
        raise ValueError("no constant")
    value = node.value
    if node.type == "TIMESTAMP WITH TIME ZONE" or isinstance(value, dt.time):
        raise ValueError("a time with a zone, or of a day")
    return value
