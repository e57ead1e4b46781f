"""Reads into buffers of the caller in portions, until every cell was given."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .. import _native
from ..base.arguments import mapping
from ..base.printable import brief
from ..base.progress import Reporter
from ..column import datatype
from ..column.datatype import AnyArray
from ..errors import BudgetError, InputError
from ..query.box import Region
from ..query.condition import Where, condition_of
from ..schema.array_schema import Schema
from ..schema.fields import attr_field

Buffers = Mapping[str, "AnyArray | Mapping[str, AnyArray]"]
"""Arrays by the name of a dimension or attribute; "values", "offsets" and "validity" where one array is not enough."""

_Column = tuple[str, Any, Any, Any]
"""A name, and buffers: values, offsets, validity."""

_PARTS = ("values", "offsets", "validity")
_BATCH_BYTES_MIN = 64 * 1024


class Filling:
    """A read in portions: each `submit()` fills the buffers from their start with as many whole cells as fit.

    The cells are those of the version that the array showed when the read began. It can be used by one thread at a
    time. `for count in filling:` goes through all portions.
    """

    def __init__(self, native: "_native.Portions | None", schema: Schema, names: list[str], reporter: Reporter) -> None:
        self._native, self._schema, self._names, self._reporter = native, schema, names, reporter
        self._lost = False

    @property
    def complete(self) -> bool:
        """Whether every cell was given."""
        return not self._lost and (self._native is None or self._native.complete)

    @property
    def stats(self) -> dict[str, int]:
        """Counters of the read so far."""
        return (self._native and self._native.stats) or {}

    def submit(self, buffers: Buffers | None = None) -> int:
        """Fills the buffers with the next cells and returns how many; what lies behind them is left as it was.

        Args:
            buffers: other ones for the same columns, from now on.

        Returns:
            The number of cells; 0 only if there is none left.

        Raises:
            BudgetError: not a single cell fits; it says how large a buffer is needed. Nothing is lost: go on with
                larger ones.
            CorruptionError: stored bytes are not what was written.
        """
        columns = None
        if buffers is not None:
            mapping("buffers", buffers)
            if list(buffers) != self._names:
                raise InputError(f"other buffers are for the same columns, {self._names}, not {brief(list(buffers))}")
            columns = _columns(self._schema, buffers)
        if self._lost:
            raise InputError("an exception of progress= ended this read, and a portion went with it; read again")
        try:
            count = 0 if self._native is None else self._native.next(columns)
        except (BudgetError, InputError):
            # It may go on where it was: a bar goes with the read.
            raise
        except BaseException:
            self._reporter.give_up()
            raise
        try:
            self._reporter.more(count)
            if self.complete:
                self._reporter.end()
        except BaseException:
            # The caller does not learn how many cells were given; none may follow as if it had.
            self._lost = True
            raise
        return count

    def __iter__(self) -> Iterator[int]:
        while count := self.submit():
            yield count

    def __next__(self) -> int:
        count = self.submit()
        if count == 0:
            raise StopIteration
        return count

    def __repr__(self) -> str:
        return f"<gridstone.Filling of {', '.join(self._names)}: {'complete' if self.complete else 'cells are left'}>"


def begin(
    array: "_native.Array",
    schema: Schema,
    region: Region,
    buffers: Buffers,
    *,
    where: Where | None,
    order: str,
    budget: int,
    reporter: Reporter,
) -> Filling:
    """A read of the cells of a region into `buffers`, which takes no more than the budget, in bytes."""
    columns = _columns(schema, buffers)
    if not columns:
        raise InputError("read_into() needs a buffer for a dimension or attribute at least")
    condition = None if where is None else condition_of(where)
    if region.empty:
        if condition is not None:
            condition.check(schema.to_json())
        return Filling(None, schema, list(buffers), reporter)
    # Coordinates do not come alone.
    attrs = [attr.name for attr in schema.attrs if attr.name in buffers] or [schema.attrs[0].name]
    size = sum(part.nbytes for _, *parts in columns for part in parts if part is not None)
    size = min(max(_BATCH_BYTES_MIN, size), budget)
    native = array.portions(region.native, attrs, order, columns, size, condition)
    return Filling(native, schema, list(buffers), reporter)


def _columns(schema: Schema, buffers: Buffers) -> list[_Column]:
    """The buffers as the core takes them."""
    held = [(name, _checked(schema, name, given)) for name, given in buffers.items()]
    return [(name, _flat(parts["values"]), parts.get("offsets"), parts.get("validity")) for name, parts in held]


def _flat(values: AnyArray) -> AnyArray:
    """The bytes of the values, which other libraries' types have no buffers for."""
    return values.reshape(-1).view(np.uint8)


def _checked(schema: Schema, name: str, given: Any) -> dict[str, AnyArray]:
    """The buffers of one column, which fit its type."""
    dims = {dim.name: dim.dtype for dim in schema.dims}
    field = None if name in dims else attr_field(schema, name)
    kind, nullable = (dims[name], False) if field is None else (field.dtype, field.nullable)
    parts: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {"values": given}
    if "values" not in parts or not set(parts) <= set(_PARTS):
        raise InputError(f"{name!r}: a buffer is an array, or a dict of {', '.join(map(repr, _PARTS))}")
    for part, buffer in parts.items():
        if not isinstance(buffer, np.ndarray) or not buffer.flags.c_contiguous or not buffer.flags.writeable:
            raise InputError(f"{name!r}: {part} is a NumPy array that is contiguous and writable")
    label = f"{name!r} is {kind}"
    if field is not None and field.categories is not None:
        kind = field.categories.codes
        label = f"{name!r} is enumerated, its codes are {kind}"
    _check_values(label, kind, parts["values"])
    if datatype.is_var(kind) != ("offsets" in parts):
        needs = "needs offsets too: a dict of values, offsets" if datatype.is_var(kind) else "has no offsets"
        raise InputError(f"{label}, which {needs}")
    if "offsets" in parts and (parts["offsets"].dtype.kind not in "iu" or parts["offsets"].dtype.itemsize != 8):
        raise InputError(f"{name!r}: offsets are 64-bit integers, one more than cells, not {parts['offsets'].dtype}")
    if nullable and "validity" not in parts:
        raise InputError(f"{name!r} may be null: give a dict of values and validity (one byte or bool per cell)")
    if "validity" in parts and parts["validity"].dtype not in (np.dtype(np.bool_), np.dtype(np.uint8)):
        raise InputError(f"{name!r}: validity is an array of bool or uint8, not {parts['validity'].dtype}")
    return parts


def _check_values(label: str, kind: str, values: AnyArray) -> None:
    if datatype.is_var(kind):
        wanted: np.dtype[Any] = np.dtype(datatype.base_of(kind) if datatype.is_list(kind) else np.uint8)
    else:
        wanted = datatype.numpy_of(kind)
    shape = datatype.shape_of(kind)
    if values.dtype != wanted or values.shape[1:] != shape or values.ndim != 1 + len(shape):
        found = f"{values.dtype} of shape {values.shape}"
        sides = "".join(f", {n}" for n in shape)
        raise InputError(f"{label}: its buffer is {wanted} of shape (cells{sides}), not {found}")
