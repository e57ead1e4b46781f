"""Sparse arrays as variables of `sparse.COO`."""

from typing import Any

import numpy as np
from xarray import Variable

from ..arrays.array import Array
from ..column import datatype
from ..errors import UnsupportedError


def sparse_variables(array: Array) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes of a sparse array, read whole, and its coordinates where these do not count from 0, by dimension.

    Raises:
        UnsupportedError: dimensions of floats or texts, which have no positions; or the package is missing.
    """
    for dim in array.schema.dims:
        if dim.is_text or datatype.is_float(dim.dtype):
            raise UnsupportedError(
                f"{array.path!r} has the dimension {dim.name!r} of {dim.dtype}, which has no positions that "
                f"sparse.COO needs; read it with gridstone.dask.frame(a) or a.read().to_pandas()"
            )
    cells = array.read()
    shared = dict(array.meta)
    made = {
        attr: Variable(array.dims, cells.to_sparse(attr), {**shared, **dict(array[attr].meta)})
        for attr in array.schema_names
    }
    coordinates = {}
    for dim in array.schema.dims:
        low = datatype.ticks_of(dim.reach[0])
        dtype = datatype.numpy_of(dim.dtype)
        if low != 0 or dtype.kind in "mM":
            counted = low + np.arange(dim.size, dtype=np.int64)
            coordinates[dim.name] = Variable((dim.name,), counted.view(dtype) if dtype.kind in "mM" else counted)
    return made, coordinates
