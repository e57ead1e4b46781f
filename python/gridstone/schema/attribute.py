"""Attributes: names and types of values, fills, filters, categories."""

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..base.arguments import checked, flag, is_iterable, label, several
from ..base.printable import brief
from ..column import datatype
from ..column.category import Categories, codes_type
from ..column.category import made as enumerated
from ..column.datatype import Value
from ..errors import SchemaError
from .filters import Filters, check_filters, rounding_first
from .frozen import Frozen

_VALUE_BYTES_MAX = 65_536


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def sides(what: str, value: Any) -> None:
    """The shape of a vector: one side, or several."""
    if not _is_whole(value):
        several(what, value)


class Attr(Frozen):
    """An attribute: one value per cell.

    Args:
        name: unique among the dimensions and attributes of an array.
        dtype: bool, (u)int8 to (u)int64, float16, float32, float64, complex64, complex128, datetime64[unit],
            timedelta64[unit], string, bytes, bytes[length] (or NumPy's "S10"); a vector of any of these but strings and
            bytes, such as "uint8[3]", or a list such as "list[int32]". Times may count several units: "datetime64[6h]".
        nullable: whether a cell's value may be null.
        fill: what an unwritten dense cell reads as; None: 0, "", NaT, a list of nothing. Nullable attributes read as
            null there.
        filters: "auto", a name with an optional level ("zstd:3"), or a list of them (["delta", "zstd"]). For floats,
            "bitround:N" in front of them ("bitround:7" alone: in front of "auto") keeps N bits of the mantissa: values
            are rounded when they are written, for good.
        var: True: a value is a list of any number of `dtype`. (Strings and bytes are variable-length without it.)
        shape: a value is a vector of this shape, (3,) or 3 say, of `dtype`; at most 4 axes and 65,536 bytes.
        categories: the values that there may be, of `dtype` (strings, bytes, numbers, booleans, times): the attribute
            is *enumerated*, and cells hold small codes. `Array.alter` adds more of them. The fill is the first one
            unless given; with none yet the attribute must be nullable.
        ordered: categories are less and greater by their places; else by what they are.
        codes: the type of the codes, "uint8", "uint16" or "uint32", which cannot change; None: the least with room for
            as many categories again.

    Example:
        >>> gs.Attr("sog", "float32", nullable=True, filters="zstd:5").dtype
        'float32'
        >>> gs.Attr("status", "string", categories=["moored", "under way"]).fill
        'moored'
    """

    __slots__ = ("dtype", "enumeration", "fill", "filters", "name", "nullable")
    name: str
    dtype: str
    nullable: bool
    fill: Value
    filters: str
    enumeration: Categories | None

    @checked(name=label, nullable=flag, var=flag, ordered=flag, shape=sides)
    def __init__(
        self,
        name: str,
        dtype: Any,
        *,
        nullable: bool = False,
        fill: Any = None,
        filters: Filters = "auto",
        var: bool = False,
        shape: int | tuple[int, ...] = (),
        categories: Iterable[Any] | None = None,
        ordered: bool = False,
        codes: Any = None,
    ) -> None:
        kind = datatype.parse(dtype)
        what = f"attribute {name!r}"
        try:
            if inner := _sides(shape):
                kind = datatype.shaped(kind, inner)
            if var and not datatype.is_var(kind):
                kind = datatype.list_of(kind)
        except SchemaError as error:
            raise SchemaError(f"{what}: {error}") from None
        known = None if categories is None else enumerated(what, kind, categories, ordered, codes)
        if known is None and (ordered or codes is not None):
            raise SchemaError(f"{what}: ordered= and codes= are for attributes with categories=")
        blank = known.values[0] if known is not None and known.values else datatype.default_fill(kind)
        value = blank if fill is None else datatype.scalar(kind, fill, f"{what}: the fill")
        self._put(name=str(name), dtype=kind, nullable=bool(nullable), fill=value, filters=rounding_first(filters))
        self._put(enumeration=known)
        check_filters(what, self.filters)

    @property
    def categories(self) -> tuple[Value, ...] | None:
        """The values that there may be, by code; None: any of the type."""
        return None if self.enumeration is None else self.enumeration.values

    @property
    def ordered(self) -> bool:
        """Whether categories are less and greater by their places."""
        return self.enumeration is not None and self.enumeration.ordered

    @property
    def codes(self) -> str | None:
        """The type of the codes of categories."""
        return None if self.enumeration is None else self.enumeration.codes

    @property
    def described(self) -> str:
        """Type and categories, for people."""
        known = self.enumeration
        return self.dtype if known is None else f"{self.dtype} in {'order ' if known.ordered else ''}({known.shown()})"

    @property
    def lossy(self) -> bool:
        """Whether what is written is rounded ("bitround" among the filters)."""
        return self.filters.startswith("bitround:")

    @property
    def var(self) -> bool:
        """Whether values vary in length."""
        return datatype.is_var(self.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value: () but for vectors."""
        return datatype.shape_of(self.dtype)

    def _json(self) -> dict[str, Any]:
        known = self.enumeration
        made = {
            "name": self.name,
            "dtype": self.dtype,
            "nullable": self.nullable,
            "fill": None if known is not None and not known.values else datatype.to_text(self.dtype, self.fill),
            "filters": self.filters,
        }
        return made if known is None else {**made, **json.loads(known.to_json())}

    def __reduce__(self) -> tuple[Any, ...]:
        return attr_of, (self._json(),)

    def __repr__(self) -> str:
        parts = [repr(self.name), repr(self.dtype)]
        if self.nullable:
            parts.append("nullable=True")
        known = self.enumeration
        if known is not None:
            parts.append(f"categories=[{', '.join(datatype.show(value, self.dtype) for value in known.values)}]")
            parts += ["ordered=True"] if known.ordered else []
            parts += [f"codes={known.codes!r}"] if known.codes != codes_type(len(known)) else []
        blank = known.values[0] if known is not None and known.values else datatype.default_fill(self.dtype)
        if repr(self.fill) != repr(blank):
            parts.append(f"fill={datatype.show(self.fill, self.dtype)}")
        if self.filters != "auto":
            parts.append(f"filters={self.filters!r}")
        return f"Attr({', '.join(parts)})"


def _sides(shape: Any) -> tuple[int, ...]:
    shape = (shape,) if _is_whole(shape) else tuple(shape)
    if not all(isinstance(side, int | np.integer) and not isinstance(side, bool) and side > 0 for side in shape):
        raise SchemaError(f"the shape of a vector is a tuple of positive integers, not {brief(shape)}")
    sides = tuple(int(side) for side in shape)
    # The core looks at the bytes; its fill, which has all of these values, must not be made before.
    if math.prod(sides) > _VALUE_BYTES_MAX:
        raise SchemaError(
            f"a vector of shape {brief(sides)} is too long: a value of fixed width takes {_VALUE_BYTES_MAX} bytes at "
            f"most; use a list, or a dimension more"
        )
    return sides


def attr_of(found: dict[str, Any]) -> Attr:
    """The attribute of the JSON form that the core has written, or one that was checked; it is not checked again."""
    made, kind, text = Attr.__new__(Attr), found["dtype"], found["fill"]
    known = None
    if "categories" in found:
        values = [datatype.from_text(kind, value) for value in found["categories"]]
        known = enumerated(f"attribute {found['name']!r}", kind, values, found["ordered"], found["codes"])
    fill = datatype.default_fill(kind) if text is None else datatype.from_text(kind, text)
    filters = rounding_first(found["filters"])
    made._put(name=found["name"], dtype=kind, nullable=found["nullable"], fill=fill, filters=filters, enumeration=known)
    return made


def category_texts(attr: Attr, given: Any) -> list[str]:
    """Categories to be added to an attribute, as the core takes them."""
    what = f"attribute {attr.name!r}: a category"
    several = given if is_iterable(given) and not isinstance(given, str | bytes) else [given]
    return [datatype.to_text(attr.dtype, datatype.scalar(attr.dtype, value, what)) for value in several]
