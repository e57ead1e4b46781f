"""`Schema`: dimensions, attributes, and the layout of cells. Immutable; every instance is valid."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import _native
from ..base import html
from ..base.arguments import among, checked, flag, several
from ..base.printable import brief
from ..column import datatype
from ..errors import InputError, SchemaError
from .attribute import Attr, attr_of
from .dimension import Dim, dim_of
from .filters import Filters, filters_text
from .frozen import Frozen
from .tile_shape import open_tile

if TYPE_CHECKING:
    import pyarrow as pa


class Schema(Frozen):
    """The schema of an array.

    Args:
        dims: the dimensions, the slowest of row order first; none of them: a dense array of one cell, of shape ().
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

    Example:
        >>> schema = gs.Schema(
        ...     dims=[gs.Dim("lon", (-180.0, 180.0), dtype="float64"), gs.Dim("lat", (-90.0, 90.0), dtype="float64")],
        ...     attrs=[gs.Attr("sog", "float32"), gs.Attr("name", "string", nullable=True)],
        ...     sparse=True,
        ...     duplicates=True,
        ... )
        >>> schema == gs.Schema.from_json(schema.to_json())
        True
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
        dims, attrs = tuple(_checked(dim, Dim) for dim in dims), tuple(_checked(attr, Attr) for attr in attrs)
        labelled = [dim.name for dim in dims if dim._labels is not None]
        if sparse and labelled:
            raise SchemaError(
                f"dimension {labelled[0]!r}: labels are of the positions of dense arrays; the cells of a sparse one "
                f"have coordinates"
            )
        asked = {
            "sparse": bool(sparse),
            "capacity": _capacity(capacity),
            "tile_order": _order("tile_order", tile_order),
            "cell_order": _order("cell_order", cell_order),
            "duplicates": bool(duplicates),
            "coord_filters": filters_text(coord_filters),
            "attrs": [attr._json() for attr in attrs],
        }
        asked["dims"] = [dim._json() for dim in (dims if sparse else _tiled(dims, attrs))]
        self._fill_in(json.loads(_native.check_schema(json.dumps(asked))))
        for made, dim in zip(self.dims, dims, strict=True):
            made._put(_labels=dim._labels)

    def _fill_in(self, found: dict[str, Any]) -> None:
        try:
            dims = tuple(map(dim_of, found["dims"]))
        except OverflowError as error:  # NumPy's lengths of time end where the core's go on.
            raise SchemaError(f"a tile extent is longer than NumPy's timedelta64 can tell: {error}") from error
        made = {**found, "dims": dims, "attrs": tuple(map(attr_of, found["attrs"]))}
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
        return self._arrow_of(None)

    def _arrow_of(self, names: Sequence[str] | None) -> "pa.Schema":
        """The Arrow schema of the dimensions and of the attributes named; None: all."""
        from . import arrow

        return arrow.schema_of(self.dims, self.attrs if names is None else [self.attr(name) for name in names])

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

        from . import arrow

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
        return _restored, (self.to_json(), self.dims)

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
        labelled = any(dim._labels_text for dim in self.dims)
        dims = [
            (
                d.name,
                d.dtype,
                *(("", f"{d.max_bytes} bytes") if d.is_text else _ends_shown(d)),
                "whole" if d.tile is None else d.tile,
                *((d._labels_text,) if labelled else ()),
            )
            for d in self.dims
        ]
        attrs = [
            (
                a.name,
                a.described,
                "yes" if a.nullable else "no",
                datatype.show(a.fill, a.dtype),
                f"{a.filters} (lossy)" if a.lossy else a.filters,
            )
            for a in self.attrs
        ]
        title = f"{'Sparse' if self.sparse else 'Dense'} schema"
        return (
            f"<div><b>{title}</b> <small>{html.escape(self._options_text())}</small>"
            + html.table(("dimension", "type", "from", "to", "tile", *(("labels",) if labelled else ())), dims)
            + html.table(("attribute", "type", "nullable", "fill", "filters"), attrs)
            + "</div>"
        )


_Part = TypeVar("_Part")
_Named = TypeVar("_Named", Dim, Attr)
_OPTIONS = ("sparse", "capacity", "tile_order", "cell_order", "duplicates", "coord_filters")


def _ends_shown(dim: Dim) -> tuple[str, ...]:
    """The ends of a domain of numbers, for people."""
    return tuple("open" if end is None else datatype.show(end, dim.dtype) for end in dim.domain)


def _restored(text: str, dims: tuple[Dim, ...]) -> Schema:
    """The schema of a text, with dimensions as an array has them at a version."""
    made = Schema.from_json(text)
    made._put(dims=dims)
    return made


def _tiled(dims: tuple[Dim, ...], attrs: Sequence[Attr]) -> tuple[Dim, ...]:
    """The dimensions of a dense array, with a tile chosen for those that have none and an open end."""
    endless = [dim for dim in dims if dim.tile is None and True in dim.open and dim._count is not None]
    if not endless:
        return dims
    known = [dim.positions_per_tile for dim in dims if dim not in endless and dim._count is not None]
    widths = [datatype.numpy_of(attr.dtype).itemsize for attr in attrs if not datatype.is_var(attr.dtype)]
    extent = open_tile(known, len(endless), max([1, *widths]))
    return tuple(Dim(dim.name, dim.domain, extent, dim.dtype) if dim in endless else dim for dim in dims)


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
