"""Sparse arrays as variables of `sparse.COO`."""

from typing import Any

import numpy as np
from xarray import Variable

from ..arrays.array import Array
from ..column import datatype
from ..errors import UnsupportedError


def sparse_variables(array: Array, name: str) -> dict[str, Any]:
    """The attributes of a sparse array, read whole, and its coordinates where these do not count from 0.

    Raises:
        UnsupportedError: dimensions of floats or texts, which have no positions; or the package is missing.
    """
    for dim in array.schema.dims:
        if dim.is_text or datatype.is_float(dim.dtype):
            raise UnsupportedError(
                f"{array.path!r} has the dimension {dim.name!r} of {dim.dtype}, which has no positions that "
                f"sparse.COO needs; read it with gridstone.dask.frame(a) or a.read().to_pandas()"
            )
    made: dict[str, Any] = {}
    cells = array.read()
    alone = len(array.schema_names) == 1
    for attr in array.schema_names:
        called = name if alone and name else attr
        made[called] = Variable(array.dims, cells.to_sparse(attr), {**dict(array.meta), **dict(array[attr].meta)})
    for dim in array.schema.dims:
        low = datatype.ticks_of(dim.reach[0])
        dtype = datatype.numpy_of(dim.dtype)
        if low != 0 or dtype.kind in "mM":
            counted = low + np.arange(dim.size, dtype=np.int64)
            made[dim.name] = Variable((dim.name,), counted.view(dtype) if dtype.kind in "mM" else counted)
    return made
