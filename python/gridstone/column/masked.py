"""Lists with masked arrays and masked values in them, as passes over nullable values give them."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def of_list(data: list[Any] | tuple[Any, ...]) -> Any:
    """A list that has masks in it, at any depth, as one masked array: NumPy would drop them. Any other as it is."""
    parts = [of_list(part) if isinstance(part, list | tuple) else part for part in data]
    if not any(isinstance(part, np.ma.MaskedArray) for part in parts):
        return data
    rows = [np.asanyarray(part) if isinstance(part, list | tuple) else part for part in parts]
    if all(isinstance(row, np.ndarray) and row.ndim for row in rows) and len({row.shape for row in rows}) == 1:
        return np.ma.MaskedArray(np.stack([*map(np.ma.getdata, rows)]), np.stack([*map(np.ma.getmaskarray, rows)]))
    return _line(parts)


def _line(parts: Sequence[Any]) -> Any:
    """Single values, some of them masked, along one axis."""
    present = [part for part in parts if part is not np.ma.masked]
    filler = present[0] if present else None
    values: Any = [filler if part is np.ma.masked else part for part in parts]
    if filler is None or any(isinstance(part, np.ndarray | list | tuple | str | bytes) for part in present):
        made = np.empty(len(parts), object)  # NumPy cuts zeros at the end of bytes, and stacks arrays.
        for place, value in enumerate(values):
            made[place] = value
        values = made
    return np.ma.MaskedArray(np.asarray(values), [part is np.ma.masked for part in parts])
