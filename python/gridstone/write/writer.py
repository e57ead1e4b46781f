"""`Writer`: cells streamed into one commit."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from ..base.progress import Progress, Reporter
from ..column import encode
from ..column.columns import Column
from ..column.values import cells_shape
from ..errors import InputError
from ..query.box import Box
from ..schema.array_schema import Schema
from ..schema.fields import attr_field
from ..version.receipt import Closing, Receipt
from .input import check_lengths, of_cells
from .new_attrs import kept
from .values import by_attribute

if TYPE_CHECKING:
    from .. import _native


class Target(Protocol):
    """What a writer needs of an array."""

    @property
    def _schema(self) -> Schema: ...

    def _commit(self, staged: Sequence["_native.Staged"], message: Closing) -> int | Receipt: ...


class Writer:
    """Cells written piece by piece: `with a.writer() as w: w.append(...)`. Leaving the block commits them; an
    exception in the block leaves the store as it was. One thread appends at a time; any may abort.
    """

    def __init__(
        self,
        array: Target,
        native: "_native.Writer",
        box: Box | None,
        attrs: Sequence[str],
        message: Closing,
        progress: Progress = None,
    ) -> None:
        self._array, self._native, self._box, self._attrs, self._message = array, native, box, attrs, message
        self._reporter = Reporter(progress, "writing")
        self._open = True
        self._outcome: int | Receipt | None = None

    @property
    def box(self) -> Box | None:
        """The box that a dense fragment covers; None of cells that say where they are."""
        return self._box

    @property
    def receipt(self) -> Receipt | None:
        """What `gridstone.commit` takes, once a writer with `commit=False` is closed; else None."""
        return self._outcome if isinstance(self._outcome, Receipt) else None

    @property
    def outcome(self) -> int | Receipt:
        """The version committed, or the receipt; an `InputError` before it is closed."""
        if self._outcome is None:
            raise InputError("this writer has committed nothing yet; leave its block, or close it")
        return self._outcome

    def append(self, data: Any, attrs: Any = None) -> None:
        """Appends cells; unless the writer takes any order they follow those appended before in global order.

        Args:
            data: coordinates as in `write_cells`, or a table. Dense, in global order: flat values (a dict of them by
                attribute, where the writer takes several).
            attrs: attribute values, where `data` are coordinates.

        Raises:
            InputError: values that do not fit, or cells out of order; or another thread is using the writer, or aborted
                it meanwhile.
        """
        if not self._open:
            raise InputError("this writer is finished; open another one with array.writer()")
        schema = self._array._schema
        only = self._attrs[0] if len(self._attrs) == 1 else None
        if self._box is None:
            if attrs is not None and only is not None and not isinstance(attrs, Mapping):
                attrs = {only: attrs}
            dims, values = of_cells(schema, data, attrs)
            self.append_columns(list(dims.values()), values)
            return
        if attrs is not None:
            raise InputError("a dense fragment is written from values alone; their place follows from the global order")
        given = by_attribute(schema, data, None if isinstance(data, Mapping) else only)
        self._check_attrs(given)
        made = {n: self._flat(n, v) for n, v in given.items()}
        check_lengths(made)
        self._native.append(None, {name: column.native() for name, column in made.items()})
        self._reporter.more(len(next(iter(made.values()))))

    def append_columns(self, dims: Sequence[Column] | None, values: Mapping[str, Column]) -> None:
        """Appends cells from columns that fit the schema, one per dimension and attribute; without those of dimensions
        values of a dense box in global order."""
        self._check_attrs(values)
        native = {name: column.native() for name, column in values.items()}
        self._native.append(None if dims is None else [column.native() for column in dims], native)
        self._reporter.more(len(next(iter(values.values())) if dims is None else dims[0]))

    def _check_attrs(self, given: Iterable[str]) -> None:
        if set(given) != set(self._attrs):
            raise InputError(
                f"this writer takes the attributes {list(self._attrs)} in each piece, found {list(given)}; "
                "writer(attrs=) says which ones come"
            )

    def _flat(self, name: str, data: Any) -> Column:
        field = attr_field(self._array._schema, name)
        if len(cells_shape(field, data)) != 1 and len(data) > 0:
            raise InputError(
                f"attribute {name!r}: append takes flat values in global order, found {field.dtype} of shape "
                f"{cells_shape(field, data)}"
            )
        return encode.from_values(field, data)

    def close(self) -> None:
        """Finishes the fragment and commits it. An `InputError`, and the writer stays as it is, if another thread is
        using it."""
        if self._open:
            staged = self._native.finish()
            # Before the commit, which neither an exception nor `abort` can take back.
            try:
                self._reporter.end()
                if not self._open:
                    raise InputError("this writer was aborted while it was closed; nothing was committed")
            except BaseException:
                self._open = False
                del staged  # With its files, which the traceback would keep.
                raise
            self._open = False
            self._outcome = self._array._commit([staged], self._message)

    def abort(self) -> None:
        """Drops what was written. An `append` or `close` of another thread that is under way ends with an error."""
        if self._open:
            self._open = False
            self._reporter.give_up()
            self._native.abort()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            self.abort()


Opened = tuple[Target, "_native.Writer", Sequence[str]]


class LateWriter(Writer):
    """A writer that is opened when its first piece comes, which says what attributes there are."""

    def __init__(
        self,
        opening: Callable[[Any, Any], Opened],
        giving_up: Callable[[], None],
        message: Closing,
        progress: Progress = None,
    ) -> None:
        self._opening: Callable[[Any, Any], Opened] | None = opening
        self._giving_up, self._box, self._message = giving_up, None, message
        self._reporter = Reporter(progress, "writing")
        self._open = True
        self._outcome = None

    def append(self, data: Any, attrs: Any = None) -> None:
        """Appends cells, as `Writer.append` does. Columns of the first piece that the array lacks become nullable
        attributes."""
        data = kept(data)
        self._begin(data, attrs)
        super().append(data, attrs)

    def _begin(self, data: Any, attrs: Any) -> None:
        opening = self._opening
        if self._open and opening is not None:
            self._array, self._native, self._attrs = opening(data, attrs)
            self._opening = None

    def close(self) -> None:
        """Finishes and commits, as `Writer.close` does; without any piece nothing is added."""
        self._begin({}, None)
        super().close()

    def abort(self) -> None:
        """Drops what was written, and the attributes that were added."""
        if self._open and self._opening is not None:
            self._open = False
            self._reporter.give_up()
        super().abort()
        if self._outcome is None:
            self._giving_up()
