"""`Group`: named arrays and groups in a store."""

import contextlib
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from types import TracebackType
from typing import Any, cast

from .. import _native
from ..arrays.array import Array
from ..arrays.metadata import Metadata
from ..base import drawer, html
from ..base.arguments import checked, text, utf8
from ..base.printable import printable
from ..base.progress import Progress
from ..base.refusals import read_only
from ..context import showing
from ..context.settings import Context
from ..errors import (
    BoundsError,
    GridstoneError,
    InputError,
    MissingNameError,
    NotFoundError,
    UnsupportedError,
)
from ..maintain import health
from ..maintain.retention import Retained
from ..schema.array_schema import Schema
from ..version.history import Version, check_kept, version_of
from .at_once import create_at_once
from .nodes import Entry, entries, joined

_REFUSED_SHOWN = 5
_CHILDREN_SHOWN = 200
_PICTURES_MAX = 12


class Group(Retained):
    """A group: its children, arrays and groups, by name. `g["name"]` and `g["path/below"]` open what is there.

    A handle follows its store: it shows the newest version, `version` and `path` included, whichever process committed
    it. (An `Array` shows one version instead, until it is refreshed.) It means the group and not a path: after a move
    it is found where it lies now. A group that was removed, or replaced by something else, raises `NotFoundError`.

    Each call sees one version, also while others move, remove and vacuum. So does each pass over its children: the
    version that was the newest when it began. A change follows a group that was moved meanwhile.

    A group opened at a version or time stays there: its children, what they hold, its metadata are as they were.
    """

    def __init__(self, native: "_native.Group", context: Context, mode: str, *, pinned: bool = False) -> None:
        self._native: _native.Group | None = native
        self._context, self._mode, self._is_pinned = context, mode, pinned
        self._uri, self._path = native.uri, native.path
        self._stats: dict[str, int] = {}

    # What it is.

    @property
    def native(self) -> "_native.Group":
        """The core's group as it was last looked at; an `InputError` once closed."""
        if self._native is None:
            raise InputError(f"the group {self._path!r} of {self._uri!r} is closed; open it again with gridstone.open")
        return self._native

    @property
    def uri(self) -> str:
        """The store."""
        return self._uri

    @property
    def path(self) -> str:
        """The place in the store; "/" is its root."""
        return self._path if self._native is None else self._now().path

    @property
    def key_id(self) -> str | None:
        """The id, in hexadecimal digits, of the key that seals (encrypts) the store; None if it is not sealed."""
        return self.native.key_id

    @property
    def mode(self) -> str:
        """ "r" or "r+"."""
        return self._mode

    @property
    def version(self) -> int:
        """The store's newest version, or the one that the group was opened at."""
        return self._now().version

    @property
    def meta(self) -> Metadata:
        """Metadata: a mutable mapping of text to JSON values."""
        return Metadata(self._now, self._writable)

    def refresh(self) -> int:
        """The store's newest version. An array has to be refreshed to get there; a group is there without it.

        Raises:
            BoundsError: the group was opened at a version.
            NotFoundError: the store was deleted, or the group removed or replaced.
        """
        if self._is_pinned:
            raise BoundsError(
                f"this group is opened at version {self.version}; open it without one to follow the store"
            )
        before = self.native.version
        version = self.version
        if version == before:
            check_kept(self._context.native, self._uri)
        return version

    def refreshed(self) -> "Group":
        """A handle of the group that follows the store, also of a group that was opened at a version."""
        return Group(self.native.refreshed(self._context.native), self._context, self._mode)

    def _pinned(self) -> "Group":
        """The group as it is now, whatever becomes of it: for several questions whose answers are to fit together."""
        return Group(self._now(), self._context, "r", pinned=True)

    def _now(self) -> "_native.Group":
        """The core's group at the version that is shown."""
        if self._is_pinned:
            return self.native
        found = self.native.refreshed(self._context.native)
        # The next refresh reads only what was committed since this one. Either of two threads may be the last here: the
        # handle that is kept is where a refresh begins, never what it finds.
        if self._native is not None:
            self._native, self._path = found, found.path
        return found

    # What is in it.

    def children(self) -> list[Entry]:
        """The arrays and groups in it, by name."""
        return entries(self._now())

    def history(self) -> list[Version]:
        """The versions of the store, oldest first, with all that each did, in this group or elsewhere: what was made,
        moved and removed too. An array's own are `g["name"].history()`."""
        return [version_of(text) for text in self._now().history(self._context.native, self._is_pinned)]

    def walk(self) -> list[Entry]:
        """The arrays and groups in it and in all groups below, each group followed by what is in it, all of one version
        of the store."""
        return [Entry(path.rpartition("/")[2], path, kind) for path, kind in self._now().walk()]

    @checked()
    def __getitem__(self, name: str) -> "Array | Group":
        """The array or group of this name, or at this path below; what is not there is a `NotFoundError` that is a
        `KeyError` too."""
        utf8("name", name)
        now = self._now()
        with _lookup():
            return self._handle(now.open(name, self._mode == "r+", self._is_pinned))

    def _handle(self, found: "_native.Array | _native.Group") -> "Array | Group":
        """What was opened through this group."""
        if isinstance(found, _native.Group):
            return Group(found, self._context, self._mode, pinned=self._is_pinned)
        return Array(found, self._context, pinned=self._is_pinned)

    def _opened(self) -> "Iterator[tuple[str, Array | Group]]":
        """Its children, all of the version that is the newest at this moment, each opened when it is its turn.

        What this release cannot use comes last, as an `UnsupportedError`: it keeps no other child from its turn.
        """
        now, writable, refused = self._now(), self._mode == "r+", []
        names = [name for name, _ in now.children()]
        for name in names:
            try:
                child = self._handle(now.open(name, writable, self._is_pinned))
            except UnsupportedError as error:
                refused.append(error)
                continue
            yield name, child
        if refused:
            what = f"{len(refused)} of the {len(names)} children of {now.path!r} cannot be used, all others were given"
            shown = "; ".join(map(str, refused[:_REFUSED_SHOWN])) + ("; …" if len(refused) > _REFUSED_SHOWN else "")
            raise UnsupportedError(f"{what}: {shown}") from refused[0]

    @checked()
    def get(self, name: str, default: Any = None) -> Any:
        """`g[name]`, or `default` if there is nothing."""
        try:
            return self[name]
        except MissingNameError:
            return default

    def __contains__(self, name: object) -> bool:
        """Whether `g[name]` opens something: a child, or what lies at a path below."""
        if not isinstance(name, str):
            return False
        try:
            return self._now().contains(utf8("name", name))
        except InputError:
            if self._native is None:
                raise
            return False

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._now().children()])

    def __len__(self) -> int:
        return len(self._now().children())

    def keys(self) -> KeysView[str]:
        """The names of its children."""
        return KeysView(self._mapping())

    def values(self) -> "ValuesView[Array | Group]":
        """Its children as they are at the beginning of a pass, all of one version, each opened when it is its turn.
        They are refreshed as other arrays are. A child that this release cannot use ends the pass with an
        `UnsupportedError`, after all others."""
        return _Values(self._mapping())

    def items(self) -> "ItemsView[str, Array | Group]":
        """Pairs of name and child as they are at the beginning of a pass, all of one version, each opened when it is
        its turn. They are refreshed as other arrays are. A child that this release cannot use ends the pass with an
        `UnsupportedError`, after all others."""
        return _Items(self._mapping())

    def _mapping(self) -> "Mapping[str, Array | Group]":
        # It has what the views ask for. It is no `Mapping`, whose instances are equal when their contents are.
        return cast("Mapping[str, Array | Group]", self)

    # Changes. Every call commits one version.

    @checked()
    def create(self, name: str, schema: "Schema", *, overwrite: bool = False) -> "Array":
        """Creates an array in this group, wherever that lies when it is done, and opens it for reading and writing. An
        `AccessError` unless the group is opened with mode "r+"."""
        native = self._writable()
        if not isinstance(schema, Schema):
            raise InputError(f"create() takes a gridstone.Schema, found {type(schema).__name__}")
        if any(dim._labels is not None for dim in schema.dims):
            path = joined(self.path, utf8("name", name))
            return create_at_once(self._uri, schema, path, overwrite, self._context, lambda made: None)
        made = native.create_array(self._context.native, utf8("name", name), schema.to_json(), overwrite)
        return Array(made, self._context)

    @checked()
    def group(self, name: str) -> "Group":
        """The group of this name for reading and writing, created if it does not exist. An `AccessError` unless this
        one is opened with mode "r+"; `g[name]` opens what is there in either mode."""
        native = self._writable()
        return Group(native.create_group(self._context.native, utf8("name", name)), self._context, "r+")

    @checked(target=text)
    def move(self, name: str, target: str, *, message: str | None = None) -> int:
        """Moves what is called `name` in this group, with everything below it, to `target`: a name or path in this
        group, or, from "/" on, a path in the store. See `gridstone.move`; returns the version."""
        native = self._writable()
        return native.move_child(self._context.native, utf8("name", name), utf8("target", target), message)

    @checked()
    def remove(self, name: str, *, message: str | None = None) -> int:
        """Removes what is called `name` in this group, with everything below it: earlier versions keep it until a
        vacuum forgets them. `del group[name]` does the same; returns the version. What is not there is a
        `NotFoundError` that is a `KeyError` too. A `ConflictError`: another commit moved or replaced it meanwhile."""
        native = self._writable()
        try:
            return native.remove(self._context.native, utf8("name", name), message)
        except NotFoundError as error:
            self._now()  # What is said of a group that is gone itself is no missing name.
            raise MissingNameError(str(error)) from None

    def __delitem__(self, name: str) -> None:
        self.remove(name)

    def _writable(self, to: str = "write") -> "_native.Group":
        native = self.native
        if self._mode != "r+":
            past = native.version if self._is_pinned else None
            raise read_only(f"the group {self._path!r} of {self._uri!r}", past, to)
        return native

    @checked()
    def verify(self, *, progress: Progress = None) -> health.Report:
        """Checks the whole store and all its versions; see `gridstone.verify`.

        Args:
            progress: True for a bar, or a callable `f(done, total)`: stored bytes of fragments.
        """
        return health.verify(self.native.uri, context=self._context, progress=progress)

    @property
    def stats(self) -> dict[str, int]:
        """What the copy that gave this handle has copied; else nothing."""
        return dict(self._stats)

    def _noted_stats(self, stats: Mapping[str, int]) -> None:
        self._stats = dict(stats)

    def _vacuum(self, dry_run: bool, *options: Any) -> str:
        native = self.native if dry_run else self._writable("vacuum its store")
        return native.vacuum(self._context.native, *options)

    def _tags(self) -> list[tuple[str, int]]:
        return self._now().tags

    # As a Python object.

    def close(self) -> None:
        """Lets go of the store; nothing else can be asked of this handle. What was opened through it stays open."""
        self._native = None

    def __enter__(self) -> "Group":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __bool__(self) -> bool:
        """True, also of an empty group: a handle is there. How many children it has is `len`."""
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        # The newest version is the one that will be there longest; of a group that is gone, the last that had it.
        native = self.native
        with contextlib.suppress(GridstoneError):
            native = self._now()
        return _reopen, (self._uri, native.path, native.version, self._mode, self._context, self._is_pinned)

    def _shown(self) -> tuple[str, str, list[Entry] | None]:
        """Its path, a word on its state, and its children if they can be read: showing a handle never fails."""
        native = self._native
        if native is None:
            return self._path, "(closed)", None
        try:
            native = self._now()
        except NotFoundError:
            return self._path, "(removed)", None
        except GridstoneError:
            pass  # The store cannot be read: shown is what was seen last, with its version.
        return native.path, f"version {native.version}", entries(native)

    def __repr__(self) -> str:
        path, state, children = self._shown()
        if children is not None:
            state += ": " + (", ".join(f"{printable(entry.name)} ({entry.kind})" for entry in children) or "empty")
        return f"<gridstone.Group {self._uri!r} {path!r} {state}>"

    def _repr_html_(self) -> str:
        path, state, children = self._shown()
        place = html.escape(self.uri if path == "/" else f"{self.uri} {path}")
        listed = "" if children is None else self._listed(children)
        return f"<div><b>gridstone.Group</b> {place}, {state}{listed}</div>"

    def _listed(self, children: Sequence[Entry]) -> str:
        """A table of the first children, with small pictures of the first arrays."""
        allowance = drawer.Allowance(showing.current().limit(self.uri))
        arrays = [entry.name for entry in children if entry.kind == "array"][: _PICTURES_MAX if allowance.left else 0]
        pictures = {name: made for name in arrays if (made := self._picture(name, allowance))}
        header = ("name", "kind", "path", *(("",) if pictures else ()))
        shown = [(one.name, one.kind, one.path) for one in children[:_CHILDREN_SHOWN]]
        rows = [(*row, pictures.get(row[0], "")) if pictures else row for row in shown]
        left = len(children) - len(rows)
        return html.table(header, rows) + (f"<small>… and {left:,} more</small>" if left else "")

    def _picture(self, name: str, allowance: drawer.Allowance) -> html.Markup:
        """A small picture of a child; none of what cannot be opened."""
        try:
            found = self._handle(self.native.open(name, False, self._is_pinned))
        except GridstoneError:
            return html.Markup()
        return drawer.thumbnail(found, allowance)


class _Values(ValuesView["Array | Group"]):
    """The children of a group: each pass is over those of one moment."""

    _mapping: Group

    def __iter__(self) -> "Iterator[Array | Group]":
        return (child for _, child in self._mapping._opened())


class _Items(ItemsView[str, "Array | Group"]):
    """Names and children of a group: each pass is over those of one moment."""

    _mapping: Group

    def __iter__(self) -> "Iterator[tuple[str, Array | Group]]":
        return self._mapping._opened()


@contextlib.contextmanager
def _lookup() -> Iterator[None]:
    """What is not found within is a name that the group does not have."""
    try:
        yield
    except NotFoundError as error:
        raise MissingNameError(str(error)) from None


def _reopen(uri: str, path: str, version: int, mode: str, context: Context, pinned: bool = False) -> Group:
    found = _native.open(context.native, uri, path, False, version, None)
    if not isinstance(found, _native.Group):
        raise NotFoundError(f"{uri!r} holds no group at {path!r}")
    return Group(found, context, mode, pinned=pinned)
