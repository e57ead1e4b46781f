"""Fragments and tiles of an array as Arrow tables."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..column import arrow, columns
from ..errors import UnsupportedError
from ..schema.array_schema import Schema

_INT64_MAX = 2**63 - 1

_FRAGMENTS = pa.schema(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("version", pa.int64()),
        ("index", pa.int64()),
        ("cells", pa.int64()),
        ("bytes", pa.int64()),
        ("inline", pa.bool_()),
        ("attrs", pa.list_(pa.string())),
        ("domain", pa.list_(pa.list_(pa.string()))),
    ]
)


def fragments(texts: Sequence[str]) -> "pa.Table":
    """One row per fragment; bounds of its domain as text."""
    found = [json.loads(text) for text in texts]
    for row in found:
        for name in ("version", "cells", "bytes"):
            if row[name] > _INT64_MAX:
                raise UnsupportedError(
                    f"fragment {row['id']} says {row[name]} of its {name}, more than the 64 signed bits of a table "
                    f"hold; no release of Gridstone writes that: check the store with gridstone.verify"
                )
    return pa.Table.from_pylist([{name: row.get(name) for name in _FRAGMENTS.names} for row in found], _FRAGMENTS)


def tiles(schema: Schema, found: dict[str, Any]) -> "pa.Table":
    """One row per data tile: `fragment`, `cells`, and `<dim>_lo`, `<dim>_hi`."""
    made = {
        "fragment": pa.array(np.frombuffer(found["fragment"], np.uint32)),
        "cells": pa.array(np.frombuffer(found["cells"], np.uint64)),
    }
    for axis, dim in enumerate(schema.dims):
        for end in ("lo", "hi"):
            column = columns.from_native(dim.dtype, found[end][axis])
            made[f"{dim.name}_{end}"] = arrow.array_of(column)
    return pa.table(made)
