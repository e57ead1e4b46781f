"""Data frames of pandas in the machine's byte order: Arrow takes no column in the other one."""

from typing import Any

import numpy as np

from .datatype import AnyArray


def native(frame: Any) -> Any:
    """The data frame with columns and a flat index in the machine's byte order; itself if they are."""
    swapped = {place: dtype for place, dtype in enumerate(frame.dtypes) if _is_swapped(dtype)}
    kind = getattr(frame.index, "dtype", None)
    if not swapped and not _is_swapped(kind):
        return frame
    made = frame.copy(deep=False)
    for place, dtype in swapped.items():
        made.isetitem(place, frame.iloc[:, place].astype(dtype.newbyteorder("=")))
    if isinstance(kind, np.dtype) and _is_swapped(kind):
        made.index = frame.index.astype(kind.newbyteorder("="))
    return made


def has_swapped(values: AnyArray) -> bool:
    """Whether one of these objects is an array in the other byte order."""
    return any(isinstance(value, np.ndarray) and _is_swapped(value.dtype) for value in values)


def _is_swapped(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and not dtype.isnative
