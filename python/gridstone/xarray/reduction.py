"""Reductions of lazily opened variables by the engine, instead of values that are read for them."""

import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from ..arrays.aggregate import quoted
from ..arrays.array import Array
from ..base.arguments import checked, flag, is_iterable, known
from ..base.extras import needed
from ..base.printable import brief
from ..errors import InputError, UnsupportedError
from .boxes import box_of

_FUNCTIONS = ("sum", "mean", "min", "max", "std", "var", "count", "any", "all")
_OTHERWISE = "the method of xarray reads the values: x.mean(…)"


@checked(keep_attrs=flag)
def reduce(
    obj: Any,
    func: str,
    dim: "Hashable | Iterable[Hashable] | None" = None,
    *,
    skipna: bool | None = None,
    ddof: int = 0,
    keep_attrs: bool = True,
) -> Any:
    """Reduces a variable along dimensions by the engine: tile by tile, on all threads, in bounded memory.

    Values, coordinates and names are those of the method of xarray (`ds["t"].mean("time")`); only the result is in
    memory. Means of times are cut to whole units. It is for variables that are lazy and stored as they are shown:
    opened, perhaps cut by `isel` or `sel` with single positions and slices, and not changed, loaded or encoded.

    Args:
        obj: a DataArray of a Dataset that was opened with the engine "gridstone"; or such a Dataset, for all of its
            data variables that have a dimension in `dim`.
        func: "sum", "mean", "min", "max", "std", "var", "count", "any" or "all".
        dim: the dimensions that go; None: all.
        skipna: whether NaN and NaT are left out; None: as in xarray, where NaN is, and NaT only of "mean". "count"
            leaves them out in any case.
        ddof: for "std" and "var", what is taken from the number of values.
        keep_attrs: whether the result has the attributes of the variable.

    Raises:
        InputError: no such function or dimension.
        UnsupportedError: a variable that is not lazy, or whose values are not those that are stored.

    Example:
        >>> gs.xarray.reduce(ds["t"], "mean", dim="time").dims
        ('lat', 'lon')
    """
    xarray = needed("xarray", "xarray", "reduce()")
    known("func", func, _FUNCTIONS)
    if isinstance(obj, xarray.Dataset):
        gone = _dims(obj, dim)
        made = {
            name: reduce(
                variable,
                func,
                [one for one in gone if one in variable.dims],
                skipna=skipna,
                ddof=ddof,
                keep_attrs=keep_attrs,
            )
            for name, variable in obj.data_vars.items()
            if any(one in variable.dims for one in gone)
        }
        return xarray.Dataset(made, attrs=obj.attrs if keep_attrs else None)
    if not isinstance(obj, xarray.DataArray):
        raise InputError(f"reduce() takes a DataArray or Dataset of xarray, not {brief(obj)} ({type(obj).__name__})")
    gone = _dims(obj, dim)
    array, attr, key = _stored(obj)
    values = _reduced(array, attr, (key, [list(obj.dims).index(one) for one in gone]), (func, skipna, ddof))
    # Coordinates along what goes, go with it.
    stays = obj.drop_vars([name for name, one in obj.coords.items() if not set(gone).isdisjoint(one.dims)])
    shown = stays.isel(dict.fromkeys(gone, 0), drop=True)
    made = shown.copy(data=np.reshape(values, shown.shape))
    # A sum may not fit the packing of the values that it is of.
    made.encoding = {}
    if not keep_attrs:
        made.attrs = {}
    return made


def _dims(obj: Any, dim: Any) -> list[Any]:
    if dim is None:
        return list(obj.dims)
    given = [dim] if isinstance(dim, str) or not is_iterable(dim) else list(dim)
    if not all(isinstance(one, str) for one in given):
        raise InputError(f"dim= names dimensions, not {brief(dim)}")
    if lacking := [one for one in given if one not in obj.dims]:
        raise InputError(
            f"dim= names {brief(lacking)}, which is no dimension of it; there are "
            f"{', '.join(map(repr, obj.dims)) or 'none'}"
        )
    return given


def _stored(given: Any) -> tuple[Array, str, tuple[Any, ...]]:
    """The array behind a variable, its attribute, and what of it the variable shows."""
    from xarray.core import indexing

    from .lazy import StoredArray

    found, key = given.variable._data, None
    while not isinstance(found, StoredArray):
        if isinstance(found, indexing.LazilyIndexedArray):
            key = found.key.tuple
        elif not isinstance(found, indexing.MemoryCachedArray | indexing.CopyOnWriteArray):
            what = "is a graph of Dask" if given.chunks is not None else "is in memory, or its values are computed"
            raise UnsupportedError(f"reduce(): {given.name!r} {what}, and not lazy as it was opened; {_OTHERWISE}")
        found = found.array
    if not found.is_reducible:
        raise UnsupportedError(
            f"reduce(): the values of {given.name!r} are shown as another type than they are stored in; {_OTHERWISE}"
        )
    if found.dtype.kind == "c":
        raise UnsupportedError(
            f"reduce(): {given.name!r} has complex numbers, which the engine has no order of; {_OTHERWISE}"
        )
    whole = tuple(slice(None) for _ in found.shape) if key is None else key
    if not all(
        isinstance(part, int | np.integer) or (isinstance(part, slice) and part.step in (None, 1)) for part in whole
    ):
        raise UnsupportedError(
            f"reduce(): {given.name!r} is chosen by lists of positions, or with steps; the engine reduces boxes: "
            f"choose with slices, or {_OTHERWISE}"
        )
    return found.stored, found.attr, whole


def _reduced(array: Array, attr: str, where: tuple[tuple[Any, ...], list[int]], asked: tuple[str, Any, int]) -> Any:
    """The values of a reduction of a box along axes of what a variable shows."""
    (key, gone), (func, skipna, ddof) = where, asked
    starts, shape, shown = [], [], []
    for axis, (part, size) in enumerate(zip(key, array.shape, strict=True)):
        start, stop, _ = part.indices(size) if isinstance(part, slice) else (int(part) % size, int(part) % size + 1, 1)
        starts.append(start)
        shape.append(max(0, stop - start))
        if isinstance(part, slice):
            shown.append(axis)
    axes = [axis for axis in range(array.ndim) if axis not in shown] + [shown[one] for one in gone]
    if 0 in shape:
        raise UnsupportedError(f"reduce(): the variable shows no cell; {_OTHERWISE}")
    if len(axes) == array.ndim and (total := _by_index(array, attr, func, box_of(array, starts, shape))) is not None:
        return total
    dtype = array[attr].dtype
    skips = _skips(dtype, func, skipna)
    names = [array.dims[axis] for axis in axes]
    options: dict[str, Any] = {"box": box_of(array, starts, shape)}
    if skips:
        options["where"] = f"{quoted(attr)} is not nan"
    if not names:
        raise InputError("dim= names no dimension; give one or several, or None for all")
    if func in ("min", "max", "count"):
        found = array.reduce({func: f"{func}({quoted(attr)})"}, axis=names, **options).to_numpy()[func]
        return _without_mask(found, dtype)
    more = {"ddof": ddof} if func in ("std", "var") else {}
    if dtype.kind in "mM" and func in ("mean", "sum") and not skips:
        # The engine has neither of cells that are NaT: those without are reduced, and tell where there were some.
        options["where"] = f"{quoted(attr)} is not nan"
        held = array.reduce({"held": f"count({quoted(attr)})"}, axis=names, **options).to_numpy()["held"]
        made = np.array(_without_mask(getattr(array[attr], func)(names, **options), dtype))
        lacking = np.ma.filled(held, 0) < math.prod(shape[axis] for axis in axes)
        return np.where(lacking.reshape(made.shape), np.array("NaT", made.dtype), made)
    return _without_mask(getattr(array[attr], func)(names, **more, **options), dtype)


def _skips(dtype: np.dtype[Any], func: str, skipna: Any) -> bool:
    """Whether cells that are NaN or NaT are left out, as xarray has it: NaT only by means, unless that is asked for."""
    if func == "count":
        return dtype.kind in "fcmM"
    if dtype.kind in "mM":
        return func not in ("any", "all") and (skipna is True or (func == "mean" and skipna is None))
    return dtype.kind in "fc" and skipna is not False and func not in ("any", "all")


def _by_index(array: Array, attr: str, func: str, box: Any) -> Any:
    """A reduction of whole tiles from their statistics, so that only tiles that the box cuts are read; None where it
    would be another one: cells may be NaN, or the sum is of another type."""
    dtype = array[attr].dtype
    is_float = dtype.kind == "f" and dtype.itemsize >= 4
    if func not in ("mean", "min", "max", "sum") or not (is_float or (dtype.kind in "iu" and func != "sum")):
        return None
    found = array.aggregate({func: f"{func}({quoted(attr)})"}, box=box)[func][0]
    if np.ma.is_masked(found) or found != found:
        return None
    return np.asarray(found, np.float64 if dtype.kind in "iu" and func == "mean" else dtype)


def _without_mask(found: Any, dtype: np.dtype[Any]) -> Any:
    """Values with NaN where there is none."""
    if not np.ma.isMaskedArray(found) and found is not np.ma.masked:
        return np.asarray(found)
    if not np.ma.getmaskarray(found).any():
        return np.ma.getdata(found)
    if found.dtype.kind in "mM":
        return np.where(np.ma.getmaskarray(found), np.array("NaT", found.dtype), np.ma.getdata(found))
    return np.ma.filled(
        found.astype(np.result_type(found.dtype, np.float32)) if found.dtype.kind in "biu" else found, np.nan
    )
