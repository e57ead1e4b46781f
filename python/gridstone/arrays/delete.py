"""Deletes cells by box, by condition or by coordinates."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

from .. import _native
from ..base.arguments import checked, flag
from ..base.progress import Progress, reporting
from ..column import decode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..errors import BoundsError, InputError
from ..query.box import BoxLike, Room, region_of
from ..query.condition import condition_of
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..version.change import Change
from ..version.receipt import Closing, CommitKey, Message, NoCommit, Receipt, closing, key_of, message_of
from ..write.input import coordinate_columns
from . import attempt
from .noting import Noting

_FOR_WRITES = "let it grow with the write (grow=True), or leave the row out"
"""What the core advises of coordinates outside the domain."""


class Erasable(Noting):
    """The part of an array that deletes cells."""

    @property
    @abstractmethod
    def _schema(self) -> Schema: ...

    @abstractmethod
    def _writable(self, *, judged: bool = ...) -> "_native.Array": ...

    @abstractmethod
    def _commit(self, staged: Sequence["_native.Staged"], message: Closing) -> int | Receipt: ...

    @property
    @abstractmethod
    def version(self) -> int: ...

    @property
    @abstractmethod
    def stats(self) -> dict[str, int]: ...

    @abstractmethod
    def refresh(self) -> int: ...

    @abstractmethod
    def _begun(self, key: tuple[bytes, bool] | None) -> "tuple[Any, _native.Transaction] | None": ...

    @abstractmethod
    def _noted_stats(self, stats: Mapping[str, int]) -> None: ...

    @abstractmethod
    def points(self, coords: Any, attrs: Sequence[str] | str | None = ..., *, progress: Progress = ...) -> Result: ...

    @abstractmethod
    def count(self, box: BoxLike = ..., where: Any = ..., *, progress: Progress = ...) -> int: ...

    @overload
    def delete(
        self,
        box: BoxLike = ...,
        where: Any = ...,
        coords: Any = ...,
        *,
        message: Message = ...,
        progress: Progress = ...,
        commit: Literal[True] = ...,
        commit_key: CommitKey = ...,
        count: bool = ...,
        dry_run: bool = ...,
    ) -> Change: ...
    @overload
    def delete(
        self,
        box: BoxLike = ...,
        where: Any = ...,
        coords: Any = ...,
        *,
        progress: Progress = ...,
        commit: Literal[False],
    ) -> Receipt: ...
    @checked(count=flag)
    def delete(
        self,
        box: BoxLike = None,
        where: Any = None,
        coords: Any = None,
        *,
        message: Message = None,
        progress: Progress = None,
        commit: bool = True,
        commit_key: CommitKey = None,
        count: bool = False,
        dry_run: bool = False,
    ) -> Change | Receipt:
        """Deletes cells. A deleted dense cell reads as never written.

        Args:
            box: every cell in it that was written before the commit, by others too. Cells beyond the domain that this
                handle knows are among them, up to an end that is left open as well. With `where` only the cells that it
                selects in the domain that the handle knows. A list of boxes: the cells in any of them; of no box, none.
            where: the cells for which a condition is true, as a text or made with `gs.col`: those that this handle
                sees; what others commit meanwhile stays (if fragments are merged meanwhile, of a dense array with newer
                ones, all is looked at again). In a transaction: those that it sees, what it has staged before among
                them; what it stages later is not. With `commit=False`: those that this handle sees now, whenever the
                receipt is committed.
            coords: the cells at these coordinates (as in `write_cells`), alone.
            message: kept with the version.
            progress: True for a bar, or a callable `f(done, total)`: cells looked at, or written; of a box nothing is.
            commit: as in `write`. A receipt for a delete by condition is refused where the fragments that it looked at
                have been merged by then (of a dense array: with newer ones): `refresh()` and make it again.
            commit_key: as in `write`. A delete that finds nothing commits nothing, and keeps no key.
            count: whether the cells that go are counted. They are those of the version before the commit: with `where`
                of the newest one, to which the handle moves first. If others change some of them meanwhile, all is
                counted and deleted anew. Unwritten cells of a dense array count too, as they read.
            dry_run: only count what would be deleted of what this handle sees; nothing is changed.

        Returns:
            The version committed, an `int`; the present one if there is nothing to delete. Its `cells` is their number,
            or None if they were not counted.

                a.delete(where="sog > 100", count=True).cells

        Raises:
            InputError: nothing is named, coords together with another argument, or a condition that does not fit the
                schema.
            ConflictError: the key was given to other content.
        """
        ending = closing(message, commit, commit_key)
        _check_named(box, where, coords)
        if dry_run:
            if not commit:
                raise InputError("dry_run=True changes nothing, so that there is no receipt: leave commit=False out")
            return Change(self.version, self._count_of(box, where, coords))
        if count:

            def counted(array: Any, closes: Closing) -> Change:
                cells = array._count_of(box, where, coords)
                return Change(array._deleted(box, where, coords, closes, progress), cells)

            return attempt.committed(self, ending, counted)
        made = self._deleted(box, where, coords, ending, progress)
        return made if isinstance(made, Receipt) else Change(made)

    def _deleted(self, box: BoxLike, where: Any, coords: Any, ending: Closing, progress: Progress) -> int | Receipt:
        """Deletes, as `delete` does."""
        key = key_of(ending)
        if coords is not None:
            return self._delete_at(coords, ending, progress)
        native = self._writable(judged=where is not None)
        if where is None:
            # As it was asked, open ends as far as the types reach: it holds for cells, too, that others have made room
            # for meanwhile.
            asked = region_of(self._schema, box, Room.RECORDED)
            return self._commit([] if asked.empty else [native.stage_delete_boxes(asked.native, key)], ending)
        region = region_of(self._schema, box)
        self._note_cut(region)
        if region.empty:
            return Receipt(native.receipt([])) if isinstance(ending, NoCommit) else native.version
        with reporting(progress, "looking", "cells") as report:
            if isinstance(ending, NoCommit):
                return Receipt(native.receipt_where(region.given, condition_of(where), report))
            return native.delete_where(region.given, condition_of(where), message_of(ending), report, key)

    def _delete_at(self, coords: Any, ending: Closing, progress: Progress) -> int | Receipt:
        dims = coordinate_columns(self._schema, coords)
        native = self._writable()
        if len(next(iter(dims.values()))) == 0:
            return self._commit([], ending)
        with reporting(progress, "deleting", "cells") as report:
            places = [column.native() for column in dims.values()]
            try:
                staged = native.stage_delete(places, report, key_of(ending))
            except BoundsError as error:
                raise BoundsError(str(error).replace(_FOR_WRITES, "no cell lies there: leave the row out")) from None
        return self._commit([staged], ending)

    def _count_of(self, box: BoxLike, where: Any, coords: Any) -> int:
        """How many cells these arguments of `delete` choose."""
        if coords is None:
            return self.count(box, where)
        places = _distinct(coordinate_columns(self._schema, coords))
        return len(self.points(places, [] if self._schema.sparse else self._schema.attrs[0].name))


def _check_named(box: BoxLike, where: Any, coords: Any) -> None:
    """An `InputError` unless it is said what to delete, once."""
    if coords is not None and (box is not None or where is not None):
        raise InputError("coords say all of what is deleted; give them without box and where")
    if coords is None and box is None and where is None:
        raise InputError(
            "say what to delete: box=, where= or coords=; a box of every cell is (...,), an array is removed with "
            "its store by gridstone.delete(uri)"
        )


def _distinct(dims: Mapping[str, Column]) -> dict[str, AnyArray]:
    """Coordinates, each place once."""
    given = {name: decode.numpy_of(column) for name, column in dims.items()}
    codes = np.array([np.unique(values, return_inverse=True)[1].ravel() for values in given.values()])
    _, firsts = np.unique(codes, axis=1, return_index=True)
    return {name: values[firsts] for name, values in given.items()}
