"""Attributes of foreign datasets and groups as metadata."""

from collections.abc import Mapping
from typing import Any

import numpy as np

_INTERNAL = frozenset(
    ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid", "_Netcdf4Coordinates",
     "_NCProperties", "_nc3_strict", "_NCCOPY", "_ARRAY_DIMENSIONS")
)  # fmt: skip
"""What the formats themselves keep in attributes."""


def as_metadata(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that users have given, as numbers, texts and lists."""
    return {name: plain(value) for name, value in attributes.items() if name and name not in _INTERNAL}


def types_of(attributes: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The NumPy types of numbers by name, which metadata has no place for: `["<f4"]` of one number, `["<f4", [3]]` of
    an array."""
    found = {}
    for name, value in attributes.items():
        one = value[0] if isinstance(value, np.ndarray) and value.shape == (1,) else value
        if isinstance(one, np.ndarray | np.generic) and one.dtype.kind in "biuf" and name not in _INTERNAL:
            found[name] = [one.dtype.str, *([list(one.shape)] if isinstance(one, np.ndarray) else [])]
    return found


def plain(value: Any) -> Any:
    """A number, a text, or a list of them; of a list of one the one, as netCDF4 shows it."""
    if isinstance(value, np.ndarray) and value.shape == (1,):
        return plain(value[0])
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value] if value.ndim else plain(value[()])
    return value.item() if isinstance(value, np.generic) else value
