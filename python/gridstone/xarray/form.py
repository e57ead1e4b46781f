"""How the values of a variable lie in a store, and how they are shown again: the types that xarray knows and a store
does not, such as texts of a fixed width, and objects that may be missing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.printable import brief
from ..column import datatype
from ..column.datatype import AnyArray
from ..errors import InputError, UnsupportedError
from ..schema.attribute import Attr

_MISSING: Mapping[str, Any] = {"nan": np.nan, "None": None}


@dataclass(frozen=True)
class Form:
    """The type of a stored attribute, and what is noted of the variable."""

    dtype: str
    nullable: bool = False
    noted: Mapping[str, Any] = field(default_factory=dict)
    fill: Any = None
    """The number that stands for missing values in an encoding."""

    def attribute(self, name: str, filters: Any = "auto") -> Attr:
        """The attribute; unwritten floats are NaN, as everywhere in xarray, and numbers of an encoding what stands for
        missing ones there."""
        fill = np.nan if self.dtype in ("float16", "float32", "float64") else self.fill
        return Attr(name, self.dtype, nullable=self.nullable, fill=fill, filters=filters)


class Shown:
    """How the values of an attribute are shown in xarray."""

    __slots__ = ("_missing", "_na", "dtype", "is_plain")

    def __init__(self, attr: Attr, noted: Mapping[str, Any]) -> None:
        kind = str(noted.get("dtype", ""))
        stored = datatype.numpy_of(attr.dtype)
        self._na = noted.get("na")
        self._missing = _MISSING.get(str(noted.get("missing", "nan")), np.nan)
        self.is_plain = not attr.nullable and not kind
        if kind == "StringDType":
            self.dtype: Any = _string_dtype(self._na)
        elif kind:
            self.dtype = np.dtype(kind)
        elif attr.nullable:
            self.dtype = _with_missing(stored)
        else:
            self.dtype = _in_unit(attr.name, stored)
        self.is_plain = self.is_plain and self.dtype == stored

    def values(self, found: Any) -> AnyArray:
        """Values as they were read, in the type that is shown; nulls become what is missing."""
        given = found if isinstance(found, np.ndarray) else _boxed(found, self.dtype)
        if self.is_plain:
            return given
        if not np.ma.isMaskedArray(given):
            return _recast(given, self.dtype)
        gone, held = np.ma.getmaskarray(given), np.array(np.ma.getdata(given))
        if self.dtype.kind not in "OT":
            held[gone] = np.zeros((), held.dtype)
        made = _recast(held, object if self.dtype.kind in "OT" else self.dtype)
        if gone.any():
            made = np.array(made)
            made[gone] = self._gap
        return made.astype(self.dtype, copy=False)

    @property
    def _gap(self) -> Any:
        """What stands for a null."""
        kind = self.dtype.kind
        if kind in "mM":
            return np.array("NaT", self.dtype)
        if kind == "T":
            return self.dtype.na_object
        return np.nan if kind in "fc" else self._missing


def _boxed(value: Any, dtype: Any) -> AnyArray:
    """One value as an array of no dimension, masked if it is."""
    if value is np.ma.masked:
        return np.ma.MaskedArray(np.zeros((), object if dtype.kind in "OT" else dtype), mask=True)
    made = np.empty((), object if dtype.kind in "OTSU" else np.asarray(value).dtype)
    made[()] = value
    return made


_UNITS = ("s", "ms", "us", "ns")
"""The units of times that xarray has."""


def _in_unit(name: str, stored: np.dtype[Any]) -> np.dtype[Any]:
    """The type of times in a unit that xarray has; other types as they are.

    Raises:
        UnsupportedError: lengths in months or years.
    """
    if stored.kind not in "mM":
        return stored
    unit, several = np.datetime_data(stored)
    if several == 1 and unit in _UNITS:
        return stored
    kind = "datetime64" if stored.kind == "M" else "timedelta64"
    if kind == "timedelta64" and unit in ("Y", "M"):
        raise UnsupportedError(
            f"variable {name!r} is {stored.name}; months and years have no fixed length, so that xarray has no such "
            f"type: leave it out with drop_variables=[{name!r}], or read it with gridstone.open"
        )
    near = "ns" if datatype.fineness(unit) > datatype.fineness("ns") else unit if unit in _UNITS else "s"
    return np.dtype(f"{kind}[{near}]")


def _recast(values: AnyArray, dtype: Any) -> AnyArray:
    """Values in another type; an `UnsupportedError` if a time or a large integer is another one there."""
    if dtype is not object and np.dtype(dtype).kind == "U":
        # A region may have written texts longer than the noted width, and none is cut.
        whole: AnyArray = values.astype(np.str_)
        return whole if whole.dtype.itemsize > np.dtype(dtype).itemsize else whole.astype(dtype)
    made: AnyArray = values.astype(dtype, copy=False)
    is_time = made.dtype.kind in "mM"
    if not is_time and not (made.dtype.kind == "f" and values.dtype.kind in "iu" and values.dtype.itemsize == 8):
        return made
    same = (made.astype(values.dtype) == values) | (np.isnat(values) if is_time else False)
    if not same.all():
        first = values[~same].flat[0]
        raise UnsupportedError(
            f"xarray has no type for {first} of {values.dtype.name} among missing values or in its units (the nearest "
            f"is {made.dtype.name}); read it with gridstone.open, or leave the variable out: drop_variables="
        )
    return made


def _with_missing(stored: np.dtype[Any]) -> np.dtype[Any]:
    """The type that has a place for missing values, as xarray promotes it."""
    if stored.kind in "fcmMO":
        return _in_unit("", stored) if stored.kind in "mM" else stored
    if stored.kind in "iu":
        return np.dtype(np.float32 if stored.itemsize <= 2 else np.float64)
    return np.dtype(object)


def _string_dtype(na: Any) -> Any:
    if na is None:
        return np.dtypes.StringDType()
    return np.dtypes.StringDType(na_object=_MISSING[na["missing"]] if isinstance(na, Mapping) else na)


def form_of(name: str, values: Any) -> Form:
    """How values are stored; those of objects are looked through.

    Raises:
        InputError: a type that no attribute has, or objects of several kinds.
    """
    dtype = values.dtype
    match dtype.kind:
        case "O":
            return _of_objects(name, np.asarray(values))
        case "U":
            return Form("string", noted={"dtype": f"U{dtype.itemsize // 4}"})
        case "S":
            return Form(f"bytes[{max(1, dtype.itemsize)}]")
        case "T":
            return _of_strings(dtype)
        case "b" | "i" | "u" | "f" | "c" | "m" | "M" if _is_known(dtype):
            return Form(datatype.parse(dtype.newbyteorder("=")))
    raise InputError(
        f"variable {name!r}: values of the type {dtype} cannot be stored; convert them first, such as "
        f"ds[{name!r}].astype('float64')"
    )


def _is_known(dtype: np.dtype[Any]) -> bool:
    if dtype.kind in "mM":
        return np.datetime_data(dtype)[0] != "generic"
    return dtype.itemsize <= (16 if dtype.kind == "c" else 8)


def _of_strings(dtype: Any) -> Form:
    """NumPy's texts of varying length, perhaps with an object that stands for missing ones."""
    if not hasattr(dtype, "na_object"):
        return Form("string", noted={"dtype": "StringDType"})
    na = dtype.na_object
    if isinstance(na, str):
        return Form("string", noted={"dtype": "StringDType", "na": na})
    return Form("string", True, {"dtype": "StringDType", "na": {"missing": "None" if na is None else "nan"}})


def is_missing(value: Any) -> bool:
    """Whether an object stands for a missing value."""
    return value is None or value is np.ma.masked or (type(value).__name__ in ("NAType", "NaTType")) or value != value


def _of_objects(name: str, values: AnyArray) -> Form:
    flat = values.ravel().tolist()
    held = [one for one in flat if not is_missing(one)]
    gaps = [one for one in flat if is_missing(one)]
    missing = {"missing": "None"} if gaps and all(one is None for one in gaps) else {}
    if not held:
        if gaps and not missing:
            return Form("float64", noted={"dtype": "O"})
        is_bytes = dict(values.dtype.metadata or ()).get("element_type") is bytes
        return Form("bytes" if is_bytes else "string", True, missing)
    kinds = {_kind(one) for one in held}
    if len(kinds) > 1 and kinds <= {"int64", "float64"}:
        kinds = {"float64"}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None:
        raise InputError(
            f"variable {name!r}: its objects are no texts, bytes or numbers alone, for instance {brief(held[0])}; "
            f"convert them to one type, such as ds[{name!r}].astype(str)"
        )
    if kind in ("string", "bytes"):
        return Form(kind, True, missing)
    is_nullable = kind != "float64" or any(one is None for one in gaps)
    return Form(kind, is_nullable, {"dtype": "O", **missing})


def _kind(value: Any) -> str | None:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, int | np.integer):
        return "int64" if -(2**63) <= int(value) < 2**63 else None
    return "float64" if isinstance(value, float | np.floating) else None


_WITH_NAN = ("float16", "float32", "float64", "complex64", "complex128")


def prepared(form: Form, values: Any, name: str = "a variable") -> Any:
    """Values as an attribute of this form takes them.

    Raises:
        InputError: values that the type does not have: gaps without a place for them, numbers that it would change,
            and what would become a date.
    """
    given = np.asarray(values)
    if form.dtype.startswith(("datetime64", "timedelta64")) and given.dtype.kind not in "mM":
        return _without_times(form, given, name)
    if given.dtype.kind in "TU" and form.dtype != "string":
        raise InputError(f"{name!r} has texts, and its array is of {form.dtype}; convert them first")
    if given.dtype.kind == "T":
        given = given.astype(object)
    elif given.dtype.kind == "U":
        return given.astype(object)
    elif given.dtype.kind != "O":
        return given
    gone = np.fromiter((is_missing(one) for one in given.ravel().tolist()), np.bool_, given.size).reshape(given.shape)
    if gone.any() and not form.nullable and form.dtype not in _WITH_NAN:
        raise InputError(
            f"{name!r} has missing values, such as {brief(given[gone].ravel()[0])}, and its array of {form.dtype} has "
            f'no place for them: fill them first, such as ds[{name!r}].fillna(…), or write the variable anew, mode="a"'
        )
    filled = given.copy()
    filled[gone] = _blank(form)
    if form.dtype in ("string", "bytes"):
        _check_kinds(form, filled, name)
    else:
        filled = _cast(form, filled, name)
    if not form.nullable and gone.any():
        filled[gone] = np.nan
    return np.ma.MaskedArray(filled, mask=gone) if form.nullable else filled


def _without_times(form: Form, values: AnyArray, name: str) -> AnyArray:
    """Values that have no time among them as those of an array of times: all of them have to be missing. Numbers and
    texts would become dates there."""
    held = [one for one in values.ravel().tolist() if not is_missing(one)]
    if held:
        raise InputError(
            f"{name!r} has values that are no times, such as {brief(held[0])}, and its array is of {form.dtype}; "
            f"convert them first, such as ds[{name!r}].astype('datetime64[s]')"
        )
    made = np.full(values.shape, "NaT", datatype.numpy_of(form.dtype))
    return np.ma.MaskedArray(made, mask=True) if form.nullable else made


def _blank(form: Form) -> Any:
    """What lies below a gap."""
    blanks: dict[str, Any] = {"string": "", "bytes": b"", "bool": False}
    return blanks.get(form.dtype.partition("[")[0], 0)


def _check_kinds(form: Form, values: AnyArray, name: str) -> None:
    kind = str if form.dtype == "string" else bytes
    if other := next((one for one in values.ravel().tolist() if not isinstance(one, kind)), None):
        raise InputError(f"{name!r}: {brief(other)} is no {kind.__name__}, and its array is of {form.dtype}")


def _cast(form: Form, values: AnyArray, name: str) -> AnyArray:
    """Objects as numbers; an `InputError` for one that is another number, or none, in the type."""
    dtype = datatype.numpy_of(form.dtype)
    try:
        with np.errstate(all="ignore"):
            made: AnyArray = values.astype(dtype)
        same = _is_kept(values, made)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name!r}: its objects are not all of its array's type, {form.dtype}: {error}") from error
    if not same.all():
        raise InputError(
            f"{name!r}: {brief(values[~same].ravel()[0])} is another value as {form.dtype}, the type of its array; "
            f'convert it first, or write the variable anew with a wider type, mode="a"'
        )
    return made


def _is_kept(values: AnyArray, made: AnyArray) -> AnyArray:
    """Where objects are the values that they became; floats may be rounded to shorter ones, others may not."""
    if made.dtype.kind not in "fc":
        return np.asarray(made.astype(object) == values, np.bool_)
    pairs = zip(values.ravel().tolist(), made.ravel().tolist(), strict=True)
    kept = (isinstance(one, float | complex | np.inexact) or one == other for one, other in pairs)
    return np.fromiter(kept, np.bool_, values.size).reshape(values.shape)
