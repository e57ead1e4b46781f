"""Enumerated attributes: a list of categories in the schema, and their places in it, the *codes*, in the cells.

The core stores and reads codes, an ordinary column of unsigned integers. Here they become values and back: once per
category where what is written is a pandas Categorical or an Arrow dictionary, else once per cell.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.printable import brief
from ..errors import CorruptionError, InputError, SchemaError
from . import columns, datatype
from .columns import Column, Field
from .datatype import AnyArray, Value

if TYPE_CHECKING:
    import pyarrow as pa

    from ..schema.array_schema import Attr

_SHOWN = 20
COUNT_MAX = 1 << 16
"""Categories of an attribute at most, as in the core."""
BYTES_MAX = 1 << 20
"""Bytes of the categories of an attribute together at most."""


@dataclass(frozen=True)
class Categories:
    """The categories of an attribute, by code."""

    dtype: str
    """The type of the values."""
    values: tuple[Value, ...]
    ordered: bool
    codes: str
    """The type of the codes."""

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def array(self) -> AnyArray:
        """The values as NumPy has them; where there is none yet, one that nobody may look at."""
        made = np.empty(max(len(self), 1), datatype.numpy_of(self.dtype))
        made[:] = list(self.values) or [datatype.default_fill(self.dtype)]
        return made

    @cached_property
    def arrow(self) -> "pa.Array":
        """The values as Arrow has them."""
        from . import arrow

        plain = Field("categories", self.dtype, False, "attribute")
        return arrow.array_of(columns.from_values(plain, self.array[: len(self)]))

    @cached_property
    def _sorted(self) -> tuple[AnyArray, AnyArray]:
        """Numbers or times in ascending order, and the code of each."""
        order = np.argsort(self.array[: len(self)])
        return self.array[order], order

    def decoded(self, codes: AnyArray, valid: AnyArray | None) -> AnyArray:
        """The values of codes; of those that are not valid, any."""
        if valid is not None:
            codes = np.where(valid, codes, codes.dtype.type(0))
        self.check(codes if valid is None else codes[valid])
        return self.array[codes]

    def check(self, codes: AnyArray) -> None:
        """A `CorruptionError` if a code that was read is that of no category."""
        if codes.size and int(codes.max()) >= len(self):
            raise CorruptionError(
                f"a cell has the code {int(codes.max())}, the attribute has {len(self)} categories: what is stored is "
                f"not what was written; a.verify() says where"
            )

    def found(self, values: Column) -> AnyArray:
        """The code of each value as int64, -1 where it is no category."""
        if len(self) == 0:
            return np.full(len(values), -1, np.int64)
        if values.offsets is not None:
            import pyarrow.compute as pc

            from . import arrow

            places = pc.index_in(arrow.array_of(replace(values, validity=None)), value_set=self.arrow)
            return np.asarray(places.fill_null(-1)).astype(np.int64)
        ascending, order = self._sorted
        flat = values.values.ravel()
        places = np.minimum(np.searchsorted(ascending, flat), len(self) - 1)
        return np.where(ascending[places] == flat, order[places], -1).reshape(values.values.shape)

    def shown(self) -> str:
        """The categories for messages and tables."""
        sign = " < " if self.ordered else ", "
        some = [datatype.show(value, self.dtype) for value in self.values[:_SHOWN]]
        return sign.join([*some, f"… ({len(self)})"] if len(self) > _SHOWN else some)

    def to_json(self) -> str:
        """All of it as text, for the metadata of Arrow fields."""
        texts = [datatype.to_text(self.dtype, value) for value in self.values]
        return json.dumps({"categories": texts, "ordered": self.ordered, "codes": self.codes})


def codes_type(count: int) -> str:
    """The least type of codes with room for as many categories again, as the core chooses it."""
    return "uint8" if count <= 1 << 7 else "uint16" if count <= 1 << 15 else "uint32"


def made(what: str, dtype: str, given: Iterable[Any], ordered: bool, codes: Any) -> Categories:
    """The categories that a caller gave, for an attribute whose values are of `dtype`."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise SchemaError(f"{what}: categories are a list of values, not {brief(given)}")
    values = tuple(datatype.scalar(dtype, value, f"{what}: a category") for value in given)
    kind = codes_type(len(values)) if codes is None else datatype.parse(codes)
    return Categories(dtype, values, bool(ordered), kind)


def texts(attr: "Attr", given: Any) -> list[str]:
    """Categories to be added to an attribute, as the core takes them."""
    what = f"attribute {attr.name!r}: a category"
    several = given if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]
    return [datatype.to_text(attr.dtype, datatype.scalar(attr.dtype, value, what)) for value in several]


def told(dtype: str, text: bytes) -> dict[str, Any]:
    """The mirror of `Categories.to_json`, as arguments of `Attr`."""
    known = json.loads(text)
    return {**known, "categories": [datatype.from_text(dtype, value) for value in known["categories"]]}


# Writing.


def column_of(
    wanted: Field, known: Categories, data: Any, shape: tuple[int, ...] | None, nan_is_null: bool = False
) -> Column:
    """The column of codes that `data` makes: values, a pandas Categorical, an Arrow array with a dictionary or without.

    Raises:
        InputError: a value that is no category, with its row; what `columns.from_values` raises of values.
    """
    if type(data).__name__ == "Categorical" and hasattr(data, "codes"):
        found = _of_pandas(wanted, known, data)
    elif _has_dictionary(data):
        found = _of_dictionary(wanted, known, data)
    else:
        plain = columns.from_values(wanted._replace(categories=None), data, shape, nan_is_null=nan_is_null)
        return _coded(wanted, known, known.found(plain), plain, plain.validity)
    if shape is None:
        return found
    values = columns.broadcast(wanted.title, found.values, shape)
    valid = None if found.validity is None else columns.broadcast(wanted.title, found.validity, shape)
    return replace(found, values=values, validity=valid)


def _coded(
    wanted: Field,
    known: Categories,
    places: AnyArray,
    values: Column,
    valid: AnyArray | None,
    at: AnyArray | None = None,
) -> Column:
    """The column of these codes; `at`: which of `values` each is, if not its own."""
    flat = None if valid is None else np.asarray(valid).ravel()
    strangers = places.ravel() < 0 if flat is None else (places.ravel() < 0) & flat
    if strangers.any():
        row = int(np.flatnonzero(strangers)[0])
        of = row if at is None else int(at[row])
        cells = values.cells.ravel()
        value: Any = cells[of] if cells.dtype.kind in "OmM" else cells[of].item()
        shown = datatype.show(value, values.dtype)
        raise InputError(
            f"{wanted.title}, row {row}: {shown} is none of its categories {known.shown()}; write one of these, or add "
            f"it first: a.alter(categories={{{wanted.name!r}: [{shown}]}})"
        )
    codes = np.maximum(places, 0).astype(known.codes)
    return Column(known.codes, codes, None, columns.checked_validity(wanted, valid, codes.shape), categories=known)


def _of_pandas(wanted: Field, known: Categories, data: Any) -> Column:
    codes = np.asarray(data.codes).astype(np.int64)
    plain = wanted._replace(categories=None, nullable=False)
    values = columns.from_values(plain, data.categories.to_numpy(dtype=object))
    return _mapped(wanted, known, values, codes, codes >= 0)


def _has_dictionary(data: Any) -> bool:
    if type(data).__module__.partition(".")[0] != "pyarrow":
        return False
    import pyarrow as pa

    return isinstance(data, pa.Array | pa.ChunkedArray) and pa.types.is_dictionary(data.type)


def _of_dictionary(wanted: Field, known: Categories, data: Any) -> Column:
    import pyarrow as pa

    from . import arrow

    if isinstance(data, pa.ChunkedArray):
        data = arrow.joined(data)
    indices = data.indices
    valid = np.asarray(indices.is_valid())
    entries = arrow.column_of(wanted._replace(categories=None, nullable=True), arrow.undictionaried(data.dictionary))
    places = np.asarray(indices.fill_null(0)).astype(np.int64)
    if entries.validity is not None and len(entries):  # An entry may itself be null.
        valid = valid & entries.validity[places]
    return _mapped(wanted, known, replace(entries, validity=None), places, valid)


def _mapped(wanted: Field, known: Categories, entries: Column, places: AnyArray, valid: AnyArray) -> Column:
    """Codes of another list of categories, `entries`, as ours."""
    ours = known.found(entries)
    safe = np.where(valid, places, 0)
    mapped = ours[safe] if len(ours) else np.zeros(len(places), np.int64)
    return _coded(wanted, known, mapped, entries, None if valid.all() else valid, safe)


# Arrow.


def array_of(column: Column) -> "pa.Array":
    """The dictionary array of a flat column, its indices over the same memory."""
    import pyarrow as pa

    from . import arrow

    known = column.categories
    assert known is not None
    valid = column.validity
    codes = np.ascontiguousarray(column.values)
    if valid is not None:
        codes = np.where(valid, codes, codes.dtype.type(0))
    known.check(codes if valid is None else codes[valid])
    buffers = [arrow.bits(valid), pa.py_buffer(codes)]
    indices = pa.Array.from_buffers(arrow.type_of(known.codes), len(codes), buffers)
    return pa.DictionaryArray.from_arrays(indices, known.arrow, ordered=known.ordered)


def type_of(known: Categories) -> "pa.DataType":
    """The Arrow type of an enumerated attribute."""
    import pyarrow as pa

    from . import arrow

    return pa.dictionary(arrow.type_of(known.codes), arrow.type_of(known.dtype), known.ordered)


def may_be(dtype: str) -> bool:
    """Whether values of this type may be categories."""
    return dtype in ("string", "bytes") or (datatype.is_primitive(dtype) and not datatype.is_complex(dtype))


def entries_of(wanted: Field, dictionary: Any) -> list[Any] | None:
    """The entries of an Arrow dictionary that are not null; None if they cannot be categories."""
    from . import arrow

    made = arrow.column_of(wanted, arrow.undictionaried(dictionary.drop_null()))
    found = made.cells.tolist() if made.cells.dtype.kind not in "mM" else list(made.cells)
    return None if any(value != value for value in found) else found


def gathered(kept: list[Any], entries: list[Any]) -> list[Any] | None:
    """The entries that are no category yet, behind those that are; None if these are too many for a schema."""
    seen = set(kept)
    made = kept + [value for value in dict.fromkeys(entries) if value not in seen]
    return made if len(made) <= COUNT_MAX and sum(map(_size, made)) <= BYTES_MAX else None


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes) else 8


def in_order(kept: list[Any], entries: list[Any]) -> bool:
    """Whether two lists of ordered categories do not contradict each other: one begins with the other."""
    count = min(len(kept), len(entries))
    return kept[:count] == entries[:count]
