"""Deletes cells by box, by condition or by coordinates."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, overload

from .. import _native
from ..base.arguments import checked
from ..base.progress import Progress, reporting
from ..errors import InputError
from ..query.box import BoxLike, Room, region_of
from ..query.condition import condition_of
from ..schema.array_schema import Schema
from ..version.receipt import Closing, CommitKey, Message, NoCommit, Receipt, closing, key_of, message_of
from ..write.input import coordinate_columns
from .noting import Noting


class Erasable(Noting):
    """The part of an array that deletes cells."""

    @property
    @abstractmethod
    def _schema(self) -> Schema: ...

    @abstractmethod
    def _writable(self, *, judged: bool = ...) -> "_native.Array": ...

    @abstractmethod
    def _commit(self, staged: Sequence["_native.Staged"], message: Closing) -> int | Receipt: ...

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
    ) -> int: ...
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
    @checked()
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
    ) -> int | Receipt:
        """Deletes cells. A deleted dense cell reads as never written.

        Args:
            box: every cell in it that was written before the commit, by others too (as in `read`), those beyond the
                domain that this handle knows among them; with `where` only the cells that it selects. A list of boxes:
                the cells in any of them; of no box, none.
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

        Returns:
            The version committed; the present one if there is nothing to delete.

        Raises:
            InputError: nothing is named, coords together with another argument, or a condition that does not fit the
                schema.
            ConflictError: the key was given to other content.
        """
        ending = closing(message, commit, commit_key)
        key = key_of(ending)
        if coords is not None:
            if box is not None or where is not None:
                raise InputError("coords say all of what is deleted; give them without box and where")
            return self._delete_at(coords, ending, progress)
        if box is None and where is None:
            raise InputError(
                "say what to delete: box=, where= or coords=; a box of every cell is (...,), an array is removed with "
                "its store by gridstone.delete(uri)"
            )
        native = self._writable(judged=where is not None)
        if where is None:
            # As it was asked: it holds for cells, too, that other commits have made room for meanwhile.
            asked = region_of(self._schema, box, Room.TYPE)
            return self._commit([] if asked.empty else [native.stage_delete_boxes(asked.given, key)], ending)
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
            staged = native.stage_delete(places, report, key_of(ending))
        return self._commit([staged], ending)
