"""Arrays that xarray indexes before anything is read: a stored attribute, and what a file would hold instead of it."""

import asyncio
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from ..arrays.array import Array
from ..base.printable import brief
from ..column import datatype
from ..column.datatype import AnyArray
from ..errors import InputError
from . import faithful
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


_LOOKED_THROUGH_CELLS = 1 << 18
"""Cells that are looked through when a variable is opened, for the type that loses none of them."""


def _dims(values: AnyArray) -> tuple[str, ...]:
    return tuple(f"d{place}" for place in range(np.ndim(values)))


class EncodedArray(BackendArray):
    """What a file would hold for a stored attribute: packed, with fill values, times as numbers. It is made block by
    block of what is read, by xarray's encoder. A small one whose integers would lose values is of floats."""

    __slots__ = ("_decoding", "_encoding", "_inner", "_name", "dtype", "shape")

    def __init__(self, inner: StoredArray, encoding: Mapping[str, Any], name: str) -> None:
        self._inner, self._encoding, self._name = inner, dict(encoding), name
        self.shape = inner.shape
        sample = self._through_encoder(np.zeros((0,), inner.dtype))
        self.dtype, self._decoding = sample.dtype, dict(sample.attrs)
        if self.dtype.kind in "iu" and math.prod(self.shape) <= _LOOKED_THROUGH_CELLS:
            values = np.asarray(inner[indexing.BasicIndexer((slice(None),) * len(self.shape))])
            if self._loses(values, self._through_encoder(values)).any():
                # The units of the attributes, whatever the encoder would choose for a block.
                self.dtype = np.dtype(np.float64)
                self._encoding |= {**self._decoding, "dtype": self.dtype}

    def _through_encoder(self, values: Any) -> Any:
        return faithful.through_encoder(self._name, _dims(values), values, self._encoding)

    def _loses(self, values: AnyArray, made: Any) -> AnyArray:
        lost = faithful.losses(self._name, _dims(values), values, made, self._decoding)
        # A number that is stored as itself is what a file would hold, also where it stands for a missing one there.
        is_itself = values.dtype.kind in "iuf" and not {"scale_factor", "add_offset"} & set(self._decoding)
        return lost & (np.asarray(made.data) != values) if is_itself else lost

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes that decode what is read."""
        return dict(self._decoding)

    def _encoded(self, values: Any) -> Any:
        given = np.asarray(values)
        made = self._through_encoder(given)
        lost = self._loses(given, made)
        if lost.any():
            raise InputError(
                f"variable {self._name!r}: {brief(given[lost].ravel()[0])} is another value in its encoding, which was "
                f"kept from a file ({', '.join(f'{k}={v!r}' for k, v in self._encoding.items())}); read it decoded, "
                f"with decode_times and mask_and_scale on"
            )
        return made.data

    def __getitem__(self, key: Any) -> Any:
        return self._encoded(self._inner[key])

    async def async_getitem(self, key: Any) -> Any:
        """The same in a thread, so that others of the loop go on."""
        return await asyncio.to_thread(self.__getitem__, key)
