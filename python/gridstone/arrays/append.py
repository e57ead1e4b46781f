"""Appending: blocks behind the end of a dense array, rows to a sparse one, frames as they come."""

import operator
import threading
import uuid
from abc import abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import _native
from ..base.arguments import checked
from ..base.printable import brief
from ..base.progress import Progress, reporting
from ..column import datatype
from ..column.columns import Field
from ..column.values import cells_shape
from ..errors import BoundsError, InputError
from ..indexing import dense
from ..labels import along, blocks
from ..schema.array_schema import Schema
from ..schema.fields import attr_field
from ..schema.labels import SHARED
from ..version import receipt
from ..version.receipt import CommitKey, Message
from ..write.values import by_attribute

_BYTES_HELD_MAX = 64 << 20
"""So many bytes of frames are held at most."""


class Appendable:
    """The part of an array that appends."""

    @property
    @abstractmethod
    def sparse(self) -> bool: ...

    @property
    @abstractmethod
    def _schema(self) -> Schema: ...

    @abstractmethod
    def _writable(self) -> "_native.Array": ...

    @abstractmethod
    def _noted_stats(self, stats: Mapping[str, int]) -> None: ...

    @abstractmethod
    def _write_table(self, table: Any, message: Message, progress: Progress, commit_key: CommitKey) -> int: ...

    @checked()
    def append(
        self,
        x: Any,
        axis: int | str = 0,
        *,
        labels: Any = None,
        message: Message = None,
        progress: Progress = None,
        commit: bool = True,
        commit_key: CommitKey = None,
    ) -> int:
        """Appends to the array in one commit; the domain grows.

        Dense: a block behind the end of the array along one axis. Other processes may append at the same time: each
        block lies behind those of all commits before it, and none is lost. Sparse: the rows of a table, wherever their
        coordinates lie.

        Args:
            x: dense: an array (a dict of them by attribute, if there are several) as long as the array along every
                other axis; without the axis itself it is one position. Sparse: an Arrow table, a data frame or a dict
                with a column for each dimension and attribute.
            axis: of a dense array: its number (negative: from the last) or the name of the dimension.
            labels: where the dimension has labels, those of the new positions: a list, or one of one position. They are
                needed where they are in a list; labels at steps go on by themselves, and become a list if those given
                do not. A DataArray of xarray brings its own, and its dimensions by name; a frame or series of pandas
                its index.
            message: kept with the version.
            progress: True for a bar, or a callable `f(done, total)`.
            commit: True. An append finds its place when it is committed, so it cannot be left to a later commit.
            commit_key: as in `write`: the same block, repeated with the same key, is appended once.

        Returns:
            The version committed; the present one if `x` has no positions.

        Raises:
            BoundsError: no such axis; or its type has too few coordinates left.
            InputError: a block of another shape, or values or labels that do not fit.
            ConflictError: the key was given to other content.

        Example:
            >>> a.append(np.zeros((3, 4)))  # three more rows of four; gives the version
            3
            >>> a.shape
            (8, 4)
        """
        if not commit:
            raise InputError(
                "append(commit=False): an append finds its place when it is committed; "
                "write(data, box, grow=True, commit=False) stages a block at a place that you choose"
            )
        if self.sparse:
            if axis != 0:
                raise InputError("axis= is for dense arrays; the rows of a sparse one say themselves where they are")
            if labels is not None:
                raise InputError("labels= are of the positions of dense arrays; rows have coordinates")
            return self._write_table(x, message, progress, commit_key)
        place = place_of(self._schema, axis)
        x, labels = blocks.taken(self._writable(), self._schema, x, place, labels)
        return self._append_block(x, place, labels, message, progress, commit_key)

    def _append_block(
        self, x: Any, axis: int, labels: Any, message: Message, progress: Progress, commit_key: CommitKey
    ) -> int:
        schema, native = self._schema, self._writable()
        given = {
            name: _whole(attr_field(schema, name), data, schema, axis)
            for name, data in by_attribute(schema, x, None).items()
        }
        counts = {name: _count(attr_field(schema, name), data, schema, axis) for name, data in given.items()}
        if len(set(counts.values())) > 1:
            raise InputError(f"every attribute needs as many positions along axis {axis}, found {counts}")
        count = next(iter(counts.values()))
        if count == 0:
            return native.version
        shape = tuple(count if place == axis else size for place, size in enumerate(schema.shape))
        layout, made = dense.columns_of_box(schema, given, shape)
        key = receipt.commit_key(commit_key)
        more = None if labels is None else along.more_labels(native, schema, axis, labels, count)
        try:
            with reporting(progress, "writing") as report:
                version = _native.append_block(native, (axis, count), made, layout, message, report, key, more)
        except InputError:
            # Another commit may have made the array longer along another axis.
            for name, data in given.items():
                _count(attr_field(self._schema, name), data, self._schema, axis)
            raise
        self._noted_stats({"cells_written": int(np.prod(shape))})
        return version


def place_of(schema: Schema, axis: int | str) -> int:
    """The number of an axis; a `BoundsError` if there is none."""
    names = [dim.name for dim in schema.dims]
    if isinstance(axis, str):
        if axis not in names:
            raise BoundsError(f"there is no dimension {brief(axis)}; there are {', '.join(map(repr, names))}")
        return names.index(axis)
    try:
        place = operator.index(axis)
    except TypeError:
        raise InputError(f"axis= is the number or the name of a dimension, not {brief(axis)}") from None
    if not -len(names) <= place < len(names):
        raise BoundsError(f"there is no axis {brief(place)}; the array has {len(names)}: {', '.join(map(repr, names))}")
    return place % len(names)


def _whole(field: Field, data: Any, schema: Schema, axis: int) -> Any:
    """The data with the axis, which one position may leave out."""
    found = cells_shape(field, data)
    if len(found) != schema.ndim - 1:
        return data
    if np.ma.isMaskedArray(data):
        return np.ma.expand_dims(data, axis)
    return np.expand_dims(np.asarray(data, dtype=object if datatype.is_var(field.dtype) else None), axis)


def _count(field: Field, data: Any, schema: Schema, axis: int) -> int:
    """How many positions the data has along the axis; an `InputError` if it is not as long as the array elsewhere."""
    found = cells_shape(field, data)
    wanted = tuple("any" if place == axis else size for place, size in enumerate(schema.shape))
    if len(found) != schema.ndim or any(
        size != want for place, (size, want) in enumerate(zip(found, wanted, strict=True)) if place != axis
    ):
        raise InputError(
            f"{field.title}: a block of shape ({', '.join(map(str, wanted))}) is appended along axis {axis}, "
            f"found {found}"
        )
    return found[axis]


class Target(Protocol):
    """What an appender needs of an array."""

    @property
    def _schema(self) -> Schema: ...

    @property
    def sparse(self) -> bool: ...

    @property
    def native(self) -> "_native.Array": ...

    def append(
        self,
        x: Any,
        axis: int | str = 0,
        *,
        labels: Any = None,
        message: Message = None,
        commit_key: CommitKey = None,
    ) -> int: ...


def appender(
    array: "Target", axis: int | str, every: int | None, seconds: float | None, message: Message
) -> "Appender":
    """What appends frames to a dense array along this axis."""
    if every is not None and (isinstance(every, bool) or every < 1):
        raise InputError(f"every= is a number of positions, at least 1, not {brief(every)}")
    if seconds is not None and not seconds > 0:
        raise InputError(f"seconds= is a time above 0, not {brief(seconds)}")
    return Appender(array, place_of(array._schema, axis), every, seconds, message)


class _Block(NamedTuple):
    """Frames that were given to a commit, whose outcome is not known yet."""

    values: Mapping[str, Any]
    labels: Any
    positions: int
    key: str


class Appender:
    """Frames that are appended as they come: `with a.writer(axis=0, every=100) as w: w.append(frame)`.

    Frames are held until there are `every` of them, or the oldest is `seconds` old, or they take 64 MiB; then they are
    one commit, which readers see after `refresh()`. A frame that `append` took is committed at the latest when the
    block is left, also by an exception. `abort()` drops what is held. Several threads may append.
    """

    def __init__(
        self, array: Target, axis: int, every: int | None, seconds: float | None, message: Message = None
    ) -> None:
        self._array, self._axis, self._every, self._seconds, self._message = array, axis, every, seconds, message
        self._lock = threading.RLock()
        self._held: list[Mapping[str, Any]] = []
        self._labels: list[Any] = []
        self._positions, self._bytes = 0, 0
        self._tried: _Block | None = None
        self._timer: threading.Timer | None = None
        self._failure: Exception | None = None
        self._is_open = True
        self.committed = 0
        """Positions committed so far."""

    def append(self, frame: Any, label: Any = None) -> None:
        """Takes one position (an array without the axis) or several (with it); of several attributes a dict.

        Args:
            frame: the values; those of xarray and pandas bring their labels, as `append` takes them.
            label: of a dimension with labels, that of the position, or a list of them; needed where they are in a list.

        Raises:
            InputError: a frame of another shape or type, or without its label; or the writer is closed.
            GridstoneError: a commit in the background failed; the frames are still held, and `flush()` tries again.
        """
        with self._lock:
            if not self._is_open:
                raise InputError("this writer is finished; open another one with array.writer(axis=...)")
            self._raise_failure()
            schema = self._array._schema
            frame, label = blocks.taken(self._array.native, schema, frame, self._axis, label)
            given = by_attribute(schema, frame, None)
            made = {name: _whole(attr_field(schema, name), data, schema, self._axis) for name, data in given.items()}
            if self._held and set(made) != set(self._held[0]):
                raise InputError(f"the first frame has the attributes {list(self._held[0])}, this one {list(made)}")
            counts = {_count(attr_field(schema, name), data, schema, self._axis) for name, data in made.items()}
            if len(counts) != 1:
                raise InputError(f"every attribute needs as many positions along axis {self._axis}, found {counts}")
            labels = self._labels_of(schema, label, next(iter(counts)))
            # The caller may fill the same buffer again.
            self._held.append(
                {name: np.ma.copy(d) if np.ma.isMaskedArray(d) else np.array(d) for name, d in made.items()}
            )
            self._labels += [] if labels is None else [labels]
            self._positions += counts.pop()
            self._bytes += sum(getattr(data, "nbytes", 0) for data in made.values())
            if (self._every is not None and self._positions >= self._every) or self._bytes >= _BYTES_HELD_MAX:
                self.flush()
            elif self._seconds is not None and self._timer is None:
                self._timer = threading.Timer(self._seconds, self._flush_later)
                self._timer.daemon = True
                self._timer.start()

    def _labels_of(self, schema: Schema, label: Any, count: int) -> Any:
        """The labels of a frame; an `InputError` if some frames have them and others not."""
        dim = schema.dims[self._axis]
        if label is None:
            if isinstance(dim._stored_labels, str) and not dim._stored_labels.startswith(SHARED):
                raise InputError(
                    f"dimension {dim.name!r} has a list of labels: give that of the frame, append(frame, label=…)"
                )
            if self._labels:
                raise InputError("the frames before have labels, this one has none; give each its own, or none any")
            return None
        if dim._stored_labels is None and not dim.is_empty:
            raise InputError(
                f"dimension {dim.name!r} has no labels that those of a frame could continue; leave label= out, or set "
                f"labels for all positions first: alter(labels={{{dim.name!r}: …}})"
            )
        if self._held and not self._labels:
            raise InputError("the frames before have no labels, this one has; give each its own, or none any")
        return along.typed_labels(self._array.native, schema, self._axis, label, count).values

    def flush(self) -> None:
        """Commits what is held. After an error it is held still; another try commits it once, whatever became of the
        first."""
        with self._lock:
            self._stop_timer()
            self._failure = None
            # A block that was tried keeps its frames and its key: frames that came since are a block of their own.
            while self._tried is not None or self._held:
                if self._tried is None:
                    joined = {n: _joined([frame[n] for frame in self._held], self._axis) for n in self._held[0]}
                    labels = _joined(self._labels, 0) if self._labels else None
                    self._tried = _Block(joined, labels, self._positions, f"frames-{uuid.uuid4()}")
                    self._held, self._labels, self._positions, self._bytes = [], [], 0, 0
                block = self._tried
                self._array.append(
                    block.values, self._axis, labels=block.labels, message=self._message, commit_key=block.key
                )
                self.committed += block.positions
                self._tried = None

    def _flush_later(self) -> None:
        with self._lock:
            try:
                self.flush()
            except Exception as error:
                self._failure = error

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Commits what is held and ends."""
        with self._lock:
            if self._is_open:
                self.flush()
                self._is_open = False

    def abort(self) -> None:
        """Drops what is held and ends."""
        with self._lock:
            self._stop_timer()
            self._is_open = False
            self._held, self._labels, self._positions, self._bytes, self._tried = [], [], 0, 0, None

    def __enter__(self) -> "Appender":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _joined(frames: "list[Any]", axis: int) -> Any:
    """The frames as one block."""
    if any(np.ma.isMaskedArray(frame) for frame in frames):
        return np.ma.concatenate(frames, axis)  # type: ignore[no-untyped-call]
    return np.concatenate(frames, axis)
