"""Writes selected cells of an array into a new one, in one commit and in bounded memory."""

import contextlib
import json
import os
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Self

from .. import _native
from ..base.arguments import checked, flag, place
from ..base.naming import target
from ..base.progress import Progress
from ..context.settings import Context
from ..errors import CommitUnknownError, GridstoneError, InputError
from ..query.box import BoxLike, Region, box_of, region_of
from ..query.condition import Where, condition_of
from ..schema.array_schema import Schema
from .noting import Noting


class Filterable(Noting):
    """The part of an array that makes a smaller one of itself."""

    _schema: Schema
    _context: Context

    @abstractmethod
    def _names(self, attrs: Sequence[str] | str | None, schema: Schema | None = None) -> list[str]: ...

    @checked(to=place, overwrite=flag)
    def filter(
        self,
        where: Where | None = None,
        *,
        to: str | os.PathLike[str],
        box: BoxLike = None,
        attrs: Sequence[str] | str | None = None,
        overwrite: bool = False,
        progress: Progress = None,
    ) -> Self:
        """Writes the cells of a box for which a condition is true into a new array, in one commit.

            fast = ships.filter("sog > 20", to="fast.gs", attrs=["mmsi", "sog"])

        The new array has the same dimensions with their domains, and of the attributes type, filters, fill and
        categories; metadata come along. Cells are streamed, however many there are.

        Args:
            where: as for `read`; None: all cells of the box.
            to: the store, or `'store.gs:/path'`; a store is made if there is none.
            box: as for `read`.
            attrs: the attributes that the new array has; None: all. `where` may name others.
            overwrite: replace what lies there.
            progress: True for a bar, or a callable `f(done, total)`: cells written.

        Returns:
            The new array, open for reading and writing. A dense array gives a dense one with one box alone. With a
            condition or a list of boxes cells are missing, and it gives a sparse one.

        Raises:
            ExistsError: something lies at `to`, and `overwrite` is False.
            InputError: a condition or name that does not fit the schema.
            BoundsError: the box is not inside the domain.
        """
        return self._filtered(where, os.fspath(to), box, attrs, overwrite=overwrite, progress=progress)

    def _filtered(
        self,
        where: Where | None,
        to: str,
        box: BoxLike = None,
        attrs: Sequence[str] | str | None = None,
        *,
        overwrite: bool = False,
        progress: Progress = None,
        limit: int | None = None,
    ) -> Self:
        """As `filter`; with a limit the first so many cells, as a sparse array."""
        found: Any = self
        source: Any = found if found.native.in_transaction else found._pinned()
        schema, names = source._schema, self._names(attrs)
        region = region_of(schema, box)
        check_names(names)
        if where is not None:
            condition_of(where).check(schema.to_json())
        cells = schema.sparse or where is not None or region.listed or limit is not None
        made = _schema_of(schema, names, sparse=cells)

        def fill(new: Any) -> None:
            if cells:
                _copy_cells(source, new, where, box, region, names, progress, limit)
            else:
                _copy_box(source, new, box, names, progress)
            _copy_names(source, new, names)

        uri, path = target(to)
        new: Self = created_with(source, uri, path, made, fill, "cells of", overwrite=overwrite)
        return new


def check_names(names: Sequence[str]) -> None:
    """An `InputError` unless a new array can be made of these attributes."""
    if not names:
        raise InputError("a new array needs an attribute: attrs=[] leaves none; name one, or leave attrs out")


def _schema_of(schema: Schema, names: Sequence[str], *, sparse: bool) -> Schema:
    """The schema of the new array: its labels are listed later."""
    dims = [{key: value for key, value in dim._json().items() if key != "labels"} for dim in schema.dims]
    attrs = [schema.attr(name)._json() for name in names]
    return Schema.from_json(json.dumps({**schema._json(), "dims": dims, "attrs": attrs, "sparse": sparse}))


def _copy_cells(
    source: Any,
    new: Any,
    where: Where | None,
    box: BoxLike,
    region: Region,
    names: Sequence[str],
    progress: Progress,
    limit: int | None,
) -> None:
    """Streams cells with their coordinates in global order, values as they are stored: NaT stays NaT."""
    if region.empty or limit == 0:
        return
    # Tiles and orders are the same in both arrays, so that nothing is sorted.
    with (
        closing(source.scan(box, names, where, order="global", limit=limit)) as stream,
        new.writer(attrs=names, progress=progress) as writer,
    ):
        while (found := stream._next_columns()) is not None:
            dims = [found[dim.name] for dim in source._schema.dims]
            writer.append_columns(dims, {name: found[name] for name in names})


def _copy_box(source: Any, new: Any, box: BoxLike, names: Sequence[str], progress: Progress) -> None:
    """Streams a dense box; without one what was written."""
    if box is None:
        ends = source.nonempty_domain
        if ends is None:
            return
        box = {dim.name: pair for dim, pair in zip(source._schema.dims, ends, strict=True)}
    within = box_of(source._schema, box)
    if within.empty:
        return
    with (
        closing(source.scan(within, names, order="global")) as stream,
        new.writer(within, attrs=names, progress=progress) as writer,
    ):
        while (found := stream._next_columns()) is not None:
            writer.append_columns(None, {name: found[name] for name in names})


def _copy_names(source: Any, new: Any, names: Sequence[str]) -> None:
    """Gives the new array labels and metadata."""
    dims = source._schema.dims
    labels = {dim.name: source.dim(dim.name).labels for dim in dims if dim._stored_labels is not None}
    if labels and not new.sparse:
        new.alter(labels=labels)
    new.meta.update(source.meta)
    for dim in dims:
        new.dim(dim.name).meta.update(source.dim(dim.name).meta)
    for name in names:
        new[name].meta.update(source[name].meta)


def created_with(
    source: Any, uri: str, path: str, schema: Schema, fill: Any, message: str, *, overwrite: bool = False
) -> Any:
    """The array that `fill` has written to within its commit. A store that was made for it goes if that fails."""
    context = source._context
    native, kind = context.native, type(source)
    fresh = not _native.exists(native, uri)
    if fresh:
        # A transaction needs a store; nothing but its root is in this one, which an array at "/" replaces.
        first = _native.create_group(native, uri, "/").version
    try:
        # What others put into a store that was just made is not overwritten: serializable sees it come.
        begun = _native.Transaction(native, uri, "serializable" if fresh else "snapshot")
        try:
            replaces = fresh and path == "/" and not begun.children("/")
            fill(kind(begun.create_array(path, schema.to_json(), overwrite or replaces), context))
            begun.commit(f"{message} {source.uri}")
        finally:
            begun.abort()
    except BaseException as error:
        # The first error is the one that is raised. What may have been committed stays.
        is_known = fresh and not isinstance(error, CommitUnknownError)
        with contextlib.suppress(GridstoneError):
            if is_known and _native.create_group(native, uri, "/").version == first:
                _native.delete_store(native, uri)
        raise
    found = _native.open(native, uri, path, True, None, None)
    if isinstance(found, _native.Group):
        raise GridstoneError(f"{uri!r} holds a group at {path!r}: another commit replaced the array")
    return kind(found, context)
