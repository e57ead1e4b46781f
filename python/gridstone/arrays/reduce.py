"""Reductions of dense arrays along axes, as NumPy has them; NumPy's own functions call these methods."""

import math
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np

from .. import _native
from ..base.arguments import checked, flag, known, mapping, place
from ..base.printable import brief
from ..base.progress import Progress, reporting
from ..column import datatype, decode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..column.stored import Stored
from ..errors import InputError, UnsupportedError
from ..query.box import Box, BoxLike, box_of
from ..query.condition import Expression, Where, condition_of
from ..result.answer import answer_of, named_columns, reduced_of
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from .aggregate import quoted, texts_of
from .noting import Looking

if TYPE_CHECKING:
    from collections.abc import Callable

Axis = int | str | Sequence[int | str] | None
_Found = TypeVar("_Found")
_OF_SPARSE = "only dense arrays are reduced along axes; ask a sparse one with aggregate({'s': 'sum(v)'}, by=…)"
_NOTHING = "the box has no cell, so that to= has nothing to write; give a box with a cell"


def _axis(what: str, value: Any) -> None:
    """Positions or names of dimensions."""
    given = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(one, int | str | np.integer) and not isinstance(one, bool) for one in given):
        raise InputError(f"{what}= takes positions or names of dimensions, not {brief(value)}")


def _out(what: str, value: Any) -> None:
    """An array to fill."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{what}= takes an array of NumPy to fill, found {brief(value)}")


def _dtype(what: str, value: Any) -> None:
    """A type of numbers."""
    try:
        kind = np.dtype(value).kind
    except (TypeError, ValueError, OverflowError):
        kind = ""
    if kind not in "biufmM" or not kind:
        raise InputError(f"{what}= takes a dtype of numbers or times, not {brief(value)}")


def _ddof(what: str, value: Any) -> None:
    """A number that is taken from the number of values."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not -(2**53) <= value <= 2**53:
        raise InputError(f"{what}= takes a number, not {brief(value)}")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a box along axes."""

    axis: Axis
    box: BoxLike
    where: Any
    progress: Progress


@dataclass(frozen=True, slots=True)
class Found:
    """The columns of a reduction, each with the shape of the axes that remain."""

    schema: Schema
    box: Box
    kept: tuple[int, ...]
    shape: tuple[int, ...]
    columns: dict[str, Column]
    stats: dict[str, int]


class Reducible(Stored):
    """What is reduced along axes: a dense array of one attribute, or one attribute of it."""

    @abstractmethod
    def _reduction(self, asked: "Callable[[str], Mapping[str, str]]", question: Question) -> Found:
        """The aggregates that `asked` gives of the attribute's name, along axes."""

    @property
    @abstractmethod
    def ndim(self) -> int: ...

    @checked(axis=_axis, dtype=_dtype, out=_out, keepdims=flag)
    def sum(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: AnyArray | None = None,
        *,
        keepdims: bool = False,
        box: BoxLike = None,
        where: Any = None,
        progress: Progress = None,
    ) -> Any:
        """The sum along axes, read tile by tile, in bounded memory.

            a.sum(axis=0)
            a.sum("day", where="v > 0")
            np.sum(a["v"], axis=(1, 2))

        Args:
            axis: positions or names of dimensions; None: all.
            dtype: the type of the result; None: int64 or uint64 of integers, of floats their own. Integers are added
                in 128 bits, floats in float64 at least, whatever it is.
            out: an array of the result's shape to fill. What has no value is NaN or NaT in it, or masked.
            keepdims: whether the axes stay, with one position each.
            box: as for `read`; None: the whole domain.
            where: a condition, or an array of booleans of the box's shape: the cells that count.
            progress: True for a bar, or a callable `f(done, total)`.

        Nulls are left out, and NaN counts, as NumPy has it of masked arrays. What has no value is masked.

        Raises:
            InputError: no dimension has the name; several attributes: take one, `a["v"].sum()`; a sum that does not fit
                64 bits; `out` holds integers, and a result has no value.
            AxisError: NumPy's (`numpy.exceptions`): no dimension has the position.
            TypeError: the result does not fit the type of `out`, as NumPy's "same_kind" has it.
            UnsupportedError: a sparse array: ask it with `aggregate`.
        """
        shaped = self._made("sum", axis, box, where, progress, keepdims)
        values = _zeroed(shaped[0]["sum"]) if self._counts_nothing(shaped) else shaped[0]["sum"]
        return _ended(_as_numpy(values, self._own(), dtype), out)

    @checked(axis=_axis, dtype=_dtype, out=_out, keepdims=flag)
    def mean(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: AnyArray | None = None,
        *,
        keepdims: bool = False,
        box: BoxLike = None,
        where: Any = None,
        progress: Progress = None,
    ) -> Any:
        """The mean along axes: float64, or the type of floats. Arguments and errors as of `sum`."""
        made, _ = self._made("mean", axis, box, where, progress, keepdims)
        return _ended(_as_numpy(_nan_where_nothing(made["mean"], self.nullable), self._own(), dtype), out)

    @checked(axis=_axis, out=_out, keepdims=flag)
    def min(
        self,
        axis: Axis = None,
        out: AnyArray | None = None,
        *,
        keepdims: bool = False,
        box: BoxLike = None,
        where: Any = None,
        progress: Progress = None,
    ) -> Any:
        """The least value along axes; NaN if there is one. Arguments and errors as of `sum`; ValueError of no cell."""
        return self._extreme("min", out, self._made("min", axis, box, where, progress, keepdims))

    @checked(axis=_axis, out=_out, keepdims=flag)
    def max(
        self,
        axis: Axis = None,
        out: AnyArray | None = None,
        *,
        keepdims: bool = False,
        box: BoxLike = None,
        where: Any = None,
        progress: Progress = None,
    ) -> Any:
        """The greatest value along axes; NaN if there is one. Arguments and errors as of `min`."""
        return self._extreme("max", out, self._made("max", axis, box, where, progress, keepdims))

    @checked(axis=_axis, out=_out, keepdims=flag)
    def any(
        self,
        axis: Axis = None,
        out: AnyArray | None = None,
        *,
        keepdims: bool = False,
        box: BoxLike = None,
        where: Any = None,
        progress: Progress = None,
    ) -> Any:
        """Whether some value along axes is not zero; NaN is not. Masked where all are null. Arguments and errors as of
        `sum`."""
        made, _ = self._made("bool_or", axis, box, where, progress, keepdims)
        return _ended(made["bool_or"] if self.nullable else np.ma.filled(made["bool_or"], False), out)

    @checked(axis=_axis, out=_out, keepdims=flag)
    def all(
        self,
        axis: Axis = None,
        out: AnyArray | None = None,
        *,
        keepdims: bool = False,
        box: BoxLike = None,
        where: Any = None,
        progress: Progress = None,
    ) -> Any:
        """Whether no value along axes is zero; NaN is not. Masked where all are null. Arguments and errors as of
        `sum`."""
        made, _ = self._made("bool_and", axis, box, where, progress, keepdims)
        return _ended(made["bool_and"] if self.nullable else np.ma.filled(made["bool_and"], True), out)

    @checked(axis=_axis, dtype=_dtype, out=_out, ddof=_ddof, keepdims=flag)
    def var(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: AnyArray | None = None,
        ddof: float = 0,
        *,
        keepdims: bool = False,
        box: BoxLike = None,
        where: Any = None,
        progress: Progress = None,
    ) -> Any:
        """The variance along axes: squared distances from the mean, divided by the number of values less `ddof`.
        Arguments and errors as of `sum`."""
        made, _ = self._made("var_pop", axis, box, where, progress, keepdims, more={"count": "count"})
        return _ended(_as_numpy(_scaled(made, ddof, self.nullable), self._own(), dtype), out)

    @checked(axis=_axis, dtype=_dtype, out=_out, ddof=_ddof, keepdims=flag)
    def std(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: AnyArray | None = None,
        ddof: float = 0,
        *,
        keepdims: bool = False,
        box: BoxLike = None,
        where: Any = None,
        progress: Progress = None,
    ) -> Any:
        """The standard deviation along axes: the root of `var`. Arguments and errors as of `sum`."""
        made, _ = self._made("var_pop", axis, box, where, progress, keepdims, more={"count": "count"})
        return _ended(_as_numpy(np.sqrt(_scaled(made, ddof, self.nullable)), self._own(), dtype), out)

    @property
    @abstractmethod
    def nullable(self) -> bool: ...

    @abstractmethod
    def _own(self) -> np.dtype[Any]:
        """The dtype of the values."""

    def _made(
        self,
        name: str,
        axis: Axis,
        box: BoxLike,
        where: Any,
        progress: Progress,
        keepdims: bool,
        more: Mapping[str, str] | None = None,
    ) -> tuple[dict[str, Any], Found]:
        """Arrays of the axes that remain, masked where there is no value; with `keepdims` of all axes."""

        def asked(attr: str) -> dict[str, str]:
            return {key: f"{call}({quoted(attr)})" for key, call in {name: name, **(more or {})}.items()}

        found = self._reduction(asked, Question(axis, box, where, progress))
        shape = found.shape
        if keepdims:
            sides = dict(zip(found.kept, found.shape, strict=True))
            shape = tuple(sides.get(axis, 1) for axis in range(found.schema.ndim))
        return {key: decode.numpy_of(column).reshape(shape) for key, column in found.columns.items()}, found

    def _counts_nothing(self, made: tuple[dict[str, Any], Found]) -> bool:
        return not self.nullable and any(np.ma.isMaskedArray(values) for values in made[0].values())

    def _extreme(self, name: str, out: AnyArray | None, made: tuple[dict[str, Any], Found]) -> Any:
        values = made[0][name]
        if self._counts_nothing(made) and np.ma.is_masked(values):
            raise ValueError(f"there is no {name} where no cell is: the box is empty, or where= selects none")
        return _ended(values, out)


class ReducibleArray(Reducible, Looking):
    """The part of an array that is reduced along axes."""

    @abstractmethod
    def _pinned(self) -> Any: ...

    @property
    def nullable(self) -> bool:
        """Whether values of the only attribute may be null."""
        return self._reduced_attr().nullable

    def _own(self) -> np.dtype[Any]:
        return datatype.numpy_of(self._reduced_attr().dtype)

    def _reduced_attr(self) -> Attr:
        if len(self._schema.attrs) != 1:
            names = ", ".join(repr(attr.name) for attr in self._schema.attrs)
            first = self._schema.attrs[0].name
            raise InputError(f"the array has several attributes, {names}; take the view of one: a[{first!r}].sum()")
        return self._schema.attrs[0]

    def _reduction(self, asked: "Callable[[str], Mapping[str, str]]", question: Question) -> Found:
        return self._reduced(asked(self._reduced_attr().name), question)

    def _reduced(self, aggregates: Mapping[str, str], question: Question) -> Found:
        def look(schema: Schema) -> Found:
            if schema.sparse:
                raise UnsupportedError(_OF_SPARSE)
            gone = axes_of(schema, question.axis)
            kept = tuple(axis for axis in range(schema.ndim) if axis not in gone)
            box = box_of(schema, question.box)
            cells, texts = _cells_of(question.where, box), texts_of(aggregates)
            if box.is_cut or box.empty:
                self._note_ends()
            if box.empty:
                if cells[0] is not None:
                    cells[0].check(schema.to_json())
                shape = [box.shape[axis] for axis in kept]
                given = _native.reduce_nothing(schema.to_json(), texts, kept, math.prod(shape))
                _, found, categories, stats = given
            else:
                with reporting(question.progress, "reading") as report:
                    shape, found, categories, stats = _native.reduce(
                        self.native, [box.native], cells, texts, list(kept), report
                    )
            self._stats = stats
            return Found(schema, box, kept, tuple(shape), named_columns(schema, found, categories), stats)

        return self._retry_if_schema_moved(look)

    @overload
    def reduce(
        self,
        aggregates: Mapping[str, str],
        axis: Axis = ...,
        box: BoxLike = ...,
        where: Where | AnyArray | None = ...,
        *,
        to: None = ...,
        progress: Progress = ...,
    ) -> Result: ...
    @overload
    def reduce(
        self,
        aggregates: Mapping[str, str],
        axis: Axis = ...,
        box: BoxLike = ...,
        where: Where | AnyArray | None = ...,
        *,
        to: str | os.PathLike[str],
        progress: Progress = ...,
    ) -> Self: ...
    @checked(aggregates=mapping, axis=_axis, to=place)
    def reduce(
        self,
        aggregates: Mapping[str, str],
        axis: Axis = None,
        box: BoxLike = None,
        where: Where | AnyArray | None = None,
        *,
        to: str | os.PathLike[str] | None = None,
        progress: Progress = None,
    ) -> "Result | Self":
        """Aggregates along axes of a dense array: the other dimensions remain.

            a.reduce({"mean": "mean(t)", "top": "max(t)"}, axis="day").to_numpy()
            a.reduce({"mean": "mean(t)"}, axis="day", to="means.gs")

        Args:
            aggregates: as for `aggregate`, but for those that need all values at once.
            axis: positions or names of dimensions; None: all.
            box: as for `read`.
            where: a condition, or an array of booleans of the box's shape: the cells that count.
            to: write the results into a new dense array, in one commit: a store, or `'store.gs:/path'`. The dimensions
                that remain keep tiles, labels and metadata, and their domain is that of the box. Results are computed
                block by block, however many there are.
            progress: True for a bar, or a callable `f(done, total)`.

        Returns:
            A `Result`; with `to` the new array.

        Raises:
            InputError: no dimension has the name; an aggregate that does not fit; with `to`, a box without a cell.
            AxisError: NumPy's (`numpy.exceptions`): no dimension has the position.
            ExistsError: something lies at `to`.
            UnsupportedError: a sparse array.
        """
        if to is not None:
            return self._reduced_to(aggregates, Question(axis, box, where, progress), os.fspath(to))
        found = self._reduced(aggregates, Question(axis, box, where, progress))
        budget = self._context.memory_budget
        if not found.kept:
            return answer_of(found.columns, found.stats, budget)
        return reduced_of(found.schema, found.box, found.kept, found.columns, found.stats, budget)

    def _reduced_to(self, aggregates: Mapping[str, str], question: Question, to: str) -> Self:
        """The array of the results of a reduction."""
        from .reduction import Written, written

        source = self if self.native.in_transaction else self._pinned()
        schema = source._schema
        if schema.sparse:
            raise UnsupportedError(_OF_SPARSE)
        gone = axes_of(schema, question.axis)
        box = box_of(schema, question.box)
        condition, mask = _cells_of(question.where, box)
        if box.is_cut or box.empty:
            self._note_ends()
        if box.empty:
            raise InputError(_NOTHING)
        kept = tuple(axis for axis in range(schema.ndim) if axis not in gone)
        where = question.where
        if mask is not None:
            where = np.frombuffer(mask, np.bool_).reshape(box.shape)
        elif condition is None:
            where = None
        asked = Written(source, box, kept, texts_of(aggregates), where)
        made: Self = written(asked, condition, to, question.progress)
        return made


def axes_of(schema: Schema, axis: Axis) -> set[int]:
    """The places of axes given by place or name."""
    if axis is None:
        return set(range(schema.ndim))
    names = [dim.name for dim in schema.dims]
    given = [axis] if isinstance(axis, int | str | np.integer) else list(axis)
    places = []
    for one in given:
        if isinstance(one, str):
            known("axis", one, tuple(names))
            places.append(names.index(one))
            continue
        place = index(one)
        if not -(2**31) < place < 2**31:
            raise InputError(f"axis={brief(axis)}: the array has {schema.ndim} dimensions")
        if not -schema.ndim <= place < schema.ndim:
            raise np.exceptions.AxisError(place, schema.ndim)
        places.append(place % schema.ndim)
    if len(set(places)) < len(places):
        raise InputError(f"axis= names an axis twice: {brief(axis)}")
    return set(places)


def check(schema: Schema, texts: list[tuple[str, str]], question: Question, *, is_written: bool) -> tuple[int, ...]:
    """The axes that go; what a reduction refuses before it reads is refused."""
    if schema.sparse:
        raise UnsupportedError(_OF_SPARSE)
    gone, box = axes_of(schema, question.axis), box_of(schema, question.box)
    if is_written and box.empty:
        raise InputError(_NOTHING)
    _cells_of(question.where, box)
    _native.reduce_nothing(schema.to_json(), texts, [axis for axis in range(schema.ndim) if axis not in gone], 1)
    return tuple(sorted(gone))


def _cells_of(where: Any, box: Box) -> "tuple[_native.Condition | None, bytes | None]":
    if where is None or where is True:
        return None, None
    if isinstance(where, str | Expression):
        return condition_of(where), None
    flags = np.asanyarray(where)
    if flags.dtype != np.bool_:
        raise InputError(f"where= takes a condition or an array of booleans, not {brief(where)}")
    try:
        whole = np.broadcast_to(np.ma.filled(flags, False), box.shape)
    except ValueError:
        raise InputError(f"where= has the shape {flags.shape}, the box {box.shape}") from None
    return None, np.ascontiguousarray(whole).tobytes()


def _as_numpy(values: Any, own: np.dtype[Any], dtype: Any) -> Any:
    """Results in the type that NumPy gives: floats stay as wide as the values are."""
    if dtype is not None:
        return values.astype(dtype)
    if own.kind == "f" and values.dtype.kind == "f":
        return values.astype(own)
    return values


def _zeroed(values: Any) -> Any:
    return np.ma.filled(values, 0)


def _nan_where_nothing(values: Any, nullable: bool) -> Any:
    """NumPy's NaN (or NaT) for the mean of nothing, unless values may be null: there it is masked."""
    if nullable or not np.ma.isMaskedArray(values):
        return values
    missing: Any = np.array("NaT", values.dtype) if values.dtype.kind in "mM" else np.nan
    return np.ma.filled(values, missing)


def _scaled(made: Mapping[str, Any], ddof: float, nullable: bool) -> Any:
    """Variances of all values as those with `ddof` less; those of too few are none, NaN or masked."""
    count = made["count"]
    variances = _nan_where_nothing(made["var_pop"], nullable)
    if ddof == 0:
        return variances
    free = np.maximum(count - ddof, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = variances * (count / free)
    return np.ma.masked_where(free <= 0, scaled) if nullable else scaled


def _ended(values: Any, out: AnyArray | None) -> Any:
    """A scalar where no axis remains; the values in `out` if that is given."""
    if out is not None:
        if out.shape != values.shape:
            raise ValueError(f"out= has the shape {out.shape}, the result {values.shape}")
        if not np.can_cast(values.dtype, out.dtype, "same_kind"):
            raise TypeError(f"out= holds {out.dtype}, which takes no {values.dtype}; give out= of {values.dtype}")
        _filled(out, values)
        return out
    return values[()] if values.ndim == 0 else values


def _filled(out: AnyArray, values: Any) -> None:
    """Puts results into `out`; what has no value is masked there, NaN or NaT."""
    if isinstance(out, np.ma.MaskedArray) or not np.ma.is_masked(values):
        out[...] = values
        return
    if out.dtype.kind not in "fcmM":
        raise InputError(
            f"a result has no value, and out= holds {out.dtype}, which has none for that; give a masked array, "
            f"out=np.ma.zeros({out.shape}, {str(out.dtype)!r}), or one of floats"
        )
    out[...] = np.ma.getdata(values)
    out[np.ma.getmaskarray(values)] = np.nan if out.dtype.kind in "fc" else np.array("NaT", out.dtype)
