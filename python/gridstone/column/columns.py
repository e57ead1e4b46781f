"""Columns as the core takes and gives them, and what NumPy makes of them.

A `Column` holds the values of one dimension or attribute: for fixed-width types an array of the type's dtype (any
shape; a vector is one element, see `datatype.packed`), for strings, bytes and lists the concatenated bytes with n + 1
offsets. Contiguous arrays of the right dtype go
through without a copy, in both directions; everything else is copied once.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from ..base.printable import brief
from ..errors import InputError
from . import datatype
from .datatype import AnyArray

if TYPE_CHECKING:
    from ..schema.array_schema import Attr
    from .category import Categories


class Field(NamedTuple):
    """What a column must hold."""

    name: str
    dtype: str
    nullable: bool
    kind: str
    """ "attribute" or "dimension", for messages."""
    categories: "Categories | None" = None
    """Those that the values must be of; `dtype` is the type of the values."""

    @property
    def title(self) -> str:
        """The field for messages."""
        return f"{self.kind} {self.name!r}"


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one field. `offsets` only for strings, bytes and lists; `validity` is None or one bool per cell.

    A column that was read is flat; `shape` and `layout` say which array its cells make. Of an enumerated attribute
    `dtype` and `values` are of codes, and `categories` says what these mean.
    """

    dtype: str
    values: AnyArray
    offsets: AnyArray | None = None
    validity: AnyArray | None = None
    shape: tuple[int, ...] | None = None
    layout: str = "row"
    categories: "Categories | None" = None

    def __len__(self) -> int:
        return self.values.size if self.offsets is None else self.offsets.size - 1

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        parts = (self.values, self.offsets, self.validity)
        return sum(part.nbytes for part in parts if part is not None)

    def native(self, layout: str = "row") -> "_native._Column":
        """The buffers for the core, cells in row- or column-major order of the values' shape."""
        order: Any = "F" if layout == "col" else "C"
        values: Any = np.ravel(self.values, order=order).view(np.uint8)
        validity: Any = None if self.validity is None else np.ravel(self.validity, order=order).view(np.uint8)
        offsets: Any = self.offsets
        return values, offsets, validity

    @property
    def cells(self) -> AnyArray:
        """One element per cell; strings, bytes and lists as objects, nulls as whatever stands there."""
        if self.categories is not None:
            return self.categories.decoded(self.values, self.validity)
        return self.values if self.offsets is None else _objects(self)

    def numpy(self) -> AnyArray:
        """The values as one array; masked where null; strings, bytes and lists as an object array. Vectors add their
        axes at the end."""
        cells, mask = self.cells, None if self.validity is None else ~self.validity
        if self.shape is not None:
            order: Any = "F" if self.layout == "col" else "C"
            cells = cells.reshape(self.shape, order=order)
            mask = None if mask is None else mask.reshape(self.shape, order=order)
        return shown(cells, mask)

    def shaped(self, shape: tuple[int, ...], layout: str) -> "Column":
        """The same cells, to be shown as an array of `shape` laid out "row" or "col"."""
        return Column(self.dtype, self.values, self.offsets, self.validity, shape, layout, self.categories)


def shown(cells: AnyArray, mask: AnyArray | None) -> AnyArray:
    """An array of cells as users get it: vectors unpacked, masked where `mask` says so."""
    values = datatype.unpacked(cells)
    if mask is None:
        return values
    if values.ndim > mask.ndim:
        mask = np.broadcast_to(mask.reshape(*mask.shape, *(1,) * (values.ndim - mask.ndim)), values.shape).copy()
    return np.ma.MaskedArray(values, mask=mask)


def one(values: AnyArray) -> Any:
    """An array without axes as its only value (`numpy.ma.masked` where null); others as they are."""
    if values.ndim == 0 and np.ma.isMaskedArray(values) and np.ma.getmaskarray(values):
        return np.ma.masked  # NumPy would give a masked array for a list.
    return values[()]


def one_cell(dtype: str, value: Any) -> AnyArray:
    """A value of the schema (a fill) as an array of one cell without axes."""
    if datatype.is_var(dtype):
        made = np.empty((), object)
        made[()] = np.array(value, datatype.numpy_of(datatype.base_of(dtype))) if datatype.is_list(dtype) else value
        return made
    return datatype.packed(dtype, np.array(value, datatype.numpy_of(dtype)))


def from_native(dtype: str, column: "_native._OutColumn") -> Column:
    """A column over the core's buffers, without a copy; cells in the order they were read in."""
    values, offsets, validity = column
    width = np.dtype(np.uint8) if datatype.is_var(dtype) else datatype.cell_of(dtype)
    return Column(
        dtype,
        _view(values, width),
        None if offsets is None else _view(offsets, np.dtype(np.int64)),
        None if validity is None else _view(validity, np.dtype(np.bool_)),
    )


def of_attr(attr: "Attr", column: "_native._OutColumn") -> Column:
    """The values of an attribute over the core's buffers."""
    known = attr.enumeration
    made = from_native(attr.dtype if known is None else known.codes, column)
    return made if known is None else replace(made, categories=known)


def empty_of(attr: "Attr", shape: tuple[int, ...]) -> Column:
    """No cells of an attribute, shown as an array of `shape`."""
    known = attr.enumeration
    made = empty(attr.dtype if known is None else known.codes, shape, attr.nullable)
    return made if known is None else replace(made, categories=known)


def empty(dtype: str, shape: tuple[int, ...], nullable: bool) -> Column:
    """A column of no cells, shown as an array of `shape`."""
    validity = np.ones(0, np.bool_) if nullable else None
    if datatype.is_var(dtype):
        return Column(dtype, np.empty(0, np.uint8), np.zeros(1, np.int64), validity, shape)
    return Column(dtype, np.empty(0, datatype.cell_of(dtype)), None, validity, shape)


def joined(runs: "list[Column]") -> Column:
    """Flat columns of one type, one behind the other."""
    first = runs[0]
    values = np.concatenate([run.values for run in runs])
    validity = None
    if any(run.validity is not None for run in runs):
        validity = np.concatenate(
            [np.ones(len(run), np.bool_) if run.validity is None else run.validity for run in runs]
        )
    if first.offsets is None:
        return Column(first.dtype, values, None, validity, categories=first.categories)
    before, parts = 0, [np.zeros(1, np.int64)]
    for run in runs:
        if run.offsets is not None:
            parts.append(run.offsets[1:] + before)
            before += run.values.size
    return Column(first.dtype, values, np.concatenate(parts), validity)


def picked(column: Column, rows: AnyArray) -> Column:
    """The cells of a flat column for which `rows` (one bool per cell) is true."""
    validity = None if column.validity is None else column.validity[rows]
    if column.offsets is None:
        return replace(column, values=column.values[rows], validity=validity)
    lengths, (first, last) = np.diff(column.offsets), (column.offsets[0], column.offsets[-1])
    values = column.values[first:last][np.repeat(rows, lengths)]
    offsets = np.zeros(int(rows.sum()) + 1, column.offsets.dtype)
    np.cumsum(lengths[rows], out=offsets[1:])
    return replace(column, values=values, offsets=offsets, validity=validity)


def _view(buffer: Any, dtype: np.dtype[Any]) -> AnyArray:
    if len(buffer) == 0:
        return np.empty(0, dtype)
    ticks = dtype.kind in "mM"
    made: AnyArray = np.frombuffer(buffer, np.int64 if ticks else dtype)
    return made.view(dtype) if ticks else made


def _objects(column: Column) -> AnyArray:
    """Strings, bytes or lists as a flat object array."""
    from . import arrow, nested

    if datatype.is_list(column.dtype):
        return nested.objects(column)
    flat: AnyArray = arrow.array_of(replace(column, validity=None)).to_numpy(zero_copy_only=False)
    return flat


def from_values(field: Field, data: Any, shape: tuple[int, ...] | None = None, *, nan_is_null: bool = False) -> Column:
    """The column that `data` makes for `field`.

    Args:
        field: what is expected.
        data: an array, masked array, sequence or scalar; an Arrow array; None or NaT for null where nullable.
        shape: broadcast to this shape as NumPy's assignment does.
        nan_is_null: take NaN as null in a nullable field (what pandas means by it).

    Raises:
        InputError: the type does not fit without loss, a null where none may be, or shapes that do not broadcast.
    """
    if _is_series(data):
        from . import pandas

        return _shaped(field, pandas.column_of(field, data), shape)
    if field.categories is not None:
        from . import category

        return category.column_of(field, field.categories, data, shape, nan_is_null)
    if _is_arrow(data):
        from . import arrow

        return _shaped(field, arrow.column_of(field, data), shape)
    if datatype.is_list(field.dtype):
        from . import nested

        return nested.lists(field, data, shape)
    array, valid = _cells(field, data, nan_is_null)
    if shape is not None:
        array = broadcast(field.title, array, shape)
        valid = None if valid is None else broadcast(field.title, valid, shape)
    if datatype.is_var(field.dtype):
        return _encode_var(field, array, valid)
    return Column(field.dtype, array, None, checked_validity(field, valid, array.shape))


def _shaped(field: Field, made: Column, shape: tuple[int, ...] | None) -> Column:
    """The cells of a flat column broadcast to `shape`."""
    if shape is None or shape == (len(made),):
        return made
    if made.offsets is not None:
        cells = _objects(made)
        if made.validity is not None:
            cells = cells.copy()
            cells[~made.validity] = None
        return from_values(field, cells, shape)
    valid = None if made.validity is None else broadcast(field.title, made.validity, shape)
    return replace(made, values=broadcast(field.title, made.values, shape), validity=valid)


def _cells(field: Field, data: Any, nan_is_null: bool) -> tuple[AnyArray, AnyArray | None]:
    """One element per cell, and the cells that are not null."""
    if datatype.is_fixed_bytes(field.dtype):
        from . import nested

        return nested.fixed_bytes(field, data)
    if datatype.shape_of(field.dtype):
        from . import nested

        return nested.vectors(field, data)
    return _plain(field, data, nan_is_null)


def cells_shape(field: Field, data: Any) -> tuple[int, ...]:
    """The shape of the cells that `data` has values for; () for a single value."""
    if datatype.is_list(field.dtype):
        from . import nested

        return tuple(nested.lists_of(data).shape)
    found: tuple[int, ...] = np.shape(data)
    return found[: max(len(found) - len(datatype.shape_of(field.dtype)), 0)]


def _is_series(data: Any) -> bool:
    """Whether these are the values of a pandas Series or flat Index."""
    kind = type(data)
    named = kind.__name__ == "Series" or (kind.__name__.endswith("Index") and kind.__name__ != "MultiIndex")
    return named and kind.__module__.partition(".")[0] == "pandas"


def _is_arrow(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "pyarrow" or (
        hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    )


def _plain(field: Field, data: Any, nan_is_null: bool) -> tuple[AnyArray, AnyArray | None]:
    """The values as an array of the field's dtype (objects for strings and bytes) and the cells that are not null."""
    valid: AnyArray | None = None
    if isinstance(data, np.ma.MaskedArray):
        if data.mask is not np.ma.nomask:
            valid = ~np.ma.getmaskarray(data)
            data = data.filled(data.dtype.type()) if data.dtype.kind not in "OT" else data.data
        else:
            data = data.data
    array = _as_array(field, data)
    if array.dtype.kind == "O" and not datatype.is_var(field.dtype):
        array, missing = _typed_objects(field, array)
        valid = missing if valid is None else valid & missing
    if nan_is_null and field.nullable and array.dtype.kind in "fcmM":
        nan = np.isnan(array) if array.dtype.kind in "fc" else np.isnat(array)
        valid = ~nan if valid is None else valid & ~nan
    if datatype.is_var(field.dtype):
        return array, valid
    return cast(field, array, valid), valid


def _as_array(field: Field, data: Any) -> AnyArray:
    if isinstance(data, np.ndarray):
        return data.astype(object) if data.dtype.kind == "T" else data
    try:
        found = np.asarray(data)
    except ValueError as error:
        raise InputError(f"{field.title}: the values make no array: {error}") from error
    if found.size == 0 and isinstance(data, list | tuple):  # NumPy takes it for floats.
        return np.empty(found.shape, datatype.numpy_of(field.dtype))
    if datatype.is_var(field.dtype) or found.dtype.kind in "US":
        # NumPy would turn None into "None" and cut trailing zeros of bytes.
        return _object_array(data)
    return found


def _object_array(data: Any) -> AnyArray:
    if isinstance(data, str | bytes | bytearray) or not hasattr(data, "__len__"):
        scalar = np.empty((), object)
        scalar[()] = data
        return scalar
    if any(isinstance(item, list | tuple | np.ndarray) for item in data):
        return np.array(data, dtype=object)
    flat = np.empty(len(data), object)
    flat[:] = list(data)
    return flat


def is_missing(value: Any) -> bool:
    """Whether a Python object stands for null: None, pandas' NA, NaT, or a NaN among objects."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _typed_objects(field: Field, array: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Objects as an array that NumPy has a type for, and which of them are not null."""
    present = np.array([not is_missing(v) for v in array.ravel()], np.bool_).reshape(array.shape)
    target = datatype.numpy_of(field.dtype)
    values = [v for v in array.ravel().tolist() if not is_missing(v)]
    try:
        if target.kind in "mM":
            found = np.array([datatype.scalar(field.dtype, v, field.title) for v in values], target)
        elif target.kind in "iu" and all(_is_whole(v) for v in values):
            found = _whole(values, target)
        else:
            found = np.array(values, None if values else target)
    except ValueError as error:
        raise InputError(f"{field.title} is {field.dtype}: {error}") from error
    if found.ndim != 1 or found.dtype.kind in "OUS":
        raise InputError(f"{field.title} is {field.dtype}: {_first_stranger(array)}")
    made = np.zeros(array.shape, found.dtype)
    made[present] = found
    return made, present


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _whole(values: list[Any], target: np.dtype[Any]) -> AnyArray:
    """Integers as `target`; as NumPy takes them where one does not fit. NumPy makes floats of small and very large ones
    together, which would lose digits.
    """
    try:
        return np.array([int(value) for value in values], target)
    except OverflowError:
        return np.array(values)


def _first_stranger(array: AnyArray) -> str:
    for row, value in enumerate(array.ravel().tolist()):
        if not is_missing(value) and not isinstance(value, bool | int | float | complex | np.generic):
            return f"found {brief(value)} ({type(value).__name__}) in row {row}"
    return "found values of several shapes"


def cast(field: Field, array: AnyArray, valid: AnyArray | None = None) -> AnyArray:
    """`array` in the field's dtype and native byte order. Values must survive it, except that floats may be rounded to
    a narrower float; else an `InputError` names the first value that does not.
    """
    target = datatype.numpy_of(field.dtype)
    source = array.dtype
    if source.newbyteorder("=") == target:
        return array.astype(target, copy=False)
    kinds = (source.kind, target.kind)
    time = target.kind in "mM"
    if source.kind == "U" and time:
        made = _parse_times(field, array, target)
    elif kinds in (("i", "M"), ("i", "m"), ("M", "M"), ("m", "m")) or (
        source.kind in "iufc" and target.kind in ("iuf" if source.kind != "c" else "") + "c"
    ):
        with np.errstate(all="ignore"):
            made = array.astype(target)
            lost = _lost(array, made)
        if valid is not None:
            lost &= valid
        if lost.any():
            raise InputError(_loss(field, array, lost))
    else:
        raise InputError(
            f"{field.title} is {field.dtype}, found {source.name}; convert the values with .astype({field.dtype!r})"
        )
    return made


def _lost(array: AnyArray, made: AnyArray) -> AnyArray:
    """Which values did not survive."""
    source, target = array.dtype, made.dtype
    if target.kind == "c":
        parts = [array.real, array.imag] if source.kind == "c" else [array]
        lost: AnyArray = np.zeros(array.shape, np.bool_)
        for given, part in zip(parts, (made.real, made.imag), strict=False):
            lost |= _lost(given, part)
    elif source.kind == "f" and target.kind == "f":
        lost = np.isinf(made) & ~np.isinf(array)
    elif source.kind in "iu" and target.kind in "iu":
        info = np.iinfo(target)
        lost = np.zeros(array.shape, np.bool_)
        if np.iinfo(source).min < info.min:
            lost |= array < max(info.min, np.iinfo(source).min)
        if np.iinfo(source).max > info.max:
            lost |= array > info.max
    elif source.kind == "f":
        info = np.iinfo(target)
        lost = ~((array >= float(info.min)) & (array < float(info.max) + 1)) | (np.trunc(array) != array)
    elif source.kind in "mM":
        lost = (made.astype(source) != array) & ~np.isnat(array)
    elif np.can_cast(source, target) and source.itemsize < 8:
        lost = np.zeros(array.shape, np.bool_)
    else:
        lost = (made.astype(source) if target.kind != "f" else _back(made, source)) != array
    return lost


def _back(made: AnyArray, source: np.dtype[Any]) -> AnyArray:
    """Floats as integers again; those beyond the type's range as its least value, which they cannot have come from."""
    inside = made < float(np.iinfo(source).max)
    back = np.where(inside, made, 0).astype(source)
    return np.where(inside, back, np.iinfo(source).min)


def _loss(field: Field, array: AnyArray, lost: AnyArray) -> str:
    flat = int(np.flatnonzero(lost)[0])
    place = (
        f"row {flat}" if array.ndim < 2 else f"position {tuple(int(i) for i in np.unravel_index(flat, array.shape))}"
    )
    value = array.ravel()[flat].item() if array.dtype.kind not in "mM" else str(array.ravel()[flat])
    return (
        f"{field.title} is {field.dtype}, found {array.dtype.name} with {brief(value)} at {place}, "
        f"which {field.dtype} cannot hold; convert the values first"
    )


def _parse_times(field: Field, array: AnyArray, target: np.dtype[Any]) -> AnyArray:
    values = [datatype.scalar(field.dtype, text, f"{field.title}, row {row}") for row, text in enumerate(array.ravel())]
    return np.array(values, target).reshape(array.shape)


def broadcast(title: str, array: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """`array` repeated to `shape` by NumPy's rules of assignment (leading axes of length 1 may be dropped)."""
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0, ...]
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise InputError(f"{title}: values of shape {array.shape} do not fit the selection's shape {shape}") from None


def checked_validity(field: Field, valid: AnyArray | None, shape: tuple[int, ...]) -> AnyArray | None:
    """The validity of a nullable field; None where all cells are valid. Null in any other field is an error."""
    if valid is None or bool(valid.all()):
        return None
    if not field.nullable:
        row = int(np.flatnonzero(~valid)[0])
        raise InputError(f"{field.title} is not nullable, but row {row} is null; drop the row or fill it")
    return np.broadcast_to(valid, shape)


def _encode_var(field: Field, array: AnyArray, valid: AnyArray | None) -> Column:
    """Strings or bytes packed end to end."""
    from . import arrow

    flat = np.ravel(array)
    if flat.dtype.kind in "US" and flat.dtype.kind != ("U" if field.dtype == "string" else "S"):
        raise InputError(f"{field.title} is {field.dtype}, found {flat.dtype.name}")
    if flat.dtype.kind not in "OUS":
        raise InputError(f"{field.title} is {field.dtype}, found {flat.dtype.name}; make the values str or bytes first")
    if valid is not None:
        flat = flat.astype(object)
        flat[~np.ravel(valid)] = None
    packed = arrow.pack(field, flat)
    checked_validity(field, packed.validity, (len(packed),))
    return packed
