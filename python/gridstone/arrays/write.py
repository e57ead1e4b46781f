"""Writes cells and streams of cells. Every call commits one version and returns its number."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

from .. import _native
from ..base.arguments import checked, flag, known
from ..base.printable import brief
from ..base.progress import Progress, reporting
from ..column.columns import Column
from ..errors import InputError
from ..query.box import Box, BoxLike, Room, box_of
from ..schema.array_schema import Schema
from ..version import receipt
from ..version.receipt import Closing, CommitKey, Message, Receipt
from ..write.input import of_cells
from ..write.writer import Writer
from .append import Appendable, Appender, appender

_DEDUPS = ("error", "first", "last")


class Writable(Appendable):
    """The part of an array that writes."""

    @property
    @abstractmethod
    def schema(self) -> Schema: ...

    @property
    @abstractmethod
    def native(self) -> "_native.Array": ...

    @abstractmethod
    def _writable(self) -> "_native.Array": ...

    @abstractmethod
    def _commit(self, staged: Sequence["_native.Staged"], message: Closing) -> int | Receipt: ...

    @abstractmethod
    def _names(self, attrs: Sequence[str] | str | None) -> list[str]: ...

    @overload
    def write_cells(
        self,
        coords: Any,
        attrs: Any = ...,
        *,
        sorted: bool = ...,
        dedup: str = ...,
        grow: bool = ...,
        message: Message = ...,
        progress: Progress = ...,
        commit_key: CommitKey = ...,
    ) -> int: ...
    @overload
    def write_cells(
        self,
        coords: Any,
        attrs: Any = ...,
        *,
        sorted: bool = ...,
        dedup: str = ...,
        grow: bool = ...,
        progress: Progress = ...,
        commit: Literal[False],
    ) -> Receipt: ...
    @checked()
    def write_cells(
        self,
        coords: Any,
        attrs: Any = None,
        *,
        sorted: bool = False,
        dedup: str = "error",
        grow: bool = False,
        message: Message = None,
        progress: Progress = None,
        commit: bool = True,
        commit_key: CommitKey = None,
    ) -> int | Receipt:
        """Writes single cells, of a sparse array or into a dense one.

        Args:
            coords: coordinates: a dict by dimension, an (n, ndim) array or a tuple of arrays; or, without `attrs`, one
                Arrow table or data frame with a column for each dimension and attribute. An attribute of a sparse
                array without a column is null or its own fill; one that may be neither is an error.
            attrs: values: a dict by attribute, or one array if there is one attribute. A dense array takes a subset.
            sorted: the cells are in global order already.
            dedup: what to do with several cells at one place: "error", or keep the "first" or "last".
            grow: whether the domain grows, in the same commit, to take in cells beyond it. Beyond an end that is open
                it does so anyway.
            message: kept with the version.
            progress: True for a bar, or a callable `f(done, total)`.
            commit, commit_key: as in `write`.

        Returns:
            The version committed.

        Raises:
            InputError: values that do not fit; names the attribute and row.
            BoundsError: a coordinate outside the domain, unless it grows.
            ConflictError: the key was given to other content.
        """
        flag("grow", grow)
        dims, values = of_cells(self._schema, coords, attrs)
        closing = receipt.closing(message, commit, commit_key)
        if len(next(iter(dims.values()))) == 0:
            return self._commit([], closing)
        return self._stage_cells(
            dims, values, sorted=sorted, dedup=dedup, grow=grow, message=closing, progress=progress
        )

    def _write_table(self, table: Any, message: Message, progress: Progress, commit_key: CommitKey) -> int:
        return self.write_cells(table, grow=True, message=message, progress=progress, commit_key=commit_key)

    @overload
    def writer(
        self,
        box: BoxLike = ...,
        order: str = ...,
        *,
        attrs: str | Sequence[str] | None = ...,
        dedup: str = ...,
        grow: bool = ...,
        message: Message = ...,
        progress: Progress = ...,
        commit: bool = ...,
        commit_key: CommitKey = ...,
    ) -> Writer: ...
    @overload
    def writer(
        self, *, axis: int | str, every: int | None = ..., seconds: float | None = ..., message: Message = ...
    ) -> Appender: ...
    @checked()
    def writer(
        self,
        box: BoxLike = None,
        order: str = "global",
        *,
        axis: int | str | None = None,
        every: int | None = None,
        seconds: float | None = None,
        attrs: str | Sequence[str] | None = None,
        dedup: str = "error",
        grow: bool = False,
        message: Message = None,
        progress: Progress = None,
        commit: bool = True,
        commit_key: CommitKey = None,
    ) -> Writer | Appender:
        """A context manager that streams cells into one commit: `with a.writer() as w: w.append(...)`; or, with
        `axis=`, appends frames as they come, in a commit for each `every` of them.

        Args:
            box: dense, in global order: the box that the fragment covers; None: the whole domain. Else None.
            order: "global": pieces follow each other in global order and become one fragment. "any": cells with their
                coordinates in any order, of a sparse array or into a dense one; more than memory holds are sorted part
                by part in the store and merged at the end.
            attrs: the attributes that come, of a dense array some if need be, the others stay as they are; None: all.
            dedup: with order="any": what to do with several cells at one place, of all pieces: "error", or keep the
                "first" or "last".
            grow: whether the domain grows, in the same commit, to take in cells beyond it. Beyond an end that is open
                it does so anyway.
            axis: of a dense array, an axis (number or name) along which frames are appended: see `Appender`.
            every, seconds: with axis=: a commit for so many positions, or once the oldest one held is so old.
            message: kept with the version.
            progress: True for a bar, or a callable `f(done, total)`: cells appended; the total is 0 until all
                are written, just before the commit.
            commit: False: leaving the block commits nothing; `w.receipt` is for `gridstone.commit` then.
            commit_key: as in `write`; how the cells are cut into pieces does not matter. If a commit had the key
                before, nothing is written, and leaving the block is a `ConflictError` unless the same was appended.
        """
        flag("grow", grow)
        if axis is not None:
            return self._appender(axis, every, seconds, message)
        if every is not None or seconds is not None:
            raise InputError("every= and seconds= are for frames that are appended: give axis= too")
        known("order", order, ("global", "any"))
        known("dedup", dedup, _DEDUPS)
        unsorted = order == "any"
        if box is not None and (self.sparse or unsorted):
            raise InputError("cells say themselves where they are: leave box=None")
        closing, wanted = receipt.closing(message, commit, commit_key), self._names(attrs)
        names = [attr.name for attr in self._schema.attrs if attr.name in wanted]
        if unsorted:
            native = self._writable().unsorted_writer(names, dedup, receipt.given_key(closing), grow)
            return Writer(self, native, None, names, closing, progress)
        if dedup != "error":
            raise InputError('cells in global order ascend: dedup= is for order="any"')
        within = None if self.sparse else box_of(self._schema, box, Room.TYPE if grow else Room.OPEN)
        if within is not None and within.empty:
            raise InputError(f"the box {brief(box)} is empty: no coordinate lies in it; there is nothing to write")
        return self._writer(within, names, closing, progress, grow)

    def _writer(
        self, box: Box | None, names: Sequence[str], closing: Closing, progress: Progress, grow: bool = False
    ) -> Writer:
        """Streams cells into one fragment: those of a box of a dense array, or sparse ones (None)."""
        bounds = None if box is None else [(lo, hi) for lo, hi, _ in box.given]
        native = self._writable().writer(bounds, list(names), receipt.given_key(closing), grow)
        return Writer(self, native, box, names, closing, progress)

    def _appender(self, axis: int | str, every: int | None, seconds: float | None, message: Message) -> Appender:
        if self.sparse:
            raise InputError("axis= is for dense arrays; append a table to a sparse one, or stream with order='any'")
        self._writable()
        return appender(self, axis, every, seconds, message)

    def _stage_box(
        self,
        box: Box,
        made: Mapping[str, Any],
        layout: str,
        message: Closing,
        progress: Progress,
        grow: bool = False,
    ) -> int | Receipt:
        with reporting(progress, "writing") as report:
            staged = self._writable().stage_dense(box.bounds, made, layout, report, receipt.key_of(message), grow)
        return self._commit([staged], message)

    def _stage_cells(
        self,
        dims: Mapping[str, Column],
        values: Mapping[str, Column],
        *,
        sorted: bool,
        dedup: str,
        grow: bool = False,
        message: Closing,
        progress: Progress,
    ) -> int | Receipt:
        known("dedup", dedup, _DEDUPS)
        native = {name: column.native() for name, column in values.items()}
        places = [column.native() for column in dims.values()]
        with reporting(progress, "writing") as report:
            key = receipt.key_of(message)
            staged = self._writable().stage_cells(places, native, sorted, dedup, report, key, grow)
        return self._commit([staged], message)

    def _write_positions(
        self, chosen: Sequence["_native._Chosen"], mask: "_native._Mask | None", values: Mapping[str, Column]
    ) -> None:
        native = {name: column.native() for name, column in values.items()}
        self._commit([self._writable().stage_positions(chosen, mask, native)], None)
