"""What Zarr's metadata mean: attributes as JSON, and fill values as xarray reads them."""

import base64
import binascii
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

DIMENSIONS = "_ARRAY_DIMENSIONS"
"""The attribute in which xarray keeps the names of dimensions in version 2."""


def attribute(text: str) -> Any:
    """An attribute's value: of a number the one of NumPy, of which conventions know the type."""
    value = json.loads(text)
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return np.int64(value)
    return value


def attributes(raw: Mapping[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a dataset with its `_FillValue` as xarray has it; of other formats as they are.

    In version 2 the fill of an array that xarray can read is its `_FillValue`. In version 3 that is an attribute of its
    own, of floats in Base64.
    """
    layout = raw["layout"]
    if layout["kind"] != "objects":
        return given
    own = _number(raw["datatype"])
    if own is None:
        return given
    if layout["version"] == "2" and DIMENSIONS in given and raw["fill"] is not None:
        return given | {"_FillValue": np.frombuffer(bytes(raw["fill"]), own)[0]}
    fill = given.get("_FillValue")
    if layout["version"] == "3" and own.kind == "f" and isinstance(fill, str):
        found = _unpacked(fill)
        return given if found is None else given | {"_FillValue": found}
    return given


def _number(datatype: Mapping[str, Any]) -> np.dtype[Any] | None:
    """The type of cells that are one number."""
    if datatype["class"] not in ("integer", "float"):
        return None
    kind = "f" if datatype["class"] == "float" else "i" if datatype["signed"] else "u"
    return np.dtype(f"{'>' if datatype['big_endian'] else '<'}{kind}{datatype['width']}")


def _unpacked(text: str) -> np.float64 | None:
    try:
        return np.float64(struct.unpack("<d", base64.standard_b64decode(text))[0])
    except (binascii.Error, struct.error, ValueError):
        return None
