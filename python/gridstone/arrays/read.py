"""Reads the cells of a box, or those that a condition selects, whole or as a stream."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from .. import _native
from ..base.arguments import checked, known, mapping, several, whole
from ..base.printable import brief
from ..base.progress import Progress, Reporter, reporting
from ..column import decode
from ..column.datatype import AnyArray
from ..context.settings import size_bytes
from ..errors import BoundsError, GridstoneError, InputError
from ..query.box import Box, BoxLike, Clip, Region, Room, region_of, room_of
from ..query.condition import Where, condition_of
from ..result import damage
from ..result.cells import Result, from_cells, of_nothing, of_selected
from ..result.damage import CHOICES, Damaged
from ..result.out import fill_out, needs_dense, of_targets, targets_of
from ..schema.array_schema import Schema
from ..schema.fields import asked_of_core, attr_field, bytes_of_first, column_of
from .noting import Looking
from .source import ArraySource

if TYPE_CHECKING:
    from ..result.buffers import Buffers, Filling
    from ..result.stream import Stream

_Found = TypeVar("_Found")
_ORDERS = ("row", "col", "global", "any")


class Readable(Looking):
    """The part of an array that reads boxes."""

    @property
    @abstractmethod
    def schema_names(self) -> list[str]: ...

    @checked()
    def read(
        self,
        box: BoxLike = None,
        attrs: Sequence[str] | str | None = None,
        where: Where | None = None,
        order: str = "row",
        out: AnyArray | Mapping[str, AnyArray] | None = None,
        progress: Progress = None,
        *,
        clip: Clip = True,
        damaged: Damaged = "error",
        limit: int | None = None,
    ) -> Result:
        """Reads a box whole, or those of its cells for which a condition is true.

        Args:
            box: in coordinates: `{dim: (lo, hi)}` (inclusive), `{dim: slice}` (half-open) or a tuple of these; None:
                the whole domain. Ends need not be coordinates: 1.5 along integers selects as `where=` does. A written
                date or time is a period, which both ends include: `("2026-03", "2026-05-31")` begins with March and
                ends with the last instant of May. A list of boxes, which may overlap: the cells that lie in any of
                them, each once (of a dense array as with `where`: a list of cells with their coordinates).
            attrs: the attributes wanted; None: all. []: of a sparse array, its cells' coordinates alone (the narrowest
                attribute is read with them, and dropped).
            where: a condition on dimensions and attributes, as a text (`"sog > 3"`) or made with `gs.col`. The result
                is a list of cells with their coordinates then, of a dense array too, where unwritten cells are what
                they read as; `.to_dense()` makes arrays of them.
            order: a list of cells: their order, "row", "col", "global" or "any". A dense box: the memory layout;
                "global" gives flat vectors in global order.
            out: dense, without `where`: an array of the result's shape and type to fill, or a dict of them by
                attribute. One that is contiguous in the order asked for, of fixed-width values without nulls, is filled
                straight. No two of its cells may share memory. After an error it may hold anything.
            progress: True for a bar, or a callable `f(done, total)`.
            clip: True: of a box that reaches beyond the domain the part inside is read, which may be nothing. "error":
                it is a `BoundsError`, as a single coordinate outside always is.
            damaged: "error": damage is a `CorruptionError`. "skip": damaged blocks and lost files are left out, with a
                `DamageWarning`, and `result.damage` says what: cells of sparse arrays are absent there, those of dense
                ones fill, or null. Older cells under a damaged newer fragment are left out too, since what was written
                last is not known.
            limit: at most so many cells, the first ones in the order asked for, as a list of cells with their
                coordinates. Little more than these is read with the orders "any" and "global".

        Raises:
            BoundsError: a single coordinate or period outside the domain; with `clip="error"` a box that is not inside.
            InputError: an unknown dimension, attribute or order; a condition that does not fit the schema.
            CorruptionError: stored bytes are not what was written.

        Example:
            >>> found = a.read({"x": (0, 499)}, attrs=["sog"], where="sog > 12", limit=3)
            >>> list(found), len(found)
            (['x', 'sog'], 3)
        """
        known("order", order, _ORDERS)
        known("damaged", damaged, CHOICES)
        room = room_of(clip)
        if limit is not None:
            return self._first(limit, box, room, attrs, where, order, out, progress, damaged)

        def look(schema: Schema) -> Result:
            region = region_of(schema, box, room)
            found = self._read_of(schema, region, attrs, where, order, out, progress, damaged)
            if not schema.sparse:
                found._source = ArraySource(self.native, schema)
            return found

        return self._retry_if_schema_moved(look)

    def _retry_if_schema_moved(self, look: Callable[[Schema], _Found]) -> _Found:
        """What `look` finds when the schema that it is given is still the array's afterwards: a commit through the same
        handle, in another thread, may change it in between, and what was read is of that version then."""
        while True:
            schema = self._schema
            try:
                found = look(schema)
            except GridstoneError as error:
                if self._schema is schema:
                    if isinstance(error, BoundsError):
                        self._note_ends()  # That nothing is there is so by the ends of the domain.
                    raise
                continue
            if self._schema is schema:
                return found

    def _read_of(
        self,
        schema: Schema,
        region: Region,
        attrs: Sequence[str] | str | None,
        where: Where | None,
        order: str,
        out: AnyArray | Mapping[str, AnyArray] | None,
        progress: Progress,
        damaged: Damaged,
    ) -> Result:
        """`read`, whose arguments these are, of an array with this schema."""
        names = self._names(attrs, schema, cells=where is not None or region.listed)
        self._note_cut(region)
        if where is not None or region.listed or schema.sparse:
            if out is not None and where is None and not region.listed:
                raise needs_dense()
            if out is not None:
                raise InputError(
                    "out= takes a whole box, and a condition or a list of boxes selects cells whose number is not "
                    "known before; read without out="
                )
            condition = None if where is None else condition_of(where)
            return self._read_cells(schema, region, names, condition, order, damaged, progress)
        within, budget = region.hull, self._context.memory_budget
        if damaged == "skip" and not within.empty:
            with reporting(progress, "reading") as report:
                found = self.native.read_around(region.native, names, None, order, report)
            made = from_cells(schema, within, names, order, found, budget)
            made._damage, self._stats = damage.skipped_parts(schema, found.damage, 2), made.stats
            if out is not None:
                fill_out(made, out)
            return made
        if out is not None and not within.empty:
            targets = targets_of(schema, within, names, order, out)
            if targets is not None:
                with reporting(progress, "reading") as report:
                    buffers = [target.flat for target in targets]
                    self._stats = self.native.read_into(within.bounds, names, order, buffers, report)
                return of_targets(schema, within, names, order, targets, self._stats, budget)
        if within.empty:
            made = of_nothing(schema, within, names, order, budget)
        else:
            with reporting(progress, "reading") as report:
                found = self.native.read(within.bounds, names, order, report)
            made = from_cells(schema, within, names, order, found, budget)
        self._stats = made.stats
        if out is not None:
            fill_out(made, out)
        return made

    def _first(
        self,
        limit: int,
        box: BoxLike,
        room: Room,
        attrs: Sequence[str] | str | None,
        where: Where | None,
        order: str,
        out: AnyArray | Mapping[str, AnyArray] | None,
        progress: Progress,
        damaged: Damaged,
    ) -> Result:
        """The first cells of `read`, whose arguments these are."""
        if out is not None:
            raise InputError("out= takes a whole box, and limit= makes a list of cells; read without one of them")

        def look(schema: Schema) -> Result:
            region = region_of(schema, box, room)
            with closing(
                self.scan(region, attrs, where, order, damaged=damaged, progress=progress, limit=limit)
            ) as stream:
                made = stream._result()
            self._stats = made.stats
            return made

        return self._retry_if_schema_moved(look)

    def head(self, n: int = 10, attrs: Sequence[str] | str | None = None) -> Result:
        """Some cells to look at, with their coordinates: the first `n` in global order. Few tiles are read for them.

        print(a.head().to_pandas())
        """
        return self.read(None, attrs, order="global", limit=whole("n", n))

    def _read_box(self, schema: Schema, box: Box, names: list[str]) -> dict[str, AnyArray]:
        """What `read` gives of a box of a dense array as NumPy; what is asked for is known to be right."""
        if box.empty:
            made = of_nothing(schema, box, names, "row", self._context.memory_budget)
            self._stats = made.stats
            return made.to_numpy()
        found = self.native.read(box.bounds, names, "row", None)
        self._stats, given, shape = dict(found.stats), found.attrs, box.shape
        return {name: decode.numpy_of(column_of(schema.attr(name), given[name]).shaped(shape, "row")) for name in names}

    def _read_cells(
        self,
        schema: Schema,
        region: Region,
        names: list[str],
        condition: "_native.Condition | None",
        order: str,
        damaged: Damaged,
        progress: Progress,
    ) -> Result:
        budget = self._context.memory_budget
        if region.empty:
            if condition is not None:
                condition.check(schema.to_json())
            made = of_selected(schema, region.hull, names, order, None, budget)
        else:
            read = self.native.read_cells if damaged == "error" else self.native.read_around
            with reporting(progress, "reading") as report:
                found = read(region.native, asked_of_core(schema, names), condition, order, report)
            made = of_selected(schema, region.hull, names, order, found, budget)
            made._damage = damage.skipped_parts(schema, found.damage, 3)
        self._stats = made.stats
        return made

    @checked()
    def scan(
        self,
        box: BoxLike = None,
        attrs: Sequence[str] | str | None = None,
        where: Where | None = None,
        order: str = "any",
        batch_bytes: int | str = "64MiB",
        *,
        clip: Clip = True,
        damaged: Damaged = "error",
        progress: Progress = None,
        limit: int | None = None,
    ) -> "Stream":
        """Streams a box as Arrow record batches of about `batch_bytes`, in bounded memory; arguments as `read`. With
        `where` a batch may be smaller. `damaged="skip"` reads the box once before the first batch; `stream.damage` says
        what is left out. `progress` is called with the number of cells given, and their total at the end. After `limit`
        cells the stream ends."""
        from ..result.stream import Stream

        region = region_of(self._schema, box, room_of(clip))
        names = self._names(attrs, cells=where is not None or region.listed)
        known("order", order, _ORDERS)
        known("damaged", damaged, CHOICES)
        condition = None if where is None else condition_of(where)
        size = size_bytes(batch_bytes, "batch_bytes")
        if limit is not None:
            size = bytes_of_first(self._schema, names, whole("limit", limit), size)
        self._note_cut(region)
        if region.empty and condition is not None:
            condition.check(self._schema.to_json())
        asked = asked_of_core(self._schema, names)
        start = self.native.scan if damaged == "error" else self.native.scan_around
        scan = None if region.empty else start(region.native, asked, order, size, condition)
        left_out = () if scan is None else damage.skipped_parts(self._schema, scan.damage, 2)
        return Stream(self._schema, names, scan, region.hull, self._context.memory_budget, left_out, progress, limit)

    @checked(buffers=mapping)
    def read_into(
        self,
        buffers: "Buffers",
        box: BoxLike = None,
        where: Where | None = None,
        order: str = "row",
        *,
        clip: Clip = True,
        progress: Progress = None,
    ) -> "Filling":
        """Reads a box, or what a condition selects of it, into the caller's buffers, as many cells at a time as fit.

        Args:
            buffers: arrays by the name of a dimension or attribute (coordinates can be had of dense arrays too), of its
                dtype and contiguous. Where values vary in length or may be null, a dict: "values" (uint8 for text and
                bytes, a list's own type for lists), "offsets" (int64, one more than cells, counting bytes from 0) and
                "validity" (bool or uint8). The smallest of them says how many cells fit. An enumerated attribute
                gives codes, the places of values in `Attr.categories`, in a buffer of the type `Attr.codes`.
            box: as for `read`, a list of boxes too.
            where: as for `read`.
            order: "row", "col", "global" or "any".
            clip: as for `read`.
            progress: True for a bar, or a callable `f(done, total)`: cells given; the total is 0 until the end.

        Returns:
            A `Filling`: each `submit()` fills the buffers and returns the number of cells, until `complete`.

        Raises:
            InputError: a buffer that does not fit its column; an unknown name, order or condition.
            BoundsError: as for `read`.
        """
        from ..result.buffers import begin

        known("order", order, _ORDERS)
        schema = self._schema
        region = region_of(schema, box, room_of(clip))
        self._note_cut(region)
        return begin(
            self.native,
            schema,
            region,
            buffers,
            where=where,
            order=order,
            budget=self._context.memory_budget,
            reporter=Reporter(progress, "reading"),
        )

    def _names(
        self, attrs: Sequence[str] | str | None, schema: Schema | None = None, *, cells: bool = False
    ) -> list[str]:
        """The attributes that are wanted; `cells`: rows of cells come, for which coordinates alone tell something."""
        schema = schema or self._schema
        if attrs is None:
            return [attr.name for attr in schema.attrs]
        several("attrs", attrs)
        names = [attrs] if isinstance(attrs, str) else list(attrs)
        if not names and not schema.sparse and not cells:
            raise InputError(
                "attrs=[] reads coordinates alone: of the cells of a sparse array, and of those of a dense one that a "
                "condition or a list of boxes selects; name an attribute, or leave attrs out for all of them"
            )
        if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
            raise InputError(
                f"attrs= names each attribute wanted once, found {brief(names)}; leave it out for all of them"
            )
        for dim in schema.dims:
            if dim.name in names:
                raise InputError(
                    f"attrs= names attributes, {dim.name!r} is a dimension: leave it out, coordinates always come along"
                )
        return [attr_field(schema, name).name for name in names]
