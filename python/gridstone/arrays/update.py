"""Changes values of the cells that a condition selects, in one commit and in bounded memory.

1. Cells are read in global order, with their old values, and written with the new ones: a sparse cell whole, of a dense
   one the attributes that change.
2. Where places may have several cells, those that were read are deleted in the same commit; others at their places
   stay. Elsewhere the newer cell takes the place of the older one.
3. `attempt` repeats that if another commit wrote to one of the cells meanwhile.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from .. import _native
from ..base.arguments import checked, mapping
from ..base.progress import Progress
from ..errors import InputError
from ..query.box import Box, BoxLike, box_of, region_of
from ..query.condition import Where, condition_of
from ..schema.array_schema import Schema
from ..version import receipt
from ..version.change import Change
from ..version.receipt import Closing, CommitKey, Message
from ..write.writer import Writer
from . import attempt
from .assignment import Assignment, names_of
from .delete import Erasable

_BATCH_BYTES_MAX = 64 << 20
_BUDGET_PARTS = 16


class Updatable(Erasable):
    """The part of an array that changes values of cells."""

    @checked(values=mapping)
    def update(
        self,
        values: Mapping[str, Any],
        where: Where | None = None,
        box: BoxLike = None,
        *,
        message: Message = None,
        progress: Progress = None,
        commit_key: CommitKey = None,
        dry_run: bool = False,
    ) -> Change:
        """Changes attributes of the cells that a condition or a box chooses, in one commit.

            a.update({"sog": "sog * 0.5", "mmsi": 999, "status": gs.lit("moored")}, where="mmsi == 123456789")

        Args:
            values: by the name of an attribute its new value: a text is an expression of attributes and dimensions, as
                `aggregate` takes it (`"sog * 0.5"`, `"'moored'"`), computed of the old values. All else is the value
                itself: a number, a time, None for null, or `gs.lit("moored")` for a text.
            where: as for `read`; None: all cells of the box. The cells of the newest version are judged, to which the
                handle moves first. If another commit writes to one of them meanwhile, all is read and computed anew.
            box: as for `read`; None: the whole domain.
            message: kept with the version.
            progress: True for a bar, or a callable `f(done, total)`: cells written; the total is 0 until the end.
            commit_key: as in `write`.
            dry_run: compute and check all new values of what this handle sees, and change nothing.

        A dense array has a cell at every position. One that was not written is judged and computed as what it reads as,
        and is written.

        Returns:
            The version committed, an `int`; the present one if no cell was chosen. Its `cells` is how many were.

        Raises:
            InputError: no such attribute; a dimension; an expression or a condition that does not fit the schema; a
                value that its attribute cannot hold, which is named. Nothing is changed then.
            ConflictError: the key was given to other content, or others wrote to the cells again and again.
        """
        ending = receipt.closing(message, True, commit_key)
        if dry_run:
            return Change(self.version, _written(self, values, where, box, progress, keep=False).cells)
        if self._writable().in_transaction and (message is not None or commit_key is not None):
            raise InputError(
                "a transaction has one message and one commit key: give them to gridstone.transaction, and leave them "
                "out here"
            )

        def work(array: Any, closes: Closing) -> Change:
            made = _written(array, values, where, box, progress)
            return Change(_committed(array, made, where, box, closes), made.cells)

        return attempt.committed(self, ending, work)


@dataclass
class Rewritten:
    """What an update has staged; the target of its writer."""

    _schema: Schema
    staged: list["_native.Staged"] = field(default_factory=list)
    cells: int = 0

    def _commit(self, staged: Sequence["_native.Staged"], message: Closing) -> int:
        """Keeps what was written, for the commit of the whole update."""
        self.staged += staged
        self.cells += sum(one.cells for one in staged)
        return 0


def _written(
    array: Any, values: Mapping[str, Any], where: Where | None, box: BoxLike, progress: Progress, *, keep: bool = True
) -> Rewritten:
    """The cells with their new values, staged; with `keep=False` only counted."""
    schema = array._schema
    if where is not None:
        condition_of(where).check(schema.to_json())
    plan, region = Assignment(schema, values, array._context), region_of(schema, box)
    array._note_cut(region)
    made = Rewritten(schema)
    if region.empty:
        return made
    names, dims = names_of(schema, plan), [dim.name for dim in schema.dims]
    whole = not schema.sparse and where is None and not region.listed
    within = box_of(schema, box) if whole else None
    size = max(1, min(_BATCH_BYTES_MAX, array._context.memory_budget // _BUDGET_PARTS))
    written = [attr.name for attr in schema.attrs] if schema.sparse else plan.targets
    with (
        closing(array.scan(box, names, where, order="global", batch_bytes=size)) as stream,
        _writer(array, made, within, written, progress, keep=keep) as writer,
    ):
        while (found := stream._next_columns()) is not None:
            rows = len(next(iter(found.values())))
            new = {**found, **plan.columns(found, rows)}
            if writer is None:
                made.cells += rows
            elif rows:
                places = None if whole else [new[name] for name in dims]
                writer.append_columns(places, {name: new[name] for name in written})
    return made


@contextmanager
def _writer(
    array: Any, made: Rewritten, within: Box | None, names: list[str], progress: Progress, *, keep: bool
) -> Iterator[Writer | None]:
    """A writer of what `made` keeps: of a dense box, of sparse cells in global order, or of single dense cells."""
    if not keep:
        yield None
        return
    native = array._writable()
    if within is not None:
        opened = native.writer([(lo, hi) for lo, hi, _ in within.given], names)
    elif array.sparse:
        opened = native.writer(None, names)
    else:
        opened = native.unsorted_writer(names, "error")
    with Writer(made, opened, within, names, None, progress) as writer:
        yield writer


def _committed(array: Any, made: Rewritten, where: Where | None, box: BoxLike, closes: Closing) -> int:
    """The version, once what was staged stands in the place of the old cells."""
    native, staged = array._writable(), made.staged
    if not made.cells:
        return int(native.version)
    if array.sparse and array._schema.duplicates:
        # Open ends are those of what was read: others may have made room for cells beyond. It is one change with the
        # writes: if it is interrupted before, the old cells stay.
        given = region_of(array._schema, box).native
        gone = (
            native.stage_delete_boxes(given)
            if where is None
            else _native.stage_delete_where(native, given, condition_of(where))
        )
        staged = [gone, *staged]
    version = int(array._commit(staged, closes))
    array._noted_stats({**array.stats, "cells_written": made.cells})
    return version
