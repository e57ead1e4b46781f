"""Columns of codes: the places of values in the categories of an attribute.

A pandas Categorical or an Arrow dictionary is looked up once per category, all else once per cell.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from . import datatype, decode, values
from .cast import broadcast, checked_validity
from .category import Categories
from .columns import Column, Field
from .datatype import AnyArray

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_of(known: Categories) -> "pa.Array":
    """The values as Arrow has them."""
    from . import arrow_flat

    if "arrow" not in known.conversions:
        plain = Field("categories", known.dtype, False, "attribute")
        known.conversions["arrow"] = arrow_flat.array_of(values.column_of(plain, known.array[: len(known)]))
    return known.conversions["arrow"]


def found_in(known: Categories, entries: Column) -> AnyArray:
    """The code of each value as int64, -1 where it is no category."""
    if len(known) == 0:
        return np.full(len(entries), -1, np.int64)
    if entries.offsets is not None:
        import pyarrow.compute as pc

        from . import arrow_flat

        places = pc.index_in(arrow_flat.array_of(replace(entries, validity=None)), value_set=arrow_of(known))
        return np.asarray(places.fill_null(-1)).astype(np.int64)
    ascending, order = known.ascending
    flat = entries.values.ravel()
    places = np.minimum(np.searchsorted(ascending, flat), len(known) - 1)
    return np.where(ascending[places] == flat, order[places], -1).reshape(entries.values.shape)


def column_of(
    wanted: Field, known: Categories, data: Any, shape: tuple[int, ...] | None, nan_is_null: bool = False
) -> Column:
    """The column of codes that `data` makes: values, a pandas Categorical, an Arrow array with a dictionary or without.

    Raises:
        InputError: a value that is no category, with its row; what `encode.from_values` raises of values.
    """
    if type(data).__name__ == "Categorical" and hasattr(data, "codes"):
        found = _of_pandas(wanted, known, data)
    elif _has_dictionary(data):
        found = _of_dictionary(wanted, known, data)
    else:
        plain = values.column_of(wanted._replace(categories=None), data, shape, nan_is_null)
        return _coded(wanted, known, found_in(known, plain), plain, plain.validity)
    if shape is None:
        return found
    codes = broadcast(wanted.title, found.values, shape)
    valid = None if found.validity is None else broadcast(wanted.title, found.validity, shape)
    return replace(found, values=codes, validity=valid)


def _coded(
    wanted: Field,
    known: Categories,
    places: AnyArray,
    entries: Column,
    valid: AnyArray | None,
    at: AnyArray | None = None,
) -> Column:
    """The column of these codes; `at`: which of `entries` each is, if not its own."""
    flat = None if valid is None else np.asarray(valid).ravel()
    strangers = places.ravel() < 0 if flat is None else (places.ravel() < 0) & flat
    if strangers.any():
        row = int(np.flatnonzero(strangers)[0])
        of = row if at is None else int(at[row])
        cells = decode.cells_of(entries).ravel()
        value: Any = cells[of] if cells.dtype.kind in "OmM" else cells[of].item()
        shown = datatype.show(value, entries.dtype)
        raise InputError(
            f"{wanted.title}, row {row}: {shown} is none of its categories {known.shown()}; write one of these, or add "
            f"it first: a.alter(categories={{{wanted.name!r}: [{shown}]}})"
        )
    codes = np.maximum(places, 0).astype(known.codes)
    return Column(known.codes, codes, None, checked_validity(wanted, valid, codes.shape), categories=known)


def _of_pandas(wanted: Field, known: Categories, data: Any) -> Column:
    codes = np.asarray(data.codes).astype(np.int64)
    plain = wanted._replace(categories=None, nullable=False)
    entries = values.column_of(plain, data.categories.to_numpy(dtype=object))
    return _mapped(wanted, known, entries, codes, codes >= 0)


def _has_dictionary(data: Any) -> bool:
    if type(data).__module__.partition(".")[0] != "pyarrow":
        return False
    import pyarrow as pa

    return isinstance(data, pa.Array | pa.ChunkedArray) and pa.types.is_dictionary(data.type)


def _of_dictionary(wanted: Field, known: Categories, data: Any) -> Column:
    import pyarrow as pa

    from . import arrow_nested, arrow_types

    if isinstance(data, pa.ChunkedArray):
        data = arrow_types.joined(data)
    indices = data.indices
    valid = np.asarray(indices.is_valid())
    plain = arrow_types.undictionaried(data.dictionary)
    entries = arrow_nested.column_of(wanted._replace(categories=None, nullable=True), plain)
    places = np.asarray(indices.fill_null(0)).astype(np.int64)
    if entries.validity is not None and len(entries):  # An entry may itself be null.
        valid = valid & entries.validity[places]
    return _mapped(wanted, known, replace(entries, validity=None), places, valid)


def _mapped(wanted: Field, known: Categories, entries: Column, places: AnyArray, valid: AnyArray) -> Column:
    """Codes of another list of categories, `entries`, as ours."""
    ours = found_in(known, entries)
    safe = np.where(valid, places, 0)
    mapped = ours[safe] if len(ours) else np.zeros(len(places), np.int64)
    return _coded(wanted, known, mapped, entries, None if valid.all() else valid, safe)


def array_of(column: Column) -> "pa.Array":
    """The dictionary array of a flat column, its indices over the same memory."""
    import pyarrow as pa

    from . import arrow_types

    known = column.categories
    assert known is not None
    valid = column.validity
    codes = np.ascontiguousarray(column.values)
    if valid is not None:
        codes = np.where(valid, codes, codes.dtype.type(0))
    known.check(codes if valid is None else codes[valid])
    buffers = [arrow_types.bits(valid), pa.py_buffer(codes)]
    indices = pa.Array.from_buffers(arrow_types.type_of(known.codes), len(codes), buffers)
    return pa.DictionaryArray.from_arrays(indices, arrow_of(known), ordered=known.ordered)


def type_of(known: Categories) -> "pa.DataType":
    """The Arrow type of an enumerated attribute."""
    import pyarrow as pa

    from . import arrow_types

    return pa.dictionary(arrow_types.type_of(known.codes), arrow_types.type_of(known.dtype), known.ordered)


def entries_of(wanted: Field, dictionary: Any) -> list[Any] | None:
    """The entries of an Arrow dictionary that are not null; None if they cannot be categories."""
    from . import arrow_nested, arrow_types

    cells = decode.cells_of(arrow_nested.column_of(wanted, arrow_types.undictionaried(dictionary.drop_null())))
    found = cells.tolist() if cells.dtype.kind not in "mM" else list(cells)
    return None if any(value != value for value in found) else found
