"""A group: named arrays and groups in a store."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native, health
from .arguments import checked, text
from .context import Context
from .errors import AccessError, InputError, NotFoundError
from .meta import Metadata
from .progress import Progress
from .retention import Retained

if TYPE_CHECKING:
    from .array import Array
    from .schema import Schema


class Entry(NamedTuple):
    """What a store holds at one place."""

    name: str
    path: str
    kind: str
    """ "array" or "group"."""


def joined(path: str, name: str) -> str:
    """The path of `name` in the group at `path`."""
    return f"{path.rstrip('/')}/{name.strip('/')}"


class Group(Retained):
    """A group at one version of its store. `g["name"]` opens a child; iterating gives the children's names.

    A handle means the group, as that of an array does, and not what lies at a path: after a move what is asked of it is
    found where it lies now. A group that was removed, or replaced by something else, raises `NotFoundError`.

    Of a group opened at a version everything is as it was then: its children, what they hold, its metadata.
    """

    def __init__(self, native: "_native.Group", context: Context, mode: str, *, pinned: bool = False) -> None:
        self._native, self._context, self._mode, self._pinned = native, context, mode, pinned

    @property
    def uri(self) -> str:
        """The store."""
        return self._native.uri

    @property
    def path(self) -> str:
        """The place in the store at this version; "/" is its root. `refreshed().path` is where it lies now."""
        return self._native.path

    @property
    def key_id(self) -> str | None:
        """The id, in hexadecimal digits, of the key that seals (encrypts) the store; None if it is not sealed."""
        return self._native.key_id

    @property
    def version(self) -> int:
        """The store's version when it was opened."""
        return self._native.version

    def children(self) -> list[Entry]:
        """The arrays and groups in it, by name."""
        return [Entry(name, joined(self.path, name), kind) for name, kind in self._native.children()]

    @checked()
    def __getitem__(self, name: str) -> "Array | Group":
        from . import store

        version = self.version if self._pinned else None
        return store.open(self.uri, path=self._place(name), mode=self._mode, version=version, context=self._context)

    @checked()
    def create(self, name: str, schema: "Schema", *, overwrite: bool = False) -> "Array":
        """Creates an array in this group."""
        from . import store

        self._check_newest()
        path = self._place(name)
        return store.create(self.uri, schema, path=path, overwrite=overwrite, context=self._context)

    @checked()
    def group(self, name: str) -> "Group":
        """The group of this name, created if it does not exist."""
        from . import store

        self._check_newest()
        return store.group(self.uri, path=self._place(name), context=self._context)

    @checked(target=text)
    def move(self, name: str, target: str, *, message: str | None = None) -> int:
        """Moves what is called `name` in this group, with everything below it, to `target`: a name or path in this
        group, or, from "/" on, a path in the store. See `gridstone.move`; returns the version."""
        from . import copying

        self._writable()
        here = self.refreshed().path
        place = target if target.startswith("/") else joined(here, target)
        return copying.move(self.uri, joined(here, name), place, message=message, context=self._context)

    @checked()
    def remove(self, name: str, *, message: str | None = None) -> int:
        """Removes what is called `name` in this group, with everything below it: earlier versions keep it until a
        vacuum forgets them. `del group[name]` does the same; returns the version."""
        from . import store

        self._check_newest()
        self._writable()
        return store.removed(self.uri, joined(self.refreshed().path, name), message, self._context)

    def __delitem__(self, name: str) -> None:
        self.remove(name)

    @property
    def meta(self) -> Metadata:
        """Metadata: a mutable mapping of text to JSON values, always that of the newest version; of a group opened at a
        version that of then."""
        return Metadata(lambda: self._now()._native, self._writable)

    def _check_newest(self) -> None:
        if self._pinned:
            raise InputError(
                f"the group {self.path!r} was opened at version {self.version}, which is the past and cannot be "
                "written; open it without a version"
            )

    def _writable(self) -> "_native.Group":
        if self._mode != "r+":
            raise AccessError(f'the group {self.path!r} was opened for reading; open it with mode="r+" to write')
        return self._native

    @checked()
    def verify(self, *, progress: Progress = None) -> health.Report:
        """Checks the whole store and all its versions; see `gridstone.verify`.

        Args:
            progress: True for a bar, or a callable `f(done, total)`: stored bytes of fragments.
        """
        return health.verify(self.uri, context=self._context, progress=progress)

    def _vacuum(self, dry_run: bool, *options: Any) -> str:
        if self._mode != "r+" and not dry_run:
            raise AccessError('this group was opened for reading; open it with mode="r+" to vacuum its store')
        return self._native.vacuum(self._context.native, *options)

    def _tags(self) -> list[tuple[str, int]]:
        return self._now()._native.tags

    def __bool__(self) -> bool:
        """True, also of an empty group: a handle is there. How many children it has is `len`."""
        return True

    def __iter__(self) -> Iterator[str]:
        return iter([entry.name for entry in self._now().children()])

    def __len__(self) -> int:
        return len(self._now().children())

    def __contains__(self, name: object) -> bool:
        return any(entry.name == name for entry in self._now().children())

    def _now(self) -> "Group":
        return self if self._pinned else self.refreshed()

    def refreshed(self) -> "Group":
        """The group at the store's newest version, wherever it lies there."""
        return Group(self._native.refreshed(self._context.native), self._context, self._mode)

    def _place(self, name: str) -> str:
        """The path of `name` in the group, where it lies now."""
        return joined(self._now().path, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.uri, self.path, self.version, self._mode, self._context, self._pinned)

    def __repr__(self) -> str:
        names = ", ".join(f"{entry.name} ({entry.kind})" for entry in self.children())
        return f"<gridstone.Group {self.uri!r} {self.path!r}: {names or 'empty'}>"

    def _repr_html_(self) -> str:
        from . import html

        return html.group(self)


def _reopen(uri: str, path: str, version: int, mode: str, context: Context, pinned: bool = False) -> Group:
    found = _native.open(context.native, uri, path, False, version, None)
    if not isinstance(found, _native.Group):
        raise NotFoundError(f"{uri!r} holds no group at {path!r}")
    return Group(found, context, mode, pinned=pinned)
