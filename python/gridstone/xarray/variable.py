"""The variables of Datasets that the engine opens: tasks that read their blocks are named after what is read."""

import uuid
from typing import Any

import xarray

from .lazy import EncodedArray, StoredArray


class Variable(xarray.Variable):
    """A variable that is read when it is asked for.

    With `chunks=`, xarray names tasks after the address of a store and the time of its folder, which tell no two
    versions apart. The name that is given here has the array and its version too.
    """

    __slots__ = ()

    def chunk(self, *args: Any, **options: Any) -> Any:
        """A variable of Dask, as that of xarray."""
        given = dict(options.get("from_array_kwargs") or {})
        if isinstance(given.get("name"), str):
            given["name"] = f"{given['name']}-{_token(self._data)}"
            options["from_array_kwargs"] = given
        plain = xarray.Variable(self._dims, self._data, self._attrs, self._encoding, fastpath=True)
        return plain.chunk(*args, **options)


def versioned(given: xarray.Dataset) -> xarray.Dataset:
    """The Dataset, whose lazy variables name their tasks so."""
    made = {
        name: Variable(one.dims, one._data, one._attrs, one._encoding, fastpath=True)
        for name, one in given.variables.items()
        if type(one) is xarray.Variable and not one._in_memory
    }
    return given._replace({**given._variables, **made})


def _token(data: Any) -> str:
    """A token of the array at its version. Data in which no array is found has a token of its own."""
    from dask.base import tokenize

    while not isinstance(data, StoredArray):
        data = data._inner if isinstance(data, EncodedArray) else getattr(data, "array", None)
        if data is None:
            return uuid.uuid4().hex
    return str(tokenize(data.stored))
