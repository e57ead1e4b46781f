"""What is written of a Dataset: for each variable its values as they are stored, their type, and their metadata."""

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..base.printable import brief
from ..column import datatype
from ..errors import InputError
from . import names, notes
from .faithful import losses
from .form import Form, form_of, is_missing
from .layout import Layout, layout_of

_OF_ANOTHER_FILE = ("source", "original_shape", "preferred_chunks", "chunksizes", "contiguous", "chunks", "shards")
"""What an encoding says of the file that a variable came from, and not of the variable."""

_OF_LAYOUT = ("filters", "chunks", "chunksizes", "tile", "zlib", "complevel", "shuffle")
"""What `encoding=` may say of how an array is stored."""

_OF_VALUES = (
    "dtype", "_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "units", "calendar", "_Encoding",
    "coordinates", "grid_mapping", "bounds", "climatology", "cell_measures", "formula_terms", "ancillary_variables",
)  # fmt: skip
"""What `encoding=` may say of values, which xarray's encoder applies."""


class UnknownVariableError(InputError, KeyError):
    """`encoding=` names a variable that the Dataset does not have."""


@dataclass
class Planned:
    """A variable that is to be written."""

    name: str
    """The name of its array, and of the array's attribute."""
    dims: tuple[str, ...]
    """In the store."""
    variable: Any
    """An `xarray.Variable` of the values as they are stored."""
    form: Form
    layout: Layout
    given: Any
    """The variable as it was given."""
    attrs: dict[str, Any] = field(default_factory=dict)
    encoding: dict[str, Any] = field(default_factory=dict)
    noted: dict[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions along each dimension."""
        return tuple(self.variable.shape)

    @property
    def is_lazy(self) -> bool:
        """Whether its values are a graph of Dask."""
        return self.variable.chunks is not None

    @property
    def labels_name(self) -> str | None:
        """The dimension whose coordinate it is; None if it is none."""
        return self.name if tuple(self.variable.dims) == (self.name,) else None

    def axis_of(self, dim: Hashable) -> int | None:
        """The axis of a dimension of the Dataset; None if the variable does not have it."""
        return list(self.variable.dims).index(dim) if dim in self.variable.dims else None


def planned(dataset: Any, encoding: Mapping[Any, Any] | None, unlimited: frozenset[Any]) -> list[Planned]:
    """The variables of a Dataset as they are to be written.

    Raises:
        InputError: names, values, attributes or encodings that cannot be stored.
        TypeError: a name that is no text.
        NotImplementedError: a coordinate of an index of several levels.
    """
    given = _encodings(dataset, encoding)
    # Names are checked before values are looked through.
    called = {name: names.array_name(name) for name in dataset.variables}
    _encode_bounds(dataset, given)
    beside = set(dataset.coords) - set(dataset.dims)
    made = []
    for place, (name, variable) in enumerate(dataset.variables.items()):
        asked = given.get(name)
        one = _planned(called[name], name, variable, asked)
        one.noted |= {"place": place} | ({"coordinate": True} if name in beside else {})
        if grows := [dim for dim in variable.dims if dim in unlimited]:
            one.noted["unlimited"] = grows
        one.layout = layout_of(one.shape, one.form, asked, len(grows) > 0)
        made.append(one)
    return made


def _encodings(dataset: Any, encoding: Mapping[Any, Any] | None) -> dict[Any, dict[str, Any]]:
    """The encodings that the caller gives, checked."""
    made: dict[Any, dict[str, Any]] = {}
    for name, given in (encoding or {}).items():
        if name not in dataset.variables:
            raise UnknownVariableError(
                f"encoding= names the variable {brief(name)}, which the Dataset does not have; it has "
                f"{', '.join(map(repr, dataset.variables))}"
            )
        try:
            made[name] = dict(given)
        except (TypeError, ValueError):
            raise InputError(
                f"encoding= of {brief(name)} must be castable to a dictionary, such as {{'dtype': 'int16'}}, found "
                f"{brief(given)}"
            ) from None
        unknown = [key for key in made[name] if key not in _OF_LAYOUT and key not in _OF_VALUES]
        if unknown:
            raise InputError(
                f"unexpected encoding of the variable {brief(name)}: {', '.join(map(repr, unknown))}; there are "
                f"{', '.join(sorted({*_OF_LAYOUT, *_OF_VALUES}))}"
            )
    return made


def _encode_bounds(dataset: Any, given: dict[Any, dict[str, Any]]) -> None:
    """Bounds of times are encoded as these are: a file's decoder takes them to have the same units."""
    for name, asked in list(given.items()):
        variable = dataset.variables[name]
        bounds = variable.attrs.get("bounds", variable.encoding.get("bounds"))
        if "units" in asked and bounds in dataset.variables and bounds not in given:
            given[bounds] = {key: asked[key] for key in ("units", "calendar", "dtype") if key in asked}


def _planned(stored: str, name: Hashable, variable: Any, asked: Mapping[str, Any] | None) -> Planned:
    from xarray.conventions import ensure_not_multiindex

    ensure_not_multiindex(variable, name=name)
    if not isinstance(variable.dtype, np.dtype):
        raise InputError(
            f"variable {name!r} has a type of pandas, {variable.dtype}, which arrays do not have: make objects of it, "
            f"ds[{name!r}].astype(object), or times in UTC without a zone"
        )
    explicit = asked is not None and any(key in _OF_VALUES for key in asked)
    if asked is not None:
        variable = variable.copy(deep=False)
        variable.encoding = dict(asked)
    if explicit or _holds_cftime(name, variable):
        made = _encoded(stored, name, variable)
        if not explicit:
            _check_dates(name, variable, made)
        return made
    return _native(stored, name, variable)


def _holds_cftime(name: Hashable, variable: Any) -> bool:
    """Whether values are dates of a calendar that no type of a store has.

    Raises:
        InputError: dates with missing ones among them, which xarray does not encode.
    """
    if variable.dtype.kind != "O" or variable.size == 0:
        return False
    first = variable[(0,) * variable.ndim].values[()]
    if not _is_cftime(first) and not is_missing(first):
        return False
    values = np.asarray(variable.values).ravel().tolist()
    gap = next((one for one in values if is_missing(one)), _NO_GAP)
    if gap is not _NO_GAP and any(map(_is_cftime, values)):
        raise InputError(
            f"variable {name!r} has dates of cftime and {brief(gap)} among them, for which their encoding has no "
            f"place: fill it, or write numbers with units and a fill value"
        )
    return _is_cftime(first)


_NO_GAP = object()


def _is_cftime(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "cftime"


def _check_dates(name: Hashable, variable: Any, made: Planned) -> None:
    """An `InputError` if xarray's encoder has lost parts of dates, as it does of microseconds many years apart."""
    decoding = {key: made.encoding[key] for key in made.noted["encoded"]}
    dates = np.asarray(variable.values)
    lost = losses(name, variable.dims, dates, made.variable, decoding)
    if lost.any():
        raise InputError(
            f"variable {name!r}: {brief(dates[lost].ravel()[0])} is another date in {decoding['units']!r}, the units "
            f"that xarray finds for it; give others: encoding={{{name!r}: {{'units': …}}}}"
        )


def _native(stored: str, name: Hashable, variable: Any) -> Planned:
    """A variable whose values are stored as they are, with its encoding beside them."""
    data = _looked_through(stored, variable)
    form = form_of(stored, data.data if data.dtype.kind == "T" else data)
    made = Planned(stored, names.dims_in_store(stored, variable.dims), data, form, Layout(), variable)
    made.attrs, types = notes.plain(_with_fill(variable), f"variable {stored!r}")
    kept = notes.storable(_as_texts(_kept(name, data)))
    made.encoding, of_encoding = notes.plain(kept, f"the encoding of {stored!r}")
    made.noted = {**form.noted, **names.noted_dims(stored, variable.dims)}
    _note_types(made, types, of_encoding)
    return made


def _with_fill(variable: Any) -> dict[Any, Any]:
    """The attributes of a variable; a fill value among them has the type of the values, as in files."""
    given, kind = dict(variable.attrs), variable.dtype
    fill = given.get("_FillValue")
    if type(fill) is int and kind.kind in "iu" and np.iinfo(kind).min <= fill <= np.iinfo(kind).max:
        given["_FillValue"] = kind.type(fill)
    return given


def _kept(name: Hashable, variable: Any) -> dict[Any, Any]:
    """The encoding that stays beside a variable."""
    encoding = {key: value for key, value in variable.encoding.items() if key not in _OF_ANOTHER_FILE}
    if str(encoding.get("_Unsigned", "")).lower() == "true" or _is_s1(encoding.get("dtype")):
        # xarray's encoder makes more of these, and mends them: what would come back is kept.
        encoding.update(_through_encoder(name, variable, encoding))
    return {key: value for key, value in encoding.items() if value is not None}


def _is_s1(dtype: Any) -> bool:
    return isinstance(dtype, str | np.dtype) and str(dtype) in ("S1", "|S1")


def _through_encoder(name: Hashable, variable: Any, encoding: Mapping[Any, Any]) -> dict[Any, Any]:
    from xarray import Variable
    from xarray.conventions import encode_cf_variable

    if _is_s1(encoding.get("dtype")):
        return {} if "_Encoding" in encoding or variable.dtype.kind == "S" else {"_Encoding": "utf-8"}
    sample = Variable(("x",), np.zeros((0,), variable.dtype), {}, dict(encoding))
    found = encode_cf_variable(sample, name=name).attrs
    return {key: found[key] for key in encoding if key in found}


def _looked_through(name: str, variable: Any) -> Any:
    """A variable whose objects can be looked at: of a graph of Dask its computed values."""
    if variable.chunks is None or variable.dtype.kind != "O":
        return variable
    from xarray import SerializationWarning

    warnings.warn(
        f"variable {name} has data in the form of a dask array with dtype=object, which is computed and loaded into "
        f"memory, to find what its objects are; convert it before: astype(str)",
        SerializationWarning,
        stacklevel=2,
    )
    made = variable.copy(deep=False, data=np.asarray(variable.data.compute()))
    return made


def _encoded(stored: str, name: Hashable, variable: Any) -> Planned:
    """A variable that xarray's encoder has changed to the form that a file would hold."""
    from xarray.conventions import encode_cf_variable

    from .texts import as_characters

    layout = {key: variable.encoding[key] for key in ("zlib", "complevel", "shuffle") if key in variable.encoding}
    shown, variable = variable, variable.copy(deep=False)
    variable.encoding = {key: value for key, value in variable.encoding.items() if key not in _OF_LAYOUT}
    before = dict(variable.attrs)
    made_of = as_characters(encode_cf_variable(variable, name=name), name)
    data = _looked_through(stored, made_of)
    form = form_of(stored, data.data if data.dtype.kind == "T" else data)
    made = Planned(stored, names.dims_in_store(stored, data.dims), data, form, Layout(), shown)
    made.attrs, types = notes.plain(
        {key: value for key, value in data.attrs.items() if key in before}, f"variable {stored!r}"
    )
    decoding = {key: value for key, value in data.attrs.items() if key not in before}
    left = {
        key: value
        for key, value in data.encoding.items()
        if key not in decoding and key not in ("dtype", *_OF_ANOTHER_FILE) and value is not None
    }
    kept = notes.storable({**left, **layout, **decoding})
    made.encoding, of_encoding = notes.plain(kept, f"the encoding of {stored!r}")
    made.noted = {**form.noted, **names.noted_dims(stored, data.dims)}
    made.noted["encoded"] = [key for key in decoding if key in made.encoding]
    made.form = replace(form, fill=_fill_of(form, decoding))
    _note_types(made, types, of_encoding)
    return made


def _fill_of(form: Form, decoding: Mapping[Any, Any]) -> Any:
    """The integer that stands for missing values in an encoding; None if there is none."""
    fill = decoding.get("_FillValue", decoding.get("missing_value"))
    kind = datatype.numpy_of(form.dtype)
    if kind.kind not in "iu" or not isinstance(fill, int | np.integer):
        return None
    return int(fill) if np.iinfo(kind).min <= fill <= np.iinfo(kind).max else None


def _as_texts(encoding: Mapping[Any, Any]) -> dict[Any, Any]:
    """An encoding whose type is a text."""
    dtype = encoding.get("dtype")
    if dtype is None:
        return {key: value for key, value in encoding.items() if key != "dtype"}
    if isinstance(dtype, type) and issubclass(dtype, str | bytes):
        return {**encoding, "dtype": "str" if issubclass(dtype, str) else "O"}
    try:
        return {**encoding, "dtype": "S1" if _is_s1(dtype) else np.dtype(dtype).str}
    except TypeError:
        return {key: value for key, value in encoding.items() if key != "dtype"}


def _note_types(made: Planned, attrs: notes.Types, encoding: notes.Types) -> None:
    types = {key: value for key, value in (("attrs", attrs), ("encoding", encoding)) if value}
    if types:
        made.noted["types"] = types
