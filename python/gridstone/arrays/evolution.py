"""Changes the schema of an array: its domain and its attributes. What was written stays as it is."""

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..base.arguments import checked, is_listed, mapping, several
from ..base.printable import brief
from ..column import datatype, period
from ..errors import InputError, SchemaError, UnsupportedError
from ..labels.along import labels_asked
from ..query.axis import ends_used
from ..schema.array_schema import Schema
from ..schema.attribute import Attr, category_texts
from ..schema.dimension import Dim
from ..schema.filters import Filters, filters_text
from ..version.receipt import Message
from .noting import Noting

if TYPE_CHECKING:
    from .._native import Array as Native


def _attrs(what: str, value: Any) -> None:
    """New attributes."""
    if not isinstance(value, Attr):
        several(what, value)


class Evolvable(Noting):
    """The part of an array that knows its schema, and changes it."""

    _native: "Native | None"
    _known: tuple[int, str, Schema]

    @abstractmethod
    def _writable(self) -> "Native": ...

    def _load_schema(self, native: "Native") -> None:
        """Takes the schema of `native`, whatever was known."""
        stamp, text = native.schema_since(None) or (-1, native.schema_json)
        self._known = (stamp, text, Schema._stored(text))

    @property
    def _schema(self) -> Schema:
        """The schema at the version that the handle shows, to which a commit through it may have moved it."""
        native, known = self._native, self._known
        newer = None if native is None else native.schema_since(known[0])
        if newer is None:
            return known[2]
        stamp, text = newer
        made = known[2] if text == known[1] else Schema._stored(text)
        self._known = (stamp, text, made)
        return made

    def _note_ends(self, key: Any = ...) -> None:
        """In a transaction: what lies beyond the ends of the domain by which a key chooses counts as read."""
        native = self._native
        if native is not None and native.in_transaction:
            used = ends_used(self._schema, key)
            if any(low or high for low, high in used):
                native.note_ends(used)

    @property
    def schema(self) -> Schema:
        """Dimensions, attributes and layout. The domain is part of it: in a transaction its ends count as read."""
        self._note_ends()
        return self._schema

    @property
    def domain(self) -> tuple[Any, ...]:
        """The lowest and highest coordinate per dimension, inclusive; None for a dimension of texts. Along a dimension
        without a coordinate the highest lies below the lowest: (0, -1)."""
        self._note_ends()
        return tuple(dim.reach for dim in self._schema.dims)

    @checked()
    def resize(self, domain: Any = None, /, *, message: Message = None, **domains: Any) -> int:
        """Makes the domain larger. It never shrinks: delete cells instead.

        Both ends of a dimension may go anywhere. Positions count from the low end, so they shift when it moves.
        Others may write meanwhile, and make the domain grow too: it becomes the union.

        Args:
            domain: a dict `{dim: (lowest, highest)}` in the dimensions' own coordinates, both inclusive; or the new
                shape: a number of positions per dimension (None: as it is), counted from the low ends.
            message: kept with the version.
            domains: the same as a dict, by the names of dimensions: `a.resize(x=(0, 199))`. An end that is None
                stays.

        Returns:
            The version committed; the present one if nothing is larger.

        Raises:
            SchemaError: a domain that does not hold the old one, or is not of the dimension's type.
            ConflictError: another commit removed the array.
        """
        wanted = _domains(self._schema, domain, domains)
        category_texts = [[dim.name, *_ends(dim, ends)] for dim, ends in wanted]
        return self._evolve({"domains": category_texts}, message)

    @checked(
        add=_attrs,
        drop=several,
        nullable=several,
        rename=mapping,
        fill=mapping,
        filters=mapping,
        categories=mapping,
        labels=mapping,
    )
    def alter(
        self,
        *,
        add: Attr | Iterable[Attr] = (),
        drop: str | Iterable[str] = (),
        rename: Mapping[str, str] | None = None,
        fill: Mapping[str, Any] | None = None,
        filters: Mapping[str, Filters] | None = None,
        nullable: str | Iterable[str] = (),
        categories: Mapping[str, Any] | None = None,
        labels: Mapping[str, Any] | None = None,
        message: Message = None,
    ) -> int:
        """Adds, drops, renames and changes attributes, and renames and labels dimensions. Nothing that was written is
        read or written again.

        Names are those before the change. Earlier versions keep their attributes. Writes of processes that have not
        seen the change yet stand.

        Args:
            add: new attributes. Cells written before have null there if it is nullable, else its fill.
            drop: attributes that go; their bytes stay in older fragments until `consolidate` rewrites these and
                `vacuum` forgets the versions that have them.
            rename: new names by old names, of attributes and dimensions.
            fill: new fills by name: what unwritten dense cells read as (None: 0, "" or NaT).
            filters: filters by name, of what is written from now on.
            nullable: attributes that may be null from now on; unwritten dense cells of them are null.
            categories: new categories (a list, or one) by name of enumerated attribute; they come behind those that it
                has, and are the greatest where categories are ordered.
            labels: labels by name of dimension, of a dense array: one for each position, `(start, step)`, or the path
                of an array of one dimension that has them, as `gridstone.Dim` takes it; None takes them away. Earlier
                versions keep theirs.
            message: kept with the version.

        Returns:
            The version committed; the present one if nothing changes.

        Raises:
            InputError: not one label for each position.
            SchemaError: what cannot change: a type, the last attribute, a name that is taken, nullable back to not
                nullable, categories that are there; in a sparse array the fill of an attribute that was added.
            ConflictError: another commit changed the schema.
        """
        schema, renamed, fills = self._schema, dict(rename or {}), dict(fill or {})
        asked = {
            "add": [_attr(attr) for attr in ([add] if isinstance(add, Attr) else add)],
            "drop": _names(drop),
            "rename": [[_name(old), _name(new)] for old, new in renamed.items()],
            "fill": [[_name(name), _fill(schema.attr(name), value)] for name, value in fills.items()],
            "filters": [[_name(name), filters_text(value)] for name, value in (filters or {}).items()],
            "nullable": _names(nullable),
            "categories": [
                [_name(name), category_texts(schema.attr(name), more)] for name, more in (categories or {}).items()
            ],
        }
        if labels is None:
            return self._evolve(asked, message)
        native = self._writable()
        steps, listed = labels_asked(native, schema, {_name(name): value for name, value in labels.items()})
        return _native.alter_labelled(native, json.dumps({**asked, "labels": steps}), listed, message)

    def _evolve(self, asked: Mapping[str, Any], message: Message) -> int:
        return self._writable().alter(json.dumps(asked), message)


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise SchemaError(f"the name of an attribute or dimension is text, not {brief(name)}")
    return name


def _names(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else [_name(name) for name in names]


def _attr(attr: Any) -> dict[str, Any]:
    if not isinstance(attr, Attr):
        raise SchemaError(f"add= takes gridstone.Attr, found {brief(attr)}")
    return attr._json()


def _fill(attr: Attr, value: Any) -> str | None:
    if value is None:
        return None
    what = f"attribute {attr.name!r}: the fill"
    return datatype.to_text(attr.dtype, datatype.scalar(attr.dtype, value, what))


def _domains(schema: Schema, domain: Any, named: Mapping[str, Any]) -> list[tuple[Dim, Any]]:
    """Dimensions and the domains asked for them."""
    if domain is None or isinstance(domain, Mapping):
        wanted = {**(domain or {}), **named}
        if len(wanted) < len(domain or {}) + len(named):
            raise InputError("a dimension is named twice; name each once")
        if not wanted:
            raise InputError("say what becomes larger: resize(x=(0, 199)), resize({'x': (0, 199)}) or resize(shape)")
        return [(schema.dim(name), ends) for name, ends in wanted.items()]
    if named:
        raise InputError("give a shape, or domains by name, not both")
    return _of_shape(schema, domain)


def _of_shape(schema: Schema, shape: Any) -> list[tuple[Dim, Any]]:
    sizes = [shape] if isinstance(shape, int | np.integer) else shape
    if not is_listed(sizes) or len(sizes) != schema.ndim:
        raise InputError(
            f"a new shape has a number of positions for each of {schema.ndim} dimensions, not {brief(shape)}"
        )
    found: list[tuple[Dim, Any]] = []
    for dim, size in zip(schema.dims, sizes, strict=True):
        if size is None:
            continue
        if dim.is_text:
            raise UnsupportedError(f"dimension {dim.name!r} is string and has no positions; give None for it")
        if datatype.is_float(dim.dtype):
            raise UnsupportedError(
                f"dimension {dim.name!r} is {dim.dtype} and has no number of positions; give its domain by name"
            )
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise InputError(f"dimension {dim.name!r}: {brief(size)} is no number of positions")
        first = datatype.ticks_of(dim.reach[0])
        if dim.is_empty and dim.open == (True, False):
            first -= int(size)  # As an append does: the closed end is the last of them.
        found.append((dim, (first if dim.is_empty else None, first + int(size) - 1)))
    return found


def _known_ends(dim: Dim) -> tuple[Any, Any]:
    """What an end that is left out stays at."""
    if dim.is_empty:
        raise InputError(f"dimension {dim.name!r} has no coordinate yet: give both ends of its domain")
    low, high = dim.reach
    return low, high


def _ends(dim: Dim, ends: Any) -> tuple[str, str]:
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InputError(f"dimension {dim.name!r}: a domain is a pair (lowest, highest), not {brief(ends)}")
    what = f"dimension {dim.name!r}"
    if dim.is_text:
        raise UnsupportedError(f"{what} is string: it has no domain that could grow")
    known = _known_ends(dim) if None in [end if end is None else True for end in ends] else ends
    pairs = zip((ends[0], period.last_value(dim.dtype, ends[1])), known, strict=True)
    values = [now if end is None else datatype.scalar(dim.dtype, end, what) for end, now in pairs]
    low, high = (datatype.to_text(dim.dtype, value) for value in values)
    return low, high
