"""Values of varying length, which have no place that a record could name: read by h5py or zarr, to be copied."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.extras import found, needed
from ..column.datatype import AnyArray
from ..errors import AccessError, StorageError, UnsupportedError
from ..schema.attribute import Attr
from .tree import Dataset

_SLAB_CELLS = 1 << 18
"""Cells of a folder of Zarr that are read at once, about."""


@dataclass(frozen=True)
class Varied:
    """A value of varying length: of a cell, or of a member of its compound."""

    member: str
    dtype: str
    is_list: bool
    big_endian: bool = False
    """The order of the bytes of a list's numbers in the file."""

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
            dtype = f"{'int' if base['signed'] else 'uint'}{8 * base['width']}"
            return Varied(member, dtype, True, bool(base.get("big_endian")))
        case "float" if base.get("layout") is None and base["width"] in (4, 8):
            return Varied(member, f"float{8 * base['width']}", True, bool(base.get("big_endian")))
    return None


def slabs(dataset: Dataset, shape: tuple[int, ...], value: Varied) -> Iterator[tuple[slice, AnyArray]]:
    """The values, some along the first dimension at a time, with where they belong.

    zarr reads those of a folder here. h5py reads them in a process of its own: a heap that contradicts itself may crash
    the HDF5 library.

    Raises:
        UnsupportedError: h5py or zarr is missing, or cannot read the values.
        StorageError: something else ended its process.
    """
    if dataset.is_in_objects:
        yield from _of_objects(dataset, shape, value)
        return
    # Deferred: no process is needed before a file has such values.
    from .child import CHILDREN, WorkerDeath, WorkerRefusal

    found("h5py", "hdf5", "copying values of varying length")
    file, path = dataset.file, dataset.path
    what = f"{file}: the values of {path}, which vary in length, cannot be copied"
    asked = {
        "do": "copy",
        "file": os.path.abspath(file),
        "path": path,
        "member": value.member,
        "dtype": value.dtype,
        "big_endian": value.big_endian,
    }
    next_row = 0
    try:
        with CHILDREN.one() as child:
            for header, body in child.ask(asked):
                if "done" not in header:
                    rows = slice(header["low"], header["high"])
                    cells = _values(body, header["count"], value)
                    if rows.start != next_row or len(cells) != math.prod((rows.stop - rows.start, *shape[1:])):
                        raise UnsupportedError(f"{what}: h5py finds other cells than its index has")
                    next_row = rows.stop
                    yield rows, cells.reshape(rows.stop - rows.start, *shape[1:])
    except WorkerDeath as error:
        kind = UnsupportedError if error.faulted else StorageError
        raise kind(f"{what}: {error}") from error
    except (WorkerRefusal, UnicodeDecodeError) as error:
        raise UnsupportedError(f"{what}: {error}") from error
    if next_row != shape[0]:
        raise UnsupportedError(f"{what}: h5py finds {next_row} rows, its index {shape[0]}")


def _of_objects(dataset: Dataset, shape: tuple[int, ...], value: Varied) -> Iterator[tuple[slice, AnyArray]]:
    zarr = needed("zarr", "zarr", "copying values of varying length")
    step = max(1, _SLAB_CELLS // max(1, math.prod(shape[1:])))
    check_inside(dataset.source)
    try:
        opened = zarr.open_array(dataset.source, mode="r")
        for low in range(0, shape[0], step):
            rows = slice(low, min(low + step, shape[0]))
            read = np.asarray(opened[rows] if opened.ndim else [opened[()]], dtype=object)
            yield rows, _plain(read.reshape(-1, *opened.shape[1:]), value)
    except (OSError, RuntimeError, ValueError, TypeError, KeyError) as error:
        raise UnsupportedError(
            f"{dataset.file}: the values of {dataset.path}, which vary in length, cannot be copied: {error}"
        ) from error


def check_inside(folder: str) -> None:
    """An AccessError if a link in a folder leads out of it: a folder that was sent would have other files copied."""
    root = os.path.realpath(folder)
    for place, folders, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in (*folders, *names)):
            if os.path.islink(path) and os.path.commonpath([root, os.path.realpath(path)]) != root:
                raise AccessError(
                    f"{path} is a link to {os.path.realpath(path)}, outside of {folder}; its values would be copied"
                )


def _plain(found: Any, value: Varied) -> AnyArray:
    made = np.empty(found.shape, dtype=object)
    for place in np.ndindex(found.shape):
        one = found[place]
        if value.is_list:
            made[place] = np.ascontiguousarray(one, dtype=value.dtype)
            continue
        if isinstance(one, np.ndarray):
            one = one[()]
        if not isinstance(one, str | bytes):
            raise TypeError(f"a value is {one!r}, which is no text")
        raw = one if isinstance(one, bytes) else one.encode()
        made[place] = raw.decode() if value.dtype == "string" else raw
    return made


def _values(body: bytes, count: int, value: Varied) -> AnyArray:
    """The values of a portion: u64 ends of each in what follows, then all."""
    ends = np.frombuffer(body, "<u8", count).tolist()
    made = np.empty(count, dtype=object)
    low, base = 0, 8 * count
    for place, high in enumerate(ends):
        raw = body[base + low : base + high]
        if value.is_list:
            made[place] = np.frombuffer(raw, np.dtype(value.dtype).newbyteorder("<")).astype(value.dtype)
        else:
            made[place] = raw.decode() if value.dtype == "string" else raw
        low = high
    return made
