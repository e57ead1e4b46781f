"""Texts as arrays of characters, as `encoding={"dtype": "S1"}` asks for."""

from collections.abc import Hashable
from importlib import import_module
from typing import Any

import numpy as np


def as_characters(variable: Any, name: Hashable) -> Any:
    """A variable of texts whose encoding has the type "S1" as one of single bytes, with a dimension for them; any other
    as it is.

    Raises:
        NotImplementedError: texts with a fill value, which xarray does not encode.
    """
    if str(variable.encoding.get("dtype", "")) not in ("S1", "|S1") or variable.dtype.kind not in "OUST":
        return variable
    coding: Any = import_module("xarray.coding.strings")
    if variable.dtype.kind in "OT" and variable.dtype.metadata is None:
        held = next((one for one in np.asarray(variable.values).ravel().tolist() if one is not None), "")
        kind = bytes if isinstance(held, bytes) else str
        variable = variable.copy(deep=False, data=variable.values.astype(coding.create_vlen_dtype(kind)))
    made = coding.EncodedStringCoder(allows_unicode=False).encode(variable, name=name)
    if made.dtype.kind == "O":
        made = made.copy(deep=False, data=made.values.astype(np.bytes_))
    return coding.CharacterArrayCoder().encode(made, name=name)
