"""What an array is: dimensions, attributes, and how its cells are laid out. Immutable; one that exists is valid."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import _native
from ..base.arguments import among, checked, flag, label, several
from ..base.printable import brief
from ..column import datatype
from ..column.category import Categories, codes_type
from ..column.category import made as enumerated
from ..column.datatype import Value
from ..errors import InputError, SchemaError, UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa

Filters = str | Sequence[str]
_VALUE_BYTES_MAX = 65_536


def filters_text(filters: Any) -> str:
    """`"auto"`, a name with an optional level, or a list of names, as the core's comma-separated text."""
    if isinstance(filters, str):
        return filters.replace(" ", "")
    if isinstance(filters, Sequence) and all(isinstance(f, str) for f in filters):
        return ",".join(f.strip() for f in filters) or "none"
    raise SchemaError(f'filters are "auto", a name such as "zstd:3" or a list of names, not {brief(filters)}')


def _rounding_first(filters: Any) -> str:
    """The filters of an attribute as text; rounding by itself goes in front of "auto"."""
    text = filters_text(filters)
    return f"{text},auto" if text.startswith("bitround") and "," not in text else text


class _Frozen(ABC):
    """An immutable value compared by the JSON form that the core stores."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; make a new one to change {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; {name!r} cannot be deleted")

    def _put(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def _json(self) -> dict[str, Any]:
        """The JSON form."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._json() == other._json()

    def __hash__(self) -> int:
        return hash(json.dumps(self._json()))


class Dim(_Frozen):
    """A dimension.

    Args:
        name: unique among the dimensions and attributes of an array.
        domain: the lowest and highest coordinate, both inclusive. For datetimes: `numpy.datetime64`, ISO text,
            `datetime`, or ticks of the unit.
        tile: the extent of a space tile in coordinates (a float length for float dimensions; `numpy.timedelta64` or
            ticks for datetimes); None: the whole domain is one tile.
        dtype: an integer, datetime64 or timedelta64 type; in sparse arrays also float32, float64 and "string".
        max_bytes: of a string dimension, the bytes of UTF-8 of its longest text; 32 unless given. Each 8 bytes take an
            axis, of which an array has at most 32 (a number takes one).

    A dimension of texts has no domain (None): every text without NUL, of up to `max_bytes`, is inside. Its order is
    that of the code points.

    Raises:
        SchemaError: a bound or the extent is no value of the type; a domain or tile of texts.
        UnsupportedError: the type is bytes, which this version has for attributes only.
    """

    __slots__ = ("_count", "_domain", "dtype", "max_bytes", "name", "tile")
    name: str
    _domain: tuple[Value, Value] | None
    _count: int | None
    """Coordinates, where these are positions too: not of floats and texts."""
    tile: Value | None
    dtype: str
    max_bytes: int | None

    @checked(name=label)
    def __init__(
        self,
        name: str,
        domain: tuple[Any, Any] | None = None,
        tile: Any = None,
        dtype: Any = "int64",
        *,
        max_bytes: int | None = None,
    ) -> None:
        kind = datatype.parse(dtype)
        what = f"dimension {name!r}"
        if kind == "bytes":
            raise UnsupportedError(f"{what}: bytes dimensions are not supported by this version; use an attribute")
        if kind == "string":
            self._put(name=str(name), _domain=None, _count=None, dtype=kind, tile=None)
            self._put(max_bytes=_longest(what, max_bytes))
            if domain is not None:
                raise SchemaError(f"{what}: texts have no domain, every text is inside; give domain=None")
            if tile is not None:
                raise SchemaError(f"{what}: texts are one tile; give tile=None")
            return
        if max_bytes is not None:
            raise SchemaError(f"{what}: max_bytes is for dimensions of type string, not {kind}")
        if kind == "float16" or not (datatype.is_float(kind) or datatype.is_time(kind) or kind in datatype.INTEGERS):
            raise SchemaError(f"{what}: {kind} cannot be a dimension's type; use an integer, datetime or float")
        if not isinstance(domain, tuple | list) or len(domain) != 2:
            raise SchemaError(f"{what}: the domain is a pair (lowest, highest), not {brief(domain)}")
        lo, hi = (datatype.scalar(kind, bound, what) for bound in domain)
        self._put(name=str(name), _domain=(lo, hi), dtype=kind, tile=_extent(kind, tile, what), max_bytes=None)
        self._put(_count=_count_of(kind, self._domain))

    @property
    def is_text(self) -> bool:
        """Whether its coordinates are texts."""
        return self.dtype == "string"

    @property
    def domain(self) -> Any:
        """The lowest and highest coordinate, a pair; None of texts."""
        return self._domain

    def _numbers(self, what: str) -> tuple[Value, Value]:
        """The domain; a `SchemaError` for texts, which have no `what`."""
        if self._domain is None:
            raise SchemaError(f"dimension {self.name!r} is string: it has no {what}")
        return self._domain

    @property
    def size(self) -> int:
        """The number of coordinates; a `SchemaError` for float and string dimensions, which have no positions."""
        if self._count is not None:
            return self._count
        self._numbers("number of positions")
        raise SchemaError(f"dimension {self.name!r} is {self.dtype}: it has coordinates, but no number of positions")

    @property
    def positions_per_tile(self) -> int:
        """Coordinates in a space tile, at most; a `SchemaError` for float and string dimensions."""
        size = self.size
        return size if self.tile is None else min(size, datatype.ticks_of(self.tile))

    def _json(self) -> dict[str, Any]:
        if self._domain is None:
            text = {"name": self.name, "dtype": self.dtype, "domain": None, "tile": None}
            return {**text, "max_bytes": self.max_bytes}
        extent = "float64" if datatype.is_float(self.dtype) else self.dtype
        tile = None if self.tile is None else datatype.to_text(extent, self.tile)
        domain = [datatype.to_text(self.dtype, bound) for bound in self._domain]
        return {"name": self.name, "dtype": self.dtype, "domain": domain, "tile": tile}

    def __reduce__(self) -> tuple[Any, ...]:
        return _dim_of, (self._json(),)

    def __repr__(self) -> str:
        if self._domain is None:
            return f"Dim({self.name!r}, dtype='string', max_bytes={self.max_bytes})"
        lo, hi = (datatype.show(bound, self.dtype) for bound in self._domain)
        tile = "None" if self.tile is None else datatype.show(self.tile)
        return f"Dim({self.name!r}, domain=({lo}, {hi}), tile={tile}, dtype={self.dtype!r})"


def _longest(what: str, max_bytes: Any) -> int:
    """`max_bytes` checked; its greatest value is the core's affair."""
    if max_bytes is None:
        return 32
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int | np.integer) or not 0 < max_bytes < 2**32:
        raise SchemaError(f"{what}: max_bytes is a positive number of bytes, not {brief(max_bytes)}")
    return int(max_bytes)


def _count_of(kind: str, domain: tuple[Value, Value] | None) -> int | None:
    """The number of coordinates from one end of a domain to the other; None of floats and texts."""
    if domain is None or datatype.is_float(kind):
        return None
    return datatype.ticks_of(domain[1]) - datatype.ticks_of(domain[0]) + 1


def _extent(kind: str, tile: Any, what: str) -> Value | None:
    """The tile extent of a dimension of type `kind`: a float length, a timedelta, or a number of coordinates."""
    if tile is None:
        return None
    what = f"{what}: the tile extent"
    return datatype.scalar(_extent_type(kind), tile, what)


def _extent_type(kind: str) -> str:
    """The type of the tile extents of a dimension of type `kind`."""
    if datatype.is_time(kind):
        return f"timedelta64[{datatype.unit_of(kind)}]"
    return "float64" if datatype.is_float(kind) else "uint64"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def sides(what: str, value: Any) -> None:
    """The shape of a vector: one side, or several."""
    if not _is_whole(value):
        several(what, value)


class Attr(_Frozen):
    """An attribute: one value per cell.

    Args:
        name: unique among the dimensions and attributes of an array.
        dtype: bool, (u)int8 to (u)int64, float16, float32, float64, complex64, complex128, datetime64[unit],
            timedelta64[unit], string, bytes, bytes[length] (or NumPy's "S10"); a vector of any of these but strings and
            bytes, such as "uint8[3]", or a list such as "list[int32]".
        nullable: whether a cell's value may be null.
        fill: what an unwritten dense cell reads as; None: 0, "", NaT, a list of nothing. Nullable attributes read as
            null there.
        filters: "auto", a name with an optional level ("zstd:3"), or a list of them (["delta", "zstd"]). Of floats,
            "bitround:N" in front of them ("bitround:7" alone: in front of "auto") keeps N bits of the mantissa of what
            is written: values are rounded, for good.
        var: True: a value is a list of any number of `dtype`. (Strings and bytes are variable-length without it.)
        shape: a value is a vector of this shape, (3,) or 3 say, of `dtype`; at most 4 axes and 65,536 bytes.
        categories: the values that there may be, of `dtype` (strings, bytes, numbers, booleans, times): the attribute
            is *enumerated*, and cells hold small codes. `Array.alter` adds more of them. The fill is the first one
            unless given; with none yet the attribute must be nullable.
        ordered: categories are less and greater by their places; else by what they are.
        codes: the type of the codes, "uint8", "uint16" or "uint32", which cannot change; None: the least with room for
            as many categories again.
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
        self._put(name=str(name), dtype=kind, nullable=bool(nullable), fill=value, filters=_rounding_first(filters))
        self._put(enumeration=known)

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
        return _attr_of, (self._json(),)

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


class Schema(_Frozen):
    """The schema of an array.

    Args:
        dims: the dimensions, the slowest of row order first.
        attrs: the attributes.
        sparse: only non-empty cells exist; else every cell of the domain has a value.
        capacity: cells per data tile of a sparse array.
        tile_order: the order of the space tiles: "row" or "col".
        cell_order: the order of the cells in a tile: "row", "col" or, of a sparse array, "hilbert": along a curve that
            keeps what lies close together in all dimensions close together in the file.
        duplicates: whether a sparse array may hold several cells at one place.
        coord_filters: the filters of a sparse array's coordinates.

    Raises:
        SchemaError: what contradicts what.
        UnsupportedError: valid, but not supported by this version.
    """

    __slots__ = ("attrs", "capacity", "cell_order", "coord_filters", "dims", "duplicates", "sparse", "tile_order")
    dims: tuple[Dim, ...]
    attrs: tuple[Attr, ...]
    sparse: bool
    capacity: int
    tile_order: str
    cell_order: str
    duplicates: bool
    coord_filters: str

    @checked(dims=several, attrs=several, sparse=flag, duplicates=flag)
    def __init__(
        self,
        dims: Iterable[Dim],
        attrs: Iterable[Attr],
        *,
        sparse: bool = False,
        capacity: int = 10_000,
        tile_order: str = "row",
        cell_order: str = "row",
        duplicates: bool = False,
        coord_filters: Filters = "auto",
    ) -> None:
        asked = {
            "sparse": bool(sparse),
            "capacity": _capacity(capacity),
            "tile_order": _order("tile_order", tile_order),
            "cell_order": _order("cell_order", cell_order),
            "duplicates": bool(duplicates),
            "coord_filters": filters_text(coord_filters),
            "dims": [_checked(dim, Dim)._json() for dim in dims],
            "attrs": [_checked(attr, Attr)._json() for attr in attrs],
        }
        self._fill_in(json.loads(_native.check_schema(json.dumps(asked))))

    def _fill_in(self, found: dict[str, Any]) -> None:
        try:
            dims = tuple(map(_dim_of, found["dims"]))
        except OverflowError as error:  # NumPy's lengths of time end where the core's go on.
            raise SchemaError(f"a tile extent is longer than NumPy's timedelta64 can tell: {error}") from error
        made = {**found, "dims": dims, "attrs": tuple(map(_attr_of, found["attrs"]))}
        self._put(**made)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """Coordinates per dimension; a `SchemaError` if one is float or string."""
        return tuple(dim.size for dim in self.dims)

    def dim(self, name: str) -> Dim:
        """The dimension of this name; a `SchemaError` lists the names there are."""
        return _named(self.dims, name, "dimension")

    def attr(self, name: str) -> Attr:
        """The attribute of this name; a `SchemaError` lists the names there are."""
        return _named(self.attrs, name, "attribute")

    def to_json(self) -> str:
        """The schema as JSON on one line, every option written out."""
        return json.dumps(self._json())

    @classmethod
    @checked()
    def from_json(cls, text: str) -> "Schema":
        """The schema written in `text` (see `to_json`); options left out have their defaults."""
        return cls._stored(_native.check_schema(text))

    @classmethod
    def _stored(cls, text: str) -> "Schema":
        """The schema of a text that the core has written, so that nothing is left to be checked."""
        made = cls.__new__(cls)
        made._fill_in(json.loads(text))
        return made

    def to_arrow(self) -> "pa.Schema":
        """The Arrow schema of this array's cells: dimensions, then attributes. Types that Arrow lacks (datetimes in
        days, say) become its nearest type; each field's metadata keeps the type of this package.
        """
        from ..column import arrow

        return arrow.schema_of(self)

    @classmethod
    @checked(dims=several)
    def from_arrow(cls, arrow_schema: "pa.Schema", dims: Sequence[Dim], **options: Any) -> "Schema":
        """The schema with these dimensions, and an attribute for each other field of `arrow_schema`.

        Args:
            arrow_schema: fields of primitive, temporal, string or binary types.
            dims: the dimensions; Arrow knows neither their domains nor their tiles.
            options: `sparse` and the other options of `Schema`; sparse is True unless given.

        Raises:
            InputError: a name among the dimensions, where a `gridstone.Dim` is needed.
        """
        import pyarrow as pa

        from ..column import arrow

        if not isinstance(arrow_schema, pa.Schema):
            raise SchemaError(f"from_arrow() takes a pyarrow.Schema, found {type(arrow_schema).__name__}")
        dims = list(dims)
        for dim in dims:
            if isinstance(dim, str):
                raise InputError(
                    f"dims= takes dimensions, found the name {dim!r}: an Arrow schema tells no domains, so give "
                    f"gridstone.Dim({dim!r}, domain=(lowest, highest), dtype=…)"
                )
        names = {_checked(dim, Dim).name for dim in dims}
        attrs = [arrow.attr_of(field) for field in arrow_schema if field.name not in names]
        return cls(dims, attrs, **{"sparse": True, **options})

    def _json(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in _OPTIONS}
        return {**options, "dims": [d._json() for d in self.dims], "attrs": [a._json() for a in self.attrs]}

    def __reduce__(self) -> tuple[Any, ...]:
        return Schema.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        lines = [f"Schema({'sparse' if self.sparse else 'dense'}, {self._options_text()}"]
        for title, items in (("dims", self.dims), ("attrs", self.attrs)):
            lines.append(f"  {title}:")
            lines += [f"    {item!r}" for item in items]
        return "\n".join(lines) + "\n)"

    def _options_text(self) -> str:
        text = f"tiles {self.tile_order}, cells {self.cell_order}"
        if self.sparse:
            text += f", capacity {self.capacity}, {'duplicates' if self.duplicates else 'no duplicates'}"
            text += f", coordinates {self.coord_filters}"
        return text

    def _repr_html_(self) -> str:
        from ..base import html

        return html.schema(self)


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


_Part = TypeVar("_Part")
_Named = TypeVar("_Named", Dim, Attr)
_OPTIONS = ("sparse", "capacity", "tile_order", "cell_order", "duplicates", "coord_filters")


def _capacity(cells: Any) -> int:
    if isinstance(cells, bool) or not isinstance(cells, int | np.integer) or not 0 < cells < 2**64:
        raise SchemaError(f"the capacity is a positive number of cells per data tile, not {brief(cells)}")
    return int(cells)


def _checked(item: Any, kind: type[_Part]) -> _Part:
    if not isinstance(item, kind):
        raise SchemaError(f"expected a gridstone.{kind.__name__}, found {brief(item)}")
    return item


def _order(what: str, order: Any) -> str:
    if not isinstance(order, str):
        raise SchemaError(f'{what} is text, "row" or "col", not {brief(order)}')
    return order


def _named(items: tuple[_Named, ...], name: str, what: str) -> _Named:
    for item in items:
        if among(name, (item.name,)):
            return item
    raise SchemaError(f"no {what} {brief(name)}; there are {', '.join(repr(i.name) for i in items)}")


def _dim_of(found: dict[str, Any]) -> Dim:
    """The dimension of the JSON form that the core has written, or one that was checked; it is not checked again."""
    made, kind, ends, tile = Dim.__new__(Dim), found["dtype"], found["domain"], found["tile"]
    domain = None if ends is None else (datatype.from_text(kind, ends[0]), datatype.from_text(kind, ends[1]))
    extent = None if tile is None else datatype.from_text(_extent_type(kind), tile)
    longest = found["max_bytes"] if kind == "string" else None
    made._put(name=found["name"], _domain=domain, _count=_count_of(kind, domain), dtype=kind, tile=extent)
    made._put(max_bytes=longest)
    return made


def _attr_of(found: dict[str, Any]) -> Attr:
    """The attribute of the JSON form that the core has written, or one that was checked; it is not checked again."""
    made, kind, text = Attr.__new__(Attr), found["dtype"], found["fill"]
    known = None
    if "categories" in found:
        values = [datatype.from_text(kind, value) for value in found["categories"]]
        known = enumerated(f"attribute {found['name']!r}", kind, values, found["ordered"], found["codes"])
    fill = datatype.default_fill(kind) if text is None else datatype.from_text(kind, text)
    filters = _rounding_first(found["filters"])
    made._put(name=found["name"], dtype=kind, nullable=found["nullable"], fill=fill, filters=filters, enumeration=known)
    return made
