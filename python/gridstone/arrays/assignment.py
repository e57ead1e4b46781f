"""The new values of cells, computed of their old ones by the core.

1. A text is an expression, as `aggregate` takes it. A name alone copies a column; all else is a value that every cell
   gets.
2. All expressions see the old values. Columns that they name become a dense array in memory, of one position per cell.
   Its reduction along no axis gives each cell's result, so that values here are those of questions.
3. A result that its attribute cannot hold is an error, which names the attribute and the value.
"""

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _native
from ..base.arguments import utf8
from ..base.printable import brief
from ..column import decode, encode
from ..column.columns import Column, Field
from ..column.datatype import AnyArray
from ..context.settings import Context
from ..errors import InputError
from ..query.condition import Column as Named
from ..query.condition import Expression, Literal
from ..result.answer import named_columns
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from ..schema.fields import attr_field
from . import expression_errors as messages
from .aggregate import answer_schema, quoted, unquoted

_TILE = 1 << 16
"""Cells that one thread computes at a time."""
_VALUE, _END = "any_value((", "))"
"""What makes an aggregate of an expression: each group is one cell. The inner parentheses hold one value."""
_ROW = re.compile(r" at row \d+|, row \d+|, but row \d+ is null| in row \d+")


class Assignment:
    """What each attribute that is named becomes; checked against a schema.

    Raises:
        InputError: no such attribute, a dimension, an expression that does not fit the schema, or a value that does not
            fit its attribute.
    """

    def __init__(self, schema: Schema, given: Mapping[Any, Any], context: Context) -> None:
        self._schema, self._context = schema, context
        self._fields: dict[str, Field] = {}
        self._copies: dict[str, str] = {}
        self._constants: dict[str, Column] = {}
        self._texts: dict[str, str] = {}
        if not given:
            raise InputError(
                'say what changes: update({"sog": "sog * 0.5"}, where=…) names attributes and their values'
            )
        for name, value in given.items():
            _check_name(schema, name)
            self._fields[name] = attr_field(schema, name)
            self._add(name, value)
        self._inputs = {name: _inputs(schema, [text]) for name, text in self._texts.items()}
        fixed = [name for name, inputs in self._inputs.items() if not inputs]
        if fixed:
            found = self._computed({name: self._texts.pop(name) for name in fixed}, {}, 1)
            self._constants |= {name: self._fitting(name, column) for name, column in found.items()}

    @property
    def targets(self) -> list[str]:
        """The attributes that change."""
        return [attr.name for attr in self._schema.attrs if attr.name in self._fields]

    @property
    def reads(self) -> list[str]:
        """The attributes that the new values are made of."""
        used = {name for name in self._copies.values()} | {n for name in self._texts for n in self._inputs[name]}
        return [attr.name for attr in self._schema.attrs if attr.name in used]

    def _add(self, name: str, value: Any) -> None:
        if isinstance(value, Named):
            value = quoted(value.name)
        elif isinstance(value, Expression):
            value = f"case when {value!r} then 1 else 0 end"
        if not isinstance(value, str):
            self._constants[name] = self._constant(name, value.value if isinstance(value, Literal) else value)
            return
        utf8("values", value)
        messages.check_written(self._fields[name], value)
        source = unquoted(value.strip())
        if source in {*(attr.name for attr in self._schema.attrs), *(dim.name for dim in self._schema.dims)}:
            self._copies[name] = source
            if _is_same(self._fields[name], _field(self._schema, source)):
                return
            del self._copies[name]
        self._texts[name] = self._parsed(name, value)

    def _parsed(self, name: str, text: str) -> str:
        """The text, if it is an expression; an attribute of bools takes a condition too."""
        try:
            _check(self._schema, name, text)
        except InputError as error:
            if self._fields[name].dtype == "bool":
                as_number = f"case when {text} then 1 else 0 end"
                try:
                    _check(self._schema, name, as_number)
                except InputError:
                    pass
                else:
                    return as_number
            raise InputError(messages.explained(self._fields[name], text, str(error), self._is_aggregate)) from None
        return text

    def _is_aggregate(self, function: str) -> bool:
        """Whether the core knows an aggregate by this name."""
        try:
            answer_schema(self._schema, [], [("n", f"{function}()")])
        except InputError as error:
            return "there is no aggregate" not in str(error)
        return True

    def _constant(self, name: str, value: Any) -> Column:
        field = self._fields[name]
        if value is None and not field.nullable:
            raise InputError(
                f"{field.title} is not nullable, and cannot become null; a.alter(nullable={name!r}) allows it"
            )
        try:
            made = encode.from_values(field, [value])
        except InputError as error:
            raise InputError(_without_row(error)) from None
        if len(made) != 1 or (made.offsets is None and made.values.shape != (1,)):
            raise InputError(f"{field.title} takes one value for all cells, not {brief(value)}")
        return made

    def columns(self, found: Mapping[str, Column], rows: int) -> dict[str, Column]:
        """The new values of cells whose columns these are, coordinates among them."""
        made = {name: found[source] for name, source in self._copies.items()}
        made |= {name: _repeated(column, rows) for name, column in self._constants.items()}
        if self._texts and rows:
            computed = self._computed(self._texts, found, rows)
            made |= {name: self._fitting(name, column) for name, column in computed.items()}
        return {name: self._without_nulls(name, made[name]) for name in self.targets}

    def _computed(self, texts: Mapping[str, str], found: Mapping[str, Column], rows: int) -> dict[str, Column]:
        """The results of expressions, one per cell."""
        inputs = _inputs(self._schema, texts.values())
        place = "row"
        while place in inputs:
            place += "_"
        attrs = [_plain(self._schema, name) for name in inputs] or [Attr(f"{place}_", "uint8", filters="none")]
        columns = {name: found[name] for name in inputs} or {attrs[0].name: Column("uint8", np.zeros(rows, np.uint8))}
        schema = Schema([Dim(place, (0, rows - 1), min(rows, _TILE))], attrs)
        asked = [(name, f"{_VALUE}{text}{_END}") for name, text in texts.items()]
        native, uri = self._context.native, f"mem://update-{uuid.uuid4().hex}"
        array = _native.create_array(native, uri, "/", schema.to_json(), False)
        try:
            values = {name: column.native() for name, column in columns.items()}
            array.commit([array.stage_dense([(0, rows - 1)], values, "row")], None)
            _, made, categories, _ = _native.reduce(array, None, (None, None), asked, [0], None)
        except InputError as error:
            raise InputError(str(error).replace("any_value(", "(")) from None
        finally:
            _native.delete_store(native, uri)
        return named_columns(schema, made, categories)

    def _fitting(self, name: str, column: Column) -> Column:
        """A result as a column of its attribute."""
        field = self._fields[name]
        enumerated = column.categories is not None or field.categories is not None
        if not enumerated and column.dtype == field.dtype:
            return column
        self._check_nulls(name, column)
        values = decode.numpy_of(column)
        if field.dtype == "bool" and values.dtype.kind in "iu":
            values = _bools(field, values)
        try:
            made = encode.from_values(field, values)
        except InputError as error:
            raise InputError(f"{messages.of_expression(_without_row(error))}. Nothing was changed") from None
        return made

    def _without_nulls(self, name: str, column: Column) -> Column:
        """The column without a validity where its attribute has none."""
        field = self._fields[name]
        if field.nullable or column.validity is None:
            return column
        self._check_nulls(name, column)
        return replace(column, validity=None)

    def _check_nulls(self, name: str, column: Column) -> None:
        """An `InputError` if an attribute would become null that cannot."""
        field = self._fields[name]
        if not field.nullable and column.validity is not None and not column.validity.all():
            raise InputError(messages.would_be_null(field))


def _check_name(schema: Schema, name: Any) -> None:
    """An `InputError` unless it may be the name of an attribute."""
    if not isinstance(name, str):
        raise InputError(f"values= has names of attributes, found {brief(name)}")
    if any(dim.name == name for dim in schema.dims):
        raise InputError(
            f"{name!r} is a dimension: it says where a cell lies, and an update leaves cells where they are. To move "
            f"cells read them, delete them and write them at their new coordinates, in one gridstone.transaction"
        )


def _check(schema: Schema, name: str, text: str) -> None:
    """The core's `InputError`, which lists the names of the schema, unless the text is an expression of it."""
    messages.check_parentheses(text)
    answer_schema(schema, [], [(name, f"{_VALUE}{text}{_END}")])


def _inputs(schema: Schema, texts: Any) -> list[str]:
    """The columns that expressions may name: those whose name stands in one of the texts."""
    joined = "\n".join(texts)
    words = set(re.findall(r"\w+", joined))
    names = [dim.name for dim in schema.dims] + [attr.name for attr in schema.attrs]
    return [n for n in names if (n in words if re.fullmatch(r"\w+", n) else quoted(n)[1:-1] in joined)]


def _plain(schema: Schema, name: str) -> Attr:
    """The attribute that holds a column while it is computed with."""
    for dim in schema.dims:
        if dim.name == name:
            return Attr(name, dim.dtype, filters="none")
    attr = schema.attr(name)
    known = attr.enumeration
    if known is None:
        return Attr(name, attr.dtype, nullable=attr.nullable, filters="none")
    return Attr(
        name,
        known.dtype,
        nullable=attr.nullable,
        filters="none",
        categories=known.values,
        ordered=known.ordered,
        codes=known.codes,
    )


def _field(schema: Schema, name: str) -> Field:
    for dim in schema.dims:
        if dim.name == name:
            return Field(name, dim.dtype, False, "dimension")
    return attr_field(schema, name)


def _is_same(target: Field, source: Field) -> bool:
    """Whether a column of one is one of the other."""
    return target.dtype == source.dtype and target.categories == source.categories


def _repeated(column: Column, rows: int) -> Column:
    """A column of one cell as one of many."""
    validity = None if column.validity is None else np.repeat(column.validity, rows)
    if column.offsets is None:
        return replace(column, values=np.repeat(column.values, rows), validity=validity)
    length = int(column.offsets[1])
    offsets = np.arange(rows + 1, dtype=np.int64) * length
    return replace(column, values=np.tile(column.values, rows), offsets=offsets, validity=validity)


def _bools(field: Field, values: AnyArray) -> AnyArray:
    """Zeros and ones as bools."""
    strange = np.ma.getdata(values)[(np.ma.getdata(values) > 1) & ~np.ma.getmaskarray(values)]
    if strange.size:
        raise InputError(f'{field.title} is bool, found {strange[0]}; compare: "x > 0". Nothing was changed')
    return values.astype(np.bool_)


def _without_row(error: InputError) -> str:
    """A message without the number of a row, which is one of a batch."""
    said = _ROW.sub("", str(error))
    return said.replace("; convert the values first", "; round or cast it, or change other cells")


def names_of(schema: Schema, plan: Assignment) -> Sequence[str]:
    """The attributes that are read for an update: a sparse cell is written whole."""
    if schema.sparse:
        return [attr.name for attr in schema.attrs]
    wanted = {*plan.reads, *plan.targets}
    return [attr.name for attr in schema.attrs if attr.name in wanted]
