"""Results and streams as data frames, and as sparse matrices of SciPy and pydata/sparse."""

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..base import drawer
from ..base.arguments import among, checked, file, known, mapping, several, text
from ..base.extras import needed
from ..base.printable import brief
from ..column import datatype, decode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..errors import InputError, UnsupportedError
from ..query.box import Box
from ..schema.array_schema import Schema
from .selection import Selection, placed, runs, segments

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_REPEATS = ("last", "first", "sum", "error")


class Readout(Protocol):
    """The cells of one read, as `Result` holds them."""

    _schema: Schema
    _box: Box
    _names: tuple[str, ...]
    _columns: dict[str, Column]
    _shape: tuple[int, ...] | None
    _order: str
    _chosen: Selection | None

    @property
    def _sides(self) -> tuple[int, ...]: ...

    def _dense_column(self, name: str) -> AnyArray: ...

    def _positions(self) -> tuple[AnyArray, ...]: ...

    def _position_along(self, axis: int) -> AnyArray: ...


class Tabular:
    """Data frames of whatever has `to_arrow()`."""

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> "pa.Table":
        """The cells as a table."""

    def to_pandas(self) -> "pd.DataFrame":
        """One row per cell, as `to_arrow()`, no value rounded.

        Integers that have a null are of pandas' nullable types, "Int8" to "UInt64", and booleans "boolean"; columns
        without a null are NumPy's. Floats and complex numbers are NaN where null, times NaT.
        """
        from ..column import pandas

        needed("pandas", "pandas", "to_pandas()")
        return pandas.pandas_of(self.to_arrow())

    def to_polars(self) -> "pl.DataFrame":
        """One row per cell, as `to_arrow()`; times in seconds become milliseconds, which polars has instead."""
        polars = needed("polars", "polars", "to_polars()")
        return polars.from_arrow(self.to_arrow())  # type: ignore[no-any-return]


class Drawn:
    """Pictures of a result."""

    __slots__ = ()

    @checked(target=file, attr=text, keys=several, widths=mapping, title=text, theme=text)
    def plot(
        self,
        target: str | os.PathLike[str] | None = None,
        *,
        attr: str | None = None,
        keys: Sequence[str] | None = None,
        widths: Mapping[str, Any] | None = None,
        title: str | None = None,
        theme: str = "dark",
    ) -> Any:
        """Draws the cells: `a.sel(day="2026-03-01")["t"].plot()`.

        A dense box of two sides is an image, one of one side a line, sides of one cell left out. Cells of a list are a
        map of their density over the first two dimensions. An answer by groups is drawn as `gs.chart.chart` does it,
        with `keys` and `widths`: `found.plot("hours.png", keys=["kind"])`.

        Args:
            target: the file: .png, .svg, .pdf, .jpg, .tif or .webp; None: no file is written.
            attr: of a dense box: the attribute to show; None: the only one.
            keys: of an answer: the columns that are keys, one or two.
            widths: of an answer: the widths of bins by key.
            title: above the picture.
            theme: "dark" or "light".

        Returns:
            The path of the file; without one a figure of matplotlib, which a notebook shows.

        Raises:
            InputError: no keys of an answer, more than two sides, several attributes and none chosen, a wrong format.
            UnsupportedError: values without colours; matplotlib is missing.
        """
        told = {"attr": attr, "keys": keys, "widths": widths, "title": title, "theme": theme}
        return drawer.draw("result", self, target, **told)


def to_scipy(result: Readout, attr: str | None, repeats: str, form: str | None) -> Any:
    """See `Result.to_scipy`."""
    sparse = needed("scipy.sparse", "scipy", "to_scipy()")
    if form is not None:
        known("format", form, ("csr", "csc", "coo"))
    known("repeats", repeats, _REPEATS)
    name, shape = _attribute(result, attr, "to_scipy()"), result._sides
    if len(shape) != 2:
        raise UnsupportedError(
            f"to_scipy() makes a matrix, the result has {len(shape)} dimensions; use to_sparse() or to_dense()"
        )
    _check_type(result, name, "SciPy's sparse arrays")
    if result._shape is not None:
        return sparse.csr_array(_without_nulls(name, result._dense_column(name))).asformat(form or "csr")
    if form == "csr":
        parts = _csr_parts(result, name)
        if parts is not None:
            return sparse.csr_array(parts, shape=shape)
    places, values = _triplets(result, name, repeats)
    return sparse.coo_array((values, places), shape=shape).asformat(form or "coo")


_ROWS_MIN = 1 << 16


def _csr_parts(result: Readout, name: str) -> tuple[AnyArray, AnyArray, AnyArray] | None:
    """Values, columns and ends of rows of a CSR matrix of chosen positions, without a look at each cell's row. None
    where that cannot be: cells at one place, repeated columns, many rows of few cells."""
    if result._chosen is None or result._schema.duplicates:
        return None
    rows, across = result._chosen
    held = result._columns[result._schema.dims[0].name].values
    if rows is None or across is None or across.repeats or rows.count > max(_ROWS_MIN, held.size):
        return None
    found = segments(rows, held, int(result._box.bounds[0][0]))
    if found is None:
        return None
    values = _without_nulls(name, decode.numpy_of(result._columns[name]))
    (columns,), _ = placed((across,), (result._position_along(1),))
    firsts, counts = found
    ends = np.concatenate([[0], np.cumsum(counts)])
    if not np.array_equal(firsts, ends[:-1]):
        at = runs(firsts, counts)
        columns, values = columns[at], values[at]
    return values, columns, ends


def to_sparse(result: Readout, attr: str | None, repeats: str) -> Any:
    """See `Result.to_sparse`."""
    sparse = needed("sparse", "sparse", "to_sparse()")
    name = _attribute(result, attr, "to_sparse()")
    _check_type(result, name, "pydata/sparse")
    fill = datatype.numpy_of(result._schema.attr(name).dtype).type(result._schema.attr(name).fill)
    if result._shape is not None:
        return sparse.COO.from_numpy(_without_nulls(name, result._dense_column(name)), fill_value=fill)
    places, values = _triplets(result, name, repeats)
    return sparse.COO(np.array(places, np.int64), values, shape=result._sides, fill_value=fill, has_duplicates=False)


def only_attribute(result: Readout, what: str) -> str:
    """The name of the one attribute; an `InputError` if there are several."""
    names = _names(result, what)
    if len(names) != 1:
        raise InputError(f"{what} takes one attribute, the result has {names}; read one: a.read(attrs={names[0]!r})")
    return names[0]


def _names(result: Readout, what: str) -> list[str]:
    if not result._names:
        raise InputError(f"{what} shows attributes, and none was read; leave out attrs=[]")
    return list(result._names)


def _attribute(result: Readout, attr: str | None, what: str) -> str:
    names = _names(result, what)
    if attr is None and len(names) == 1:
        return names[0]
    if attr is None:
        raise InputError(f"the result has the attributes {names}; say which one: {what[:-1]}attr={names[0]!r})")
    if not among(attr, names):
        raise InputError(f"the result has no attribute {brief(attr)}; there are {', '.join(map(repr, names))}")
    return attr


def _check_type(result: Readout, name: str, library: str) -> None:
    kind = result._schema.attr(name).dtype
    if not datatype.is_primitive(kind) or datatype.is_time(kind):
        raise UnsupportedError(
            f"attribute {name!r} is {kind}, which {library} cannot hold; use to_arrow() or to_dense()"
        )


def _without_nulls(name: str, values: AnyArray) -> AnyArray:
    if np.ma.isMaskedArray(values):
        if np.ma.getmaskarray(values).any():
            raise InputError(
                f"attribute {name!r} has nulls, which a sparse array cannot hold; use to_arrow(), or to_dense(fill=…)"
            )
        return np.ma.getdata(values)
    return values


def _triplets(result: Readout, name: str, repeats: str) -> tuple[tuple[AnyArray, ...], AnyArray]:
    """The positions of the cells in the result's sides, an array per dimension, and their values; each place once."""
    known("repeats", repeats, _REPEATS)
    shape = result._sides
    if any(size > np.iinfo(np.int64).max for size in shape):
        raise UnsupportedError(f"a box of shape {shape} has more positions than 64 bits count; read a smaller box")
    places, values = _once(result, name, repeats)
    at, cells = placed(result._chosen, places)
    return at, values[cells]


def _once(result: Readout, name: str, repeats: str) -> tuple[tuple[AnyArray, ...], AnyArray]:
    """The positions of the cells in the box, and their values; each position once."""
    values, places = _without_nulls(name, decode.numpy_of(result._columns[name])), result._positions()
    if len(values) == 0 or (result._order == "row" and _ascend(places)):
        return places, values
    order = np.lexsort(places[::-1])
    ranked = [place[order] for place in places]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = np.any([place[1:] != place[:-1] for place in ranked], axis=0)
    if fresh.all():
        return places, values
    starts = np.flatnonzero(fresh)
    if repeats == "error":
        at = tuple(int(place[starts[np.argmax(np.diff([*starts, len(order)]) > 1)]]) for place in ranked)
        raise InputError(f'several cells lie at position {at} of the box; choose repeats="last", "first" or "sum"')
    if repeats == "sum":
        summed: Any = np.add if values.dtype.kind != "b" else np.logical_or
        return tuple(place[starts] for place in ranked), summed.reduceat(values[order], starts).astype(values.dtype)
    # The sort is stable, and cells at one place come in the order they were written in.
    chosen = order[starts] if repeats == "first" else order[np.append(starts[1:], len(order)) - 1]
    chosen = np.sort(chosen)
    return tuple(place[chosen] for place in places), values[chosen]


def _ascend(places: tuple[AnyArray, ...]) -> bool:
    """Whether positions are in row order, each once."""
    # From the last dimension on: behind, or level and ascending along those that follow.
    ascending = np.zeros(len(places[0]) - 1, np.bool_)
    for place in reversed(places):
        ascending = (place[1:] > place[:-1]) | ((place[1:] == place[:-1]) & ascending)
    return bool(ascending.all())
