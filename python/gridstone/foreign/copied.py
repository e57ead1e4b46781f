"""Values of varying length, which have no place that a record could name: read by h5py or zarr, to be copied."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.extras import needed
from ..column.datatype import AnyArray
from ..errors import UnsupportedError
from ..schema.attribute import Attr
from .tree import Dataset

_SLAB_CELLS = 1 << 18
"""Cells that are read at once, about."""


@dataclass(frozen=True)
class Varied:
    """A value of varying length: of a cell, or of a member of its compound."""

    member: str
    dtype: str
    is_list: bool

    def attr(self, name: str) -> Attr:
        """The attribute that it is copied to."""
        return Attr(name, self.dtype, var=self.is_list)


def varied_of(datatype: Mapping[str, Any], member: str) -> Varied | None:
    """A text, or a list of numbers; None for what cannot be copied."""
    if datatype["class"] == "variable_text":
        return Varied(member, "string" if datatype["utf8"] else "bytes", False)
    if datatype["class"] != "variable_length":
        return None
    base = datatype["base"]
    match base["class"]:
        case "integer" if base.get("bits") is None and base["width"] in (1, 2, 4, 8):
            return Varied(member, f"{'int' if base['signed'] else 'uint'}{8 * base['width']}", True)
        case "float" if base.get("layout") is None and base["width"] in (4, 8):
            return Varied(member, f"float{8 * base['width']}", True)
    return None


def slabs(dataset: Dataset, shape: tuple[int, ...], value: Varied) -> Iterator[tuple[slice, AnyArray]]:
    """The values, some along the first dimension at a time, with where they belong."""
    step = max(1, _SLAB_CELLS // max(1, int(np.prod(shape[1:], dtype=np.int64))))
    try:
        for low in range(0, shape[0], step):
            rows = slice(low, min(low + step, shape[0]))
            yield rows, _plain(_read(dataset, rows, value), value)
    except (OSError, RuntimeError, ValueError, TypeError, KeyError) as error:
        raise UnsupportedError(
            f"{dataset.file}: the values of {dataset.path}, which vary in length, cannot be copied: {error}"
        ) from error


def _read(dataset: Dataset, rows: slice, value: Varied) -> Any:
    if dataset.is_in_objects:
        zarr = needed("zarr", "zarr", "copying values of varying length")
        opened = zarr.open_array(dataset.source, mode="r")
        return np.asarray(opened[rows] if opened.ndim else [opened[()]], dtype=object).reshape(-1, *opened.shape[1:])
    h5py = needed("h5py", "hdf5", "copying values of varying length")
    with h5py.File(dataset.file, "r") as file:
        opened = file[dataset.path]
        found = _member(opened, rows if opened.shape else (), value.member)
        return found if opened.shape else np.asarray([found], dtype=object)


def _member(dataset: Any, rows: Any, member: str) -> Any:
    """The cells, or of compounds the member, which may lie in another one."""
    if not member:
        return dataset[rows]
    first, *inner = member.split(".")
    found = dataset.fields(first)[rows]
    for name in inner:
        found = found[name]
    return found


def _plain(found: Any, value: Varied) -> AnyArray:
    made = np.empty(found.shape, dtype=object)
    for place in np.ndindex(found.shape):
        one = found[place]
        if value.is_list:
            made[place] = np.ascontiguousarray(one, dtype=value.dtype)
        else:
            if isinstance(one, np.ndarray):
                one = one[()]
            if not isinstance(one, str | bytes):
                raise TypeError(f"a value is {one!r}, which is no text")
            raw = one if isinstance(one, bytes) else one.encode()
            made[place] = raw.decode() if value.dtype == "string" else raw
    return made
