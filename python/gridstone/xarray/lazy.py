"""Arrays that xarray indexes before anything is read: a stored attribute, and what a file would hold instead of it."""

import asyncio
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from xarray import Variable
from xarray.backends import BackendArray
from xarray.conventions import encode_cf_variable
from xarray.core import indexing

from ..arrays.array import Array
from ..column import datatype
from ..column.datatype import AnyArray
from .form import Shown

_OUTER_WASTE_MAX = 4
"""Cells that may be read for each one that is wanted, where that makes one selection of many points."""


class StoredArray(BackendArray):
    """One attribute of a dense array at one version. It pickles as its place, without data; threads may share it."""

    __slots__ = ("_attr", "_shown", "dtype", "shape", "stored")

    def __init__(self, array: Array, attr: str, shown: Shown) -> None:
        self.stored, self._attr, self._shown = array, attr, shown
        self.shape = (*array.shape, *datatype.shape_of(array.schema.attr(attr).dtype))
        self.dtype = shown.dtype

    @property
    def attr(self) -> str:
        """The name of the attribute."""
        return self._attr

    @property
    def is_reducible(self) -> bool:
        """Whether the engine reduces what is shown: values as they are stored, or with NaN for nulls."""
        stored = self.stored[self._attr].dtype
        return self._shown.is_plain or (stored == self.dtype and stored.kind in "fcmM")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, indexing.VectorizedIndexer):
            return self._points(key)
        # A vector's own axes are cut after it was read.
        view, count = self.stored[self._attr], self.stored.ndim
        mine, inner = key.tuple[:count], key.tuple[count:]
        if isinstance(key, indexing.OuterIndexer):
            found = view.oindex[mine] if mine else view[...]
        else:
            found = view[(*mine, ...)]
        made = self._shown.values(found)
        for axis, part in enumerate(reversed(inner), 1):
            made = made[(..., part, *[slice(None)] * (axis - 1))]
        return made

    async def async_getitem(self, key: Any) -> Any:
        """The same in a thread, so that others of the loop go on."""
        return await asyncio.to_thread(self.__getitem__, key)

    def _points(self, key: Any) -> Any:
        """Cells point by point; where slices come too, for every position in them, at the end."""
        arrays = [one for one in key.tuple if not isinstance(one, slice)]
        count = math.prod(np.broadcast_shapes(*(one.shape for one in arrays)))
        cells = math.prod(np.unique(one).size for one in arrays)
        if cells <= _OUTER_WASTE_MAX * count or 0 in self.shape or len(self.shape) > self.stored.ndim:
            return indexing.explicit_indexing_adapter(
                key, self.shape, indexing.IndexingSupport.OUTER, lambda parts: self[indexing.OuterIndexer(parts)]
            )
        return self._shown.values(self.stored[self._attr].vindex[_expanded(key.tuple, self.shape)])


def _expanded(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[AnyArray, ...]:
    """Slices as arrays of positions, along axes of their own behind those of the points."""
    slices = [place for place, part in enumerate(key) if isinstance(part, slice)]
    made = []
    for place, part in enumerate(key):
        if isinstance(part, slice):
            behind = len(slices) - 1 - slices.index(place)
            made.append(np.arange(*part.indices(shape[place])).reshape((-1,) + (1,) * behind))
        else:
            made.append(part.reshape(part.shape + (1,) * len(slices)))
    return tuple(made)


class EncodedArray(BackendArray):
    """What a file would hold for a stored attribute: packed, with fill values, times as numbers. It is made block by
    block of what is read, by xarray's encoder."""

    __slots__ = ("_encoding", "_inner", "_name", "dtype", "shape")

    def __init__(self, inner: StoredArray, encoding: Mapping[str, Any], name: str) -> None:
        self._inner, self._encoding, self._name = inner, dict(encoding), name
        self.shape = inner.shape
        self.dtype = self._encoded(np.zeros((0,), inner.dtype)).dtype

    def _encoded(self, values: Any) -> Any:
        return self.encoded_variable(values).data

    def encoded_variable(self, values: Any) -> Any:
        """Values with the attributes that decode them."""
        given = np.asarray(values)
        dims = tuple(f"d{place}" for place in range(given.ndim))
        return encode_cf_variable(Variable(dims, given, {}, self._encoding), name=self._name)

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes that decode what is read."""
        return dict(self.encoded_variable(np.zeros((0,), self._inner.dtype)).attrs)

    def __getitem__(self, key: Any) -> Any:
        return self._encoded(self._inner[key])

    async def async_getitem(self, key: Any) -> Any:
        """The same in a thread, so that others of the loop go on."""
        return await asyncio.to_thread(self.__getitem__, key)
