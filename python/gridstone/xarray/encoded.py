"""Values in the form that an array holds them in already: of one that was encoded, with the same encoding."""

from dataclasses import replace
from typing import Any

from ..arrays.array import Array
from ..column import datatype
from ..errors import InputError
from . import faithful, notes
from .dataset import Decoding, _encoding, content_of
from .form import Form
from .plan import Planned


def as_stored(array: Array, one: Planned, widens: bool = False) -> Planned:
    """A variable as its array takes it. `widens`: the caller notes the width of longer texts.

    Raises:
        InputError: an array of several attributes, values that its encoding cannot have, or texts longer than those of
            a fixed width.
    """
    if len(array.schema_names) != 1:
        raise InputError(
            f"{array.path!r} has the attributes {', '.join(map(repr, array.schema_names))}; a variable is written to "
            f"an array of one: write to it with gridstone.open"
        )
    attr = array.schema.attrs[0]
    meta = array[attr.name].meta
    noted = meta.get(notes.KEY) or {}
    form = Form(attr.dtype, attr.nullable, one.form.noted)
    if not widens:
        _check_width(one, noted.get("dtype"))
    if "encoded" not in noted:
        if "encoded" in one.noted:
            raise InputError(
                f"{one.name!r} has an encoding, as dates of other calendars do, and its array holds plain values of "
                f"{attr.dtype}; write it without encoding=, and such dates as datetime64"
            )
        return replace(one, form=form)
    is_number = datatype.numpy_of(attr.dtype).kind in "iuf"
    if "encoded" in one.noted and one.encoding == meta.get("encoding") and not is_number:
        return replace(one, form=form)
    return replace(one, form=form, variable=_with_encoding(array, one, noted))


def _check_width(one: Planned, noted: Any) -> None:
    """An `InputError` for texts longer than the width that is noted: blocks of Dask would be cut to it."""
    if not isinstance(noted, str) or not noted.startswith("U"):
        return
    width, given = int(noted[1:]), one.variable
    longest = given.dtype.itemsize // 4 if given.dtype.kind == "U" else width + 1
    if longest > width and not one.is_lazy:
        longest = max((len(text) for text in given.values.ravel().tolist() if isinstance(text, str)), default=0)
    if longest > width:
        raise InputError(
            f"{one.name!r}: its texts may be longer than those of the group, which have {width} characters at most; "
            f"shorten them with astype('U{width}'), or write the variable anew, mode=\"a\""
        )


def decoded(array: Array, name: str) -> Any:
    """The variable in an array as a Dataset shows it."""
    from xarray.conventions import decode_cf_variable

    found = content_of(array, Decoding(), (), False).variables
    return decode_cf_variable(name, found[array.schema_names[0] if name not in found else name])


def shown(one: Planned) -> Any:
    """The values of a variable that was encoded as a Dataset shows them."""
    from xarray import Variable
    from xarray.conventions import decode_cf_variable

    variable = Variable(one.variable.dims, one.variable.values, dict(one.variable.attrs))
    return decode_cf_variable(one.name, variable).values


def _with_encoding(array: Array, one: Planned, noted: Any) -> Any:
    from xarray import Variable
    from xarray.conventions import decode_cf_variable

    attr = array.schema.attrs[0]
    given = one.variable
    if "encoded" in one.noted and given.dims == one.given.dims:
        # What the caller's own encoding has changed does not count.
        given = one.given
    elif "encoded" in one.noted:
        attrs = notes.typed(one.encoding, one.noted.get("types", {}).get("encoding"))
        given = decode_cf_variable(one.name, Variable(given.dims, given.data, attrs))
    encoding = _encoding(array[attr.name].meta.get("encoding"), noted.get("types", {}).get("encoding"))
    decoding = {key: encoding[key] for key in noted["encoded"] if key in encoding}
    wanted = {**decoding, "dtype": datatype.numpy_of(attr.dtype)}
    return faithful.encoded(one.name, given, wanted, decoding)
