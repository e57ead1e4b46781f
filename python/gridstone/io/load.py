"""Loads the tables of a feed into an array in bounded memory, sorted and merged in the store, in one commit."""

import contextlib
import itertools
import json
import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self, TypedDict

from ..arrays.array import Array
from ..base.arguments import flag
from ..base.progress import Callback, Progress, reporting
from ..column import datatype
from ..column.columns import Column, Field
from ..context.settings import Context, default
from ..errors import ConflictError, ExistsError, GridstoneError, InputError, NotFoundError, SchemaError
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.fields import attr_field, dim_fields
from ..stores import store
from ..stores.transaction import transaction
from ..version.receipt import CommitKey, LoadKey, commit_key
from . import text_values
from .columns import Part, check_attrs, new_names
from .dimensions import Chosen, check_of_array
from .target import Target

log = logging.getLogger("gridstone")


class Keywords(TypedDict, total=False):
    """What every load takes besides its own: see `Options`."""

    path: str
    overwrite: bool
    duplicates: bool
    attrs: Sequence[str] | None
    capacity: int
    dedup: str
    grow: bool | None
    message: str | None
    commit_key: CommitKey


class TableKeywords(Keywords, total=False):
    """What every load of a table takes besides its own: see `TableOptions`."""

    evolve: bool
    union: bool
    domain: Mapping[str, Any] | None


@dataclass(frozen=True)
class Options:
    """How a load goes, whatever is loaded.

    Args:
        path, overwrite: the array's place in the store; replace what is there.
        duplicates: whether cells of an inferred sparse array may share a place, as real positions do.
        attrs: the columns to load as attributes; None: all others.
        capacity: cells per data tile of an inferred sparse array.
        dedup: where duplicates are forbidden, among all that is loaded: "error", or keep the "first" or "last".
        grow: whether the domain grows, in the same commit, to take in what lies beyond it. None: yes, but not that of
            a new array whose schema or domain is stated, which says what is a mistake.
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
    grow: bool | None = None
    message: str | None = None
    commit_key: CommitKey = None

    def __post_init__(self) -> None:
        if isinstance(self.attrs, str):
            object.__setattr__(self, "attrs", (self.attrs,))

    @property
    def load_key(self) -> LoadKey | None:
        """The key of the load's commit."""
        key = commit_key(self.commit_key)
        return None if key is None else LoadKey(key)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The options of these keywords; a `TypeError` names one that there is not."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise TypeError(f"unexpected keyword argument {unknown[0]!r}; besides its own, a load takes {known}")
        return cls(**given)


@dataclass(frozen=True)
class TableOptions(Options):
    """How a load of a table goes, besides what `Options` says.

    Args:
        evolve: columns that an array which is there lacks become nullable attributes of it, in the same commit. Without
            it they are an error; columns that `attrs` leaves out are none.
        union: files of one load may have different columns: values are null where a file has no column. False: that
            is an error.
        domain: the domains of dimensions of a new array by name, `{"lon": (-180, 180)}`, both ends included; an end
            that is None is that of the data. All others are those of the data.
    """

    evolve: bool = False
    union: bool = True
    domain: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        flag("evolve", self.evolve)
        flag("union", self.union)


class Place(NamedTuple):
    """Where a load goes, and what a new array is to be."""

    uri: store.Uri
    dims: Sequence[str] | None
    schema: Schema | None
    sparse: bool
    options: Options
    chosen: Mapping[str, Chosen] = MappingProxyType({})
    """What the caller says of dimensions that are inferred."""


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


@dataclass
class Request:
    """What a load asks of a feed of columns.

    Args:
        attrs, union: as in `TableOptions`.
        stated: the caller states the schema, which chooses columns.
        target: the array that is appended to; None: the array is new.
        chosen: what the caller says of dimensions that are inferred.
        reads: nothing is loaded, the columns are only read.
        again: what `tables` gives may be asked for once more.
        grows: places beyond the domain are no mistake.
    """

    attrs: Sequence[str] | None = None
    union: bool = True
    stated: bool = False
    reads: bool = False
    again: bool = False
    grows: bool = False
    target: Target | None = None
    chosen: Mapping[str, Chosen] = field(default_factory=dict)


class ColumnFeed:
    """A feed whose columns have names, so that an array can grow by them."""

    request = Request()
    nan_is_null = False
    """Whether nulls of float columns came from NaN, which they become again where the schema has no null."""

    @abstractmethod
    def parts(self) -> Sequence[Part]:
        """The columns of each file with rows, or of the whole."""

    @abstractmethod
    def new_attrs(self, names: Sequence[str]) -> list[Attr]:
        """The attributes that these columns make, all nullable; a pass where types are not known without one."""


_TRIES = 20
"""How often a load that changes the schema is tried while others change it too."""


def load(place: Place, feed: Feed, progress: Progress) -> Array:
    """Loads all that the feed gives into the array at the place, which is created unless it is there."""
    options, new_store = place.options, not store.exists(place.uri, context=feed.context)
    try:
        existing = existing_array(place, feed.context)
        _prepare(place, existing, feed)
        with reporting(progress, "loading") as feed.meter.report:
            schema = place.schema
            if existing is not None:
                made = _appended(place, existing, feed)
            else:
                if schema is None:
                    schema = feed.inferred(place.dims, place.sparse, options)
                elif not new_store:
                    feed.meter.passes = 2
                    feed.check(schema)
                made = created(place, schema, feed.context, lambda array, end: _fill(array, end, feed, options.dedup))
    except BaseException:
        # The first error is the one that is raised.
        with contextlib.suppress(Exception):
            feed.close()
        raise
    made._stats |= feed.close()
    return made


def _prepare(place: Place, existing: Array | None, feed: Feed) -> None:
    """Hands the request to a feed of columns; an `InputError` if it contradicts itself or the array."""
    options, schema = place.options, place.schema if existing is None else existing._schema
    tables = options if isinstance(options, TableOptions) else TableOptions()
    if place.schema is not None and tables.evolve:
        raise InputError(
            "schema= says which columns are loaded, and evolve=True adds those that it does not name: give one of them"
        )
    check_attrs(options.attrs, place.dims or () if schema is None else [dim.name for dim in schema.dims])
    if place.schema is not None:
        for name in options.attrs or ():
            attr_field(place.schema, name)
    if schema is not None:
        check_of_array(schema, place.dims, place.chosen, stated=place.schema is not None)
    if isinstance(feed, ColumnFeed):
        target = None if existing is None else Target(os.fspath(place.uri), options.path)
        feed.request = Request(
            options.attrs, tables.union, place.schema is not None,
            grows=grows(place, existing), target=target, chosen=place.chosen,
        )  # fmt: skip


def grows(place: Place, existing: Array | None) -> bool:
    """Whether the domain grows to take in what is loaded."""
    if place.options.grow is not None:
        flag("grow", place.options.grow)
        return place.options.grow
    stated = place.schema is not None or any(found.domain or found.dim for found in place.chosen.values())
    return existing is not None or not stated


class _FirstNulls(Exception):
    """A load brought nulls of attributes that may not be null yet."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(names)
        self.names = names


def _appended(place: Place, existing: Array, feed: Feed) -> Array:
    """The array with all that the feed gives, and with the attributes that this needs, in one commit.

    A load that changes the schema is tried again if another one has changed it meanwhile.
    """
    end, dedup = End(place.options.message, place.options.load_key), place.options.dedup
    if place.schema is not None or not isinstance(feed, ColumnFeed):
        _fill(existing, end, feed, dedup)
        return existing
    nulls, array = set[str](), existing
    conflict: ConflictError | None = None
    for tries in range(_TRIES):
        if tries:
            feed.meter.passes = feed.meter.passed + 1
            array = store.open_array(place.uri, path=place.options.path, mode="r+", context=feed.context)
        try:
            if not (nulls or conflict or _added(place, array._schema, feed)):
                reading = _lenient(array._schema, feed)
                feed.request.again = reading != array._schema or end.commit_key is not None
                _fill(array, end, feed, dedup, reading)
                return array
            feed.request.again = True
            return _evolved(place, feed, nulls)
        except _FirstNulls as found:
            nulls |= found.names
        except NotFoundError:
            if conflict is None:
                raise
            # The first commit with the key made the array.
            raise conflict from None
        except ConflictError as error:
            now = store.open_array(place.uri, path=place.options.path, context=feed.context)
            if not feed.request.again or (now._schema == array._schema and (conflict or end.commit_key is None)):
                raise
            # The first try with this key may have changed the schema: a transaction reads what it has read.
            conflict = error if end.commit_key is not None else None
    raise ConflictError(
        f"{os.fspath(place.uri)!r}: others changed the schema {_TRIES} times while this load was tried; load again"
    )


def _added(place: Place, schema: Schema, feed: ColumnFeed) -> list[str]:
    """The columns that become attributes."""
    options = place.options
    evolve = isinstance(options, TableOptions) and options.evolve
    return new_names(feed.parts(), schema, options.attrs, evolve=evolve)


def _evolved(place: Place, feed: Any, nulls: set[str]) -> Array:
    """Changes the schema and loads, in one commit."""
    options = place.options
    with transaction(place.uri, options.message, context=feed.context, commit_key=options.load_key) as tx:
        staged = tx[options.path]
        schema = staged._schema
        added = _added(place, schema, feed)
        nullable = [attr.name for attr in schema.attrs if attr.name in nulls and not attr.nullable]
        if added or nullable:
            try:
                staged.alter(add=feed.new_attrs(added) if added else [], nullable=nullable)
            except SchemaError:
                if nullable:  # What was added to a sparse array stays as it is: the row is named.
                    _fill(staged, End(), feed, options.dedup)
                raise
            feed.meter.passes = feed.meter.passed + 1
        _fill(staged, End(), feed, options.dedup, _lenient(staged._schema, feed))
    made = store.open_array(place.uri, path=options.path, mode="r+", context=feed.context)
    made._stats = staged._stats
    return made


def _lenient(schema: Schema, feed: ColumnFeed) -> Schema:
    """The schema as which a feed reads for a sparse array: attributes that may become null are null there already.

    Not those whose missing values have another form: text and lists, times, floats of a source of NaN. In a dense array
    cells that were never written would read otherwise. An attribute that a file lacks may have its fill there.
    """
    if not schema.sparse:
        return schema
    options, parts, attrs = schema._json(), feed.parts(), feed.request.attrs
    for attr in options["attrs"]:
        kind = attr["dtype"]
        if any(attr["name"] not in part.names for part in parts) or (attrs is not None and attr["name"] not in attrs):
            continue
        of_nan = feed.nan_is_null and (datatype.is_float(kind) or datatype.is_complex(kind))
        attr["nullable"] = attr["nullable"] or not (datatype.is_time(kind) or datatype.is_var(kind) or of_nan)
    return Schema.from_json(json.dumps(options))


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
    if isinstance(place.dims, Mapping):
        raise InputError("dims= of this load is a list of the names of its dimensions, such as dims=['lat', 'lon']")
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


def _fill(array: Array, end: End, feed: Feed, dedup: str, reading: Schema | None = None) -> None:
    """Loads everything into the array, in one commit.

    Args:
        array, end, feed, dedup: where to, how and what.
        reading: the schema that the feed is read with; None: the array's own.

    Raises:
        _FirstNulls: there are nulls of attributes that are nullable in `reading` alone.
    """
    schema, nulls = array._schema, set[str]()
    pairs = zip(schema.attrs, (reading or schema).attrs, strict=True)
    strict = {attr.name for attr, read in pairs if read.nullable and not attr.nullable}
    # An array with duplicates keeps all of them.
    dedup = "error" if schema.duplicates else dedup
    tables = feed.tables(reading or schema)
    first = next(tables, None)
    # Cells of a dense array take some of the attributes.
    names = None if first is None or schema.sparse else [n for n in first.column_names if n not in array.dims]
    grow = isinstance(feed, ColumnFeed) and feed.request.grows
    with array.writer(order="any", attrs=names, dedup=dedup, grow=grow, **end._asdict()) as writer:
        for table in () if first is None else itertools.chain([first], tables):
            nulls |= {name for name in strict & {*table.column_names} if table.column(name).null_count}
            if table.num_rows and not nulls:
                dims = [column_of(field, table.column(field.name)) for field in dim_fields(schema)]
                names = [name for name in table.column_names if name not in array.dims]
                writer.append_columns(
                    dims, {name: column_of(attr_field(schema, name), table.column(name)) for name in names}
                )
        if nulls:
            raise _FirstNulls(nulls)
    feed.meter.finish(feed.total())


def column_of(field: Field, column: Any) -> Column:
    """The column for the core; missing text is "" where it cannot be null."""
    return text_values.read(field, column)


def named_dims(dims: Sequence[str] | None) -> Sequence[str]:
    """The dimensions that a new array was given; an `InputError` if there are none."""
    if not dims or isinstance(dims, str | Mapping):
        raise InputError("dims= is a list of the columns that are the dimensions, such as dims=['lat', 'lon']")
    if len(set(dims)) < len(dims):
        raise InputError(f"dims= names each dimension once, found {list(dims)}")
    return dims
