"""Encoding that loses nothing: what xarray's encoder gives is decoded again and compared."""

import contextlib
import threading
import warnings
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from ..base.printable import brief
from ..column.datatype import AnyArray
from ..errors import InputError
from .form import is_missing


def encoded(name: Hashable, variable: Any, encoding: Mapping[str, Any], decoding: Mapping[str, Any]) -> Any:
    """A variable as an array holds it whose attributes for the decoder are known. Blocks of Dask are checked as they
    are computed.

    Raises:
        InputError: values that would be others when they are read.
    """
    from xarray import Variable

    # Texts change their shape in no block, but their type: they are encoded as a whole.
    if variable.chunks is None or variable.dtype.kind in "OUST":
        return _checked(variable.data, variable.dims, name, encoding, decoding)
    dtype = np.dtype(encoding["dtype"])
    options = {"dims": variable.dims, "called": name, "encoding": dict(encoding), "decoding": dict(decoding)}
    data = variable.data.map_blocks(_block, dtype=dtype, meta=np.empty((0,) * variable.ndim, dtype), **options)
    return Variable(variable.dims, data, dict(decoding))


def _block(values: Any, dims: Any, called: Hashable, encoding: Mapping[str, Any], decoding: Mapping[str, Any]) -> Any:
    return _checked(values, dims, called, encoding, decoding).data


def _checked(values: Any, dims: Any, name: Hashable, encoding: Mapping[str, Any], decoding: Mapping[str, Any]) -> Any:
    made = through_encoder(name, dims, values, encoding)
    lost = losses(name, dims, values, made, decoding)
    if lost.any():
        first = np.asarray(values)[lost].ravel()[0]
        how = ", ".join(f"{key}={decoding[key]!r}" for key in decoding if key != "dtype")
        raise InputError(
            f"{name!r}: {brief(first)} is another value in the encoding of the array (dtype={encoding['dtype']}"
            f'{", " if how else ""}{how}); write the variable anew, mode="a", with an encoding= that has it: a float '
            f"dtype, a fill value for missing ones, or finer units"
        )
    return made


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Keeps warnings back, in the main thread: their filters are those of the process, and threads would leave each
    other's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def through_encoder(name: Hashable, dims: Any, values: Any, encoding: Mapping[str, Any]) -> Any:
    """Values as xarray encodes them, without its warnings: what they warn of is looked for.

    Raises:
        InputError: values that the encoder refuses.
    """
    from xarray import Variable
    from xarray.conventions import encode_cf_variable

    with without_warnings():
        try:
            made = encode_cf_variable(Variable(dims, values, {}, dict(encoding)), name=name)
            return made.copy(deep=False, data=made.data) if made.chunks is not None else made.load()
        except (ValueError, OverflowError, TypeError) as error:
            raise InputError(f"{name!r}: values do not have the encoding of the array: {error}") from error


def losses(name: Hashable, dims: Any, values: Any, made: Any, decoding: Mapping[str, Any]) -> AnyArray:
    """Where the decoder gives another value than the encoder was given. Packing rounds by half a step at most."""
    given = np.asarray(values)
    if given.size == 0 or given.dtype.kind in "UST":
        return np.zeros(given.shape, np.bool_)
    try:
        back = _decoded(name, dims, made.data, decoding, given.dtype.kind)
    except (ValueError, OverflowError):
        # Numbers of finer units that the encoder has chosen may be no time at all in those of the array.
        return np.ones(given.shape, np.bool_)
    if given.dtype.kind in "iufc" and back.dtype.kind in "iufc":
        step = abs(float(decoding.get("scale_factor", 1)))
        half = step / 2 if made.dtype.kind in "iu" else 0
        is_gone = _gaps(given)
        digits = _digits(made.dtype, given.dtype, back.dtype)
        # What is added and taken away again is rounded too, however small the value is.
        around = 1.001 * half + digits * abs(float(decoding.get("add_offset", 0)))
        near = np.isclose(back, given, rtol=digits, atol=around, equal_nan=True)
        return np.asarray((is_gone != _gaps(back)) | ~(is_gone | near))
    is_gone = _gaps(given)
    wanted = given
    if made.dtype.kind == "f" and given.dtype.kind in "mMO":
        # Floats of times are rounded in their last digits; the encoder may have chosen other units for them.
        wanted = _decoded(name, dims, made.data, made.attrs, given.dtype.kind)
    try:
        same = np.asarray(back == wanted, np.bool_)
    except TypeError:
        # Dates of two calendars do not compare.
        same = np.zeros(given.shape, np.bool_)
    return np.asarray((is_gone != _gaps(back)) | ~(is_gone | same))


def _digits(*types: np.dtype[Any]) -> float:
    """The relative error of the shortest floats among some types."""
    floats = [dtype for dtype in types if dtype.kind in "fc"]
    return max((4 * float(np.finfo(dtype).eps) for dtype in floats), default=0.0)


def _gaps(values: AnyArray) -> AnyArray:
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, np.bool_)
    flat = (is_missing(one) for one in values.ravel().tolist())
    return np.fromiter(flat, np.bool_, values.size).reshape(values.shape)


def _decoded(name: Hashable, dims: Any, data: Any, decoding: Mapping[str, Any], kind: str) -> AnyArray:
    from xarray import Variable
    from xarray.conventions import decode_cf_variable

    with without_warnings():
        found = decode_cf_variable(name, Variable(dims, data, dict(decoding)), decode_timedelta=kind == "m")
        return np.asarray(found.values)
