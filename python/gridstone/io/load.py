"""Loads the tables of a feed into an array in bounded memory, sorted and merged in the store, in one commit."""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol, TypedDict

from ..arrays.array import Array
from ..base.progress import Callback, Progress, reporting
from ..column.columns import Column, Field
from ..context.settings import Context, default
from ..errors import ExistsError, GridstoneError, InputError, NotFoundError
from ..schema.array_schema import Schema
from ..schema.fields import attr_field, dim_fields
from ..stores import store
from ..stores.transaction import transaction
from ..version.receipt import CommitKey, LoadKey, commit_key
from . import text_values

log = logging.getLogger("gridstone")


class Keywords(TypedDict, total=False):
    """What every load takes besides its own: see `Options`."""

    path: str
    overwrite: bool
    duplicates: bool
    attrs: Sequence[str] | None
    capacity: int
    dedup: str
    message: str | None
    commit_key: CommitKey


@dataclass(frozen=True)
class Options:
    """How a load goes, whatever is loaded.

    Args:
        path, overwrite: the array's place in the store; replace what is there.
        duplicates: whether cells of an inferred sparse array may share a place, as real positions do.
        attrs: the columns to load as attributes; None: all others.
        capacity: cells per data tile of an inferred sparse array.
        dedup: where duplicates are forbidden, among all that is loaded: "error", or keep the "first" or "last".
        message: kept with the version.
        commit_key: text or bytes, at most 128 bytes of it: the load, repeated with the same data and options, commits
            once, whatever became of the first try. See `gridstone.transaction`.
    """

    path: str = "/"
    overwrite: bool = False
    duplicates: bool = True
    attrs: Sequence[str] | None = None
    capacity: int = 10_000
    dedup: str = "error"
    message: str | None = None
    commit_key: CommitKey = None

    @property
    def load_key(self) -> LoadKey | None:
        """The key of the load's commit."""
        key = commit_key(self.commit_key)
        return None if key is None else LoadKey(key)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Options":
        """The options of these keywords; a `TypeError` names one that there is not."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise TypeError(f"unexpected keyword argument {unknown[0]!r}; besides its own, a load takes {known}")
        return cls(**given)


class Place(NamedTuple):
    """Where a load goes, and what a new array is to be."""

    uri: store.Uri
    dims: Sequence[str] | None
    schema: Schema | None
    sparse: bool
    options: Options


class Meter:
    """Tells how far a load is, over all its passes."""

    def __init__(self) -> None:
        self.report: Callback | None = None
        self.passes, self.passed = 1, 0

    def tell(self, done: int, total: int) -> None:
        """So much of one pass is done."""
        if self.report is not None:
            self.report(done + total * self.passed, total * self.passes)

    def finish(self, total: int) -> None:
        """All is done; `total` is that of one pass."""
        if self.report is not None:
            whole = total * max(self.passes, self.passed)
            self.report(whole, whole)


class Feed(Protocol):
    """What can be loaded: columns, as tables, as often as they are asked for."""

    meter: Meter
    context: Context

    def inferred(self, dims: Sequence[str] | None, sparse: bool, options: Options) -> Schema:
        """The schema that the columns make, found in a pass over them."""

    def check(self, schema: Schema) -> None:
        """A pass that only looks for what is wrong, before anything is created or replaced."""

    def tables(self, schema: Schema) -> Iterator[Any]:
        """Tables of the columns of the schema, every cell checked against it."""

    def total(self) -> int:
        """What one pass counts as progress."""

    def close(self) -> dict[str, int]:
        """Lets go of what the feed holds, once all is loaded or nothing will be; gives counters for `Array.stats`."""


def load(place: Place, feed: Feed, progress: Progress) -> Array:
    """Loads all that the feed gives into the array at the place, which is created unless it is there."""
    options, new_store = place.options, not store.exists(place.uri, context=feed.context)
    try:
        existing = existing_array(place, feed.context)
        with reporting(progress, "loading") as feed.meter.report:
            schema = place.schema
            if existing is not None:
                schema = existing.schema
            elif schema is None:
                schema = feed.inferred(place.dims, place.sparse, options)
            elif not new_store:
                feed.meter.passes = 2
                feed.check(schema)
            if existing is None:
                made = created(place, schema, feed.context, lambda array, end: _fill(array, end, feed, options.dedup))
            else:
                _fill(existing, End(options.message, options.load_key), feed, options.dedup)
                made = existing
    except BaseException:
        # The first error is the one that is raised.
        with contextlib.suppress(Exception):
            feed.close()
        raise
    made._stats |= feed.close()
    return made


@contextlib.contextmanager
def removed_on_error(array: Array) -> Iterator[None]:
    """Removes the store that came into being with `array` if the block fails; unless others have committed something to
    it meanwhile, or have put another in its place.

    Until the creation has returned, the store may be that of another process, so no earlier failure removes it.
    """
    try:
        yield
    except BaseException:
        # The first error is the one that is raised.
        with contextlib.suppress(GridstoneError):
            if _is_all_of_its_store(array):
                store.delete(array.uri, context=array.context)
        raise


def _is_all_of_its_store(array: Array) -> bool:
    """Whether the creation of this array is the only commit of its store."""
    if array.version != 1 or not store.exists(array.uri, context=array.context):
        return False
    newest = store.open_array(array.uri, path=array.path, context=array.context)
    return newest.version == 1 and newest.native.id == array.native.id


def context_or_default(context: Context | None) -> Context:
    """The context of a load."""
    return context or default()


class End(NamedTuple):
    """What the commit of a load has; a transaction has both itself."""

    message: str | None = None
    commit_key: LoadKey | None = None


def created(place: Place, schema: Schema, context: Context, fill: Callable[[Array, End], None]) -> Array:
    """The new array, which `fill` has filled; it is given what its commit has. If that fails the store, or its
    absence, is as it was: in a store that is there creation, removal of what is replaced, and filling are one commit.
    """
    if schema.duplicates:
        log.info("%s allows duplicates: several cells may have the same coordinates", os.fspath(place.uri))
    path, overwrite = place.options.path, place.options.overwrite
    if not store.exists(place.uri, context=context):
        made = store.create(place.uri, schema, path=path, overwrite=overwrite, context=context)
        with removed_on_error(made):
            fill(made, End(place.options.message, place.options.load_key))
        return made
    with transaction(place.uri, place.options.message, context=context, commit_key=place.options.load_key) as tx:
        staged = tx.create(path, schema, overwrite=overwrite)
        fill(staged, End())
    made = store.open_array(place.uri, path=path, mode="r+", context=context)
    made._stats = staged._stats
    return made


def existing_array(place: Place, context: Context) -> Array | None:
    """The array to append to, if there is one and it is not to be replaced."""
    if place.schema is not None and not isinstance(place.schema, Schema):
        raise InputError(f"schema= takes a gridstone.Schema, found {type(place.schema).__name__}")
    if place.options.overwrite or not store.exists(place.uri, context=context):
        return None
    try:
        found = store.open_array(place.uri, path=place.options.path, mode="r+", context=context)
    except NotFoundError:
        return None
    if place.schema is not None and place.schema != found.schema:
        raise ExistsError(
            f"{os.fspath(place.uri)!r} holds an array with another schema; leave schema= out to append to it, "
            f"or pass overwrite=True to replace it"
        )
    return found


def existing_schema(uri: store.Uri, options: Options, context: Context) -> Schema | None:
    """The schema of the array to append to, if there is one."""
    found = existing_array(Place(uri, None, None, True, options), context)
    return None if found is None else found.schema


def _fill(array: Array, end: End, feed: Feed, dedup: str) -> None:
    """Loads everything into the array, in one commit."""
    schema = array.schema
    # An array with duplicates keeps all of them.
    dedup = "error" if schema.duplicates else dedup
    with array.writer(order="any", dedup=dedup, **end._asdict()) as writer:
        for table in feed.tables(schema):
            if table.num_rows:
                dims = [column_of(field, table.column(field.name)) for field in dim_fields(schema)]
                names = [name for name in table.column_names if name not in array.dims]
                writer.append_columns(
                    dims, {name: column_of(attr_field(schema, name), table.column(name)) for name in names}
                )
    feed.meter.finish(feed.total())


def column_of(field: Field, column: Any) -> Column:
    """The column for the core; missing text is "" where it cannot be null."""
    return text_values.read(field, column)


def named_dims(dims: Sequence[str] | None) -> Sequence[str]:
    """The dimensions that a new array was given; an `InputError` if there are none."""
    if not dims or isinstance(dims, str):
        raise InputError("dims= is a list of the columns that are the dimensions, such as dims=['lat', 'lon']")
    if len(set(dims)) < len(dims):
        raise InputError(f"dims= names each dimension once, found {list(dims)}")
    return dims
