"""Boxes of coordinates, and lists of boxes, cut to the domain or checked against it.

Coordinates are the dimensions' own values. Slices of them are half-open; pairs `(lo, hi)` are inclusive. A written date
or time is a period, which both ends of pairs and slices include. A list of boxes is the cells that lie in any of them.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from ..base.arguments import checked
from ..base.printable import brief
from ..column import datatype, period
from ..column.datatype import AnyArray, Value
from ..errors import BoundsError, InputError
from ..schema.array_schema import Schema
from ..schema.dimension import Dim
from . import ends
from .axis import Axis, expand, slice_count
from .ends import Bound


class TextSpan(NamedTuple):
    """Texts from `lo` to `hi`, each None where that end is open; `below`: `hi` itself is left out."""

    lo: str | None
    hi: str | None
    below: bool

    @property
    def empty(self) -> bool:
        """Whether no text lies in it."""
        if self.hi is None:
            return False
        return (self.lo or "") >= self.hi if self.below else (self.lo or "") > self.hi

    def __str__(self) -> str:
        ends = ("" if end is None else repr(end) for end in (self.lo, self.hi))
        return f"({', '.join(ends)}{')' if self.below else ']'}".replace("(", "[", 1)


Native = list[tuple[Bound | str | None, Bound | str | None, bool]]
"""A box as the core takes it: per dimension its ends, and whether the high one is left out."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box of coordinates, inclusive at both ends; empty if a low end lies above its high end."""

    dims: tuple[Dim, ...]
    bounds: tuple[tuple[Bound, Bound], ...]
    """For a text dimension (0, 0), or (0, -1) if its span is empty."""
    spans: tuple[TextSpan | None, ...] = ()
    """By dimension, None for numbers; () if none is text."""
    open: tuple[tuple[bool, bool], ...] = field(default=(), compare=False)
    """By dimension, whether its ends were left open, and so are those of the domain; () if none was."""
    clipped: bool = field(default=False, compare=False)
    """Whether more was asked for than the domain has."""

    @property
    def empty(self) -> bool:
        """Whether no cell lies in it."""
        return any(lo > hi for lo, hi in self.bounds)

    @property
    def is_cut(self) -> bool:
        """Whether the ends of the domain cut it, or leave nothing of it: then they are a part of the answer."""
        if self.clipped:
            return True
        if not self.empty:
            return False
        return any(lo > hi and any(ends) for (lo, hi), ends in zip(self.bounds, self.open, strict=bool(self.open)))

    @property
    def native(self) -> Native:
        """The box as the core takes it."""
        if not self.spans:
            return [(lo, hi, False) for lo, hi in self.bounds]
        pairs = zip(self.bounds, self.spans, strict=True)
        return [(lo, hi, False) if span is None else (span.lo, span.hi, span.below) for (lo, hi), span in pairs]

    @property
    def given(self) -> Native:
        """As `native`, with None for the ends that were left open."""
        ends = self.open or ((False, False),) * len(self.bounds)
        return [
            (None if low else lo, None if high else hi, below)
            for (lo, hi, below), (low, high) in zip(self.native, ends, strict=True)
        ]

    @property
    def shape(self) -> tuple[int, ...]:
        """Coordinates per dimension; a `SchemaError` if one is float."""
        pairs = zip(self.dims, self.bounds, strict=True)
        # A box that is written may lie beyond the domain; `size` refuses floats and texts.
        return tuple([max(0, int(hi) - int(lo) + 1) if dim.size >= 0 else 0 for dim, (lo, hi) in pairs])

    def coordinates(self, axis: int) -> AnyArray:
        """The coordinates along one dimension, in the dimension's dtype."""
        lo, count = int(self.bounds[axis][0]), self.shape[axis]
        target = datatype.numpy_of(self.dims[axis].dtype)
        base = np.arange(count, dtype=np.uint64) + np.uint64(lo & (2**64 - 1))
        return base.view(np.int64).view(target) if target.kind in "mM" else base.astype(target)

    def __str__(self) -> str:
        spans = self.spans or (None,) * len(self.bounds)
        parts = zip(self.dims, self.bounds, spans, strict=True)
        shown = (
            f"{d.name}=({_show(d, lo)}, {_show(d, hi)})" if span is None else f"{d.name}={span}"
            for d, (lo, hi), span in parts
        )
        return ", ".join(shown)


@dataclass(frozen=True, slots=True)
class Region:
    """The cells in any of some boxes; `listed`: they were given as a list."""

    dims: tuple[Dim, ...]
    boxes: tuple[Box, ...]
    """Those that are not empty."""
    listed: bool
    is_cut: bool = False
    """Whether the ends of the domain cut one of the boxes that were given, or leave nothing of it."""
    only: Box | None = None
    """The box that was given, which may be empty; None of a list."""

    @property
    def empty(self) -> bool:
        """Whether no cell lies in it."""
        return not self.boxes

    @property
    def native(self) -> list[Native]:
        """The boxes as the core takes them."""
        return [box.native for box in self.boxes]

    @property
    def given(self) -> list[Native]:
        """As `native`, with None for the ends that were left open."""
        return [box.given for box in self.boxes]

    @property
    def hull(self) -> Box:
        """The least box around them; of texts, no ends."""
        if self.only is not None:
            return self.only
        if len(self.boxes) == 1:
            return self.boxes[0]
        bounds = tuple(
            (min(box.bounds[i][0] for box in self.boxes), max(box.bounds[i][1] for box in self.boxes))
            if self.boxes
            else (0, -1)
            for i in range(len(self.dims))
        )
        return Box(self.dims, bounds)

    def __str__(self) -> str:
        return f"[{'; '.join(map(str, self.boxes))}]" if self.listed or self.empty else str(self.boxes[0])


BoxLike = Mapping[str, Any] | Sequence[Any] | slice | Box | Region | None
"""A dict of pairs (inclusive) or slices (half-open) by dimension, or a tuple of them; None: the whole domain. Where
several boxes may be given: a list of those."""


def _show(dim: Dim, bound: Bound) -> str:
    if datatype.is_time(dim.dtype) and -(2**63) <= bound < 2**63:
        return str(datatype.from_text(dim.dtype, str(bound)))
    return brief(bound) if isinstance(bound, int) else datatype.show(bound, dim.dtype)


def domain_of(schema: Schema) -> Box:
    """The whole domain."""
    return box_of_parts(schema.dims, [whole(dim) for dim in schema.dims], ((True, True),) * schema.ndim)


def whole(dim: Dim) -> "tuple[Bound, Bound] | TextSpan":
    """All coordinates of a dimension."""
    return TextSpan(None, None, False) if dim.is_text else (_bound(dim.reach[0]), _bound(dim.reach[1]))


def box_of_parts(
    dims: tuple[Dim, ...],
    parts: "Sequence[tuple[Bound, Bound] | TextSpan]",
    open: tuple[tuple[bool, bool], ...] = (),
    *,
    clipped: bool = False,
) -> Box:
    """The box of these parts, one per dimension; `open`: the ends of each that were left open."""
    spans = tuple(part if isinstance(part, TextSpan) else None for part in parts)
    bounds = tuple((0, -1 if part.empty else 0) if isinstance(part, TextSpan) else part for part in parts)
    return Box(dims, bounds, spans if any(span is not None for span in spans) else (), open, clipped)


def _bound(value: Value) -> Bound:
    return float(value) if isinstance(value, float) else datatype.ticks_of(value)


def covering(schema: Schema, axes: Sequence[Axis]) -> Box:
    """The smallest box of coordinates that holds the positions."""
    bounds = []
    for dim, axis in zip(schema.dims, axes, strict=True):
        low = datatype.ticks_of(dim.reach[0])
        first, last = axis.covering if axis.count else (0, -1)
        bounds.append((low + first, low + last))
    return Box(schema.dims, tuple(bounds))


class Axes(NamedTuple):
    """The positions that `a.loc[key]` asks for."""

    axes: tuple[Axis, ...]
    is_cut: bool
    """Whether the ends of the domain cut them."""


def axes_of_coordinates(schema: Schema, key: Any, room: "Room") -> Axes:
    """The positions that `a.loc[key]` asks for in a dense array; slices may have a positive step."""
    parts = expand(key, schema.ndim)
    found = [_coordinate_axis(dim, part, room) for dim, part in zip(schema.dims, parts, strict=True)]
    return Axes(tuple(axis for axis, _ in found), any(clipped for _, clipped in found))


def _coordinate_axis(dim: Dim, part: Any, room: "Room") -> tuple[Axis, bool]:
    step = 1
    if isinstance(part, slice) and part.step is not None:
        step = operator.index(part.step)
        if step < 1:
            raise InputError(
                f"dimension {dim.name!r}: the step of a slice of coordinates is positive, not {brief(step)}"
            )
        part = slice(part.start, part.stop)
    asked = _range(dim, part, room)
    lo, hi = asked.bounds
    low = datatype.ticks_of(dim.reach[0])
    count = slice_count(int(lo), int(hi) + 1, step)
    return Axis(int(lo) - low, count, step, asked.is_single), asked.clipped


_Pairs = tuple[type[Sequence[Any]], ...]
"""What a pair may be written as."""
_PAIRS: _Pairs = (tuple, list)


class Room(Enum):
    """How far a box may reach."""

    CLIPPED = "clipped"
    """Anywhere: what lies in the domain is meant."""
    DOMAIN = "domain"
    """It lies in the domain."""
    OPEN = "open"
    """Beyond ends of the domain that are open: a write makes it reach there."""
    TYPE = "type"
    """Anywhere that the types have coordinates: a write makes the domain grow."""
    RECORDED = "recorded"
    """As `TYPE`, but a single coordinate lies in the domain, and an end left open is that of the type: a deletion holds
    for cells that others make room for."""


_SINGLES_INSIDE = (Room.CLIPPED, Room.RECORDED)
"""Where a single coordinate has to lie in the domain."""


Clip = bool | Literal["error"]


def room_of(clip: Any) -> Room:
    """What `clip=` asks for: True cuts boxes to the domain, "error" (or False) refuses those that reach beyond."""
    if clip is True:
        return Room.CLIPPED
    if clip is False or (isinstance(clip, str) and clip == "error"):
        return Room.DOMAIN
    raise InputError(f'clip= is True, which cuts the box to the domain, or "error", not {brief(clip)}')


def box_of(schema: Schema, box: BoxLike, room: Room = Room.CLIPPED) -> Box:
    """The box that a caller describes in coordinates.

    Raises:
        BoundsError: a single coordinate or period outside the domain; a box that reaches further than `room` lets it.
        InputError: an unknown dimension, or a bound that is no coordinate of its dimension.
    """
    if box is None:
        return domain_of(schema)
    if isinstance(box, Box):
        return box
    if isinstance(box, Region) or _is_list(box):
        raise InputError(
            "one box is needed here, a list of boxes was given; boxes are read, streamed and deleted in lists"
        )
    if isinstance(box, Mapping):
        names = [dim.name for dim in schema.dims]
        for name in box:
            if name not in names:
                there = ", ".join(map(repr, names))
                raise InputError(f"the box names {brief(name)}, which is no dimension; there are {there}")
        return _of_parts(schema, [box.get(dim.name, slice(None)) for dim in schema.dims], room, pairs=_PAIRS)
    return _of_parts(schema, expand(tuple(box) if isinstance(box, list) else box, schema.ndim), room, pairs=(tuple,))


def _of_parts(schema: Schema, parts: Sequence[Any], room: Room, *, pairs: _Pairs) -> Box:
    """The box of what is given for each dimension."""
    spans: list[tuple[Bound, Bound] | TextSpan] = []
    clipped = False
    for dim, part in zip(schema.dims, parts, strict=True):
        if dim.is_text:
            spans.append(_texts(dim, part, pairs=pairs))
            continue
        asked = _range(dim, part, room, pairs=pairs)
        spans.append(asked.bounds)
        clipped = clipped or asked.clipped
    return box_of_parts(schema.dims, spans, tuple([_open_ends(part) for part in parts]), clipped=clipped)


def _open_ends(part: Any) -> tuple[bool, bool]:
    """Whether the ends of one dimension's part of a box are left open."""
    low, high = (part.start, part.stop) if isinstance(part, slice) else (0, 0)
    if isinstance(part, tuple | list) and len(part) == 2:
        low, high = part
    return low is None, high is None


def _is_list(box: Any) -> bool:
    """Whether this is a list of boxes. (A list of slices is one box, as a tuple of them is.)"""
    return isinstance(box, list) and all(isinstance(part, Mapping | tuple | Box) for part in box)


def region_of(schema: Schema, box: BoxLike, room: Room = Room.CLIPPED) -> Region:
    """The region of one box, or of a list of boxes, which may be empty. Errors as in `box_of`."""
    if isinstance(box, Region):
        return box
    listed = _is_list(box)
    if not listed:
        one = box_of(schema, box, room)
        return Region(schema.dims, () if one.empty else (one,), False, one.is_cut, one)
    given = [box_of(schema, part, room) for part in cast("list[Any]", box)]
    is_cut = any(part.is_cut for part in given)
    return Region(schema.dims, tuple(part for part in given if not part.empty), listed, is_cut)


@checked()
def prefix(text: str) -> slice:
    """The texts that begin with `text`, for a box: `a.read(box={"gene": gridstone.prefix("BRCA")})`.

    Returns:
        The half-open slice from `text` to the least text that is above all of them (open if there is none).

    Example:
        >>> genes.read({"gene": gs.prefix("BRC")})["gene"].tolist()
        ['BRCA1', 'BRCA2']
    """
    for at in range(len(text) - 1, -1, -1):
        code = ord(text[at]) + 1
        if code < 0x110000:
            return slice(text, text[:at] + chr(0xE000 if code == 0xD800 else code))
    return slice(text, None)


def _texts(dim: Dim, part: Any, *, pairs: _Pairs) -> TextSpan:
    if isinstance(part, slice):
        if part.step is not None:
            raise InputError(f"dimension {dim.name!r}: a slice of texts has no step")
        return TextSpan(_text(dim, part.start), _text(dim, part.stop), part.stop is not None)
    if isinstance(part, pairs):
        if len(part) != 2:
            raise InputError(f"dimension {dim.name!r}: a box has a pair (lo, hi) or a slice, not {brief(part)}")
        found = TextSpan(_text(dim, part[0]), _text(dim, part[1]), False)
        if found.empty:
            raise InputError(f"dimension {dim.name!r}: the pair {brief(part)} is inclusive and has its lower end first")
        return found
    if part is None:
        raise InputError(f"dimension {dim.name!r} is string: None is no coordinate of it")
    text = _text(dim, part)
    return TextSpan(text, text, False)


def _text(dim: Dim, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(f"dimension {dim.name!r} is string: {brief(value)} is no coordinate of it")
    if "\0" in value:
        raise InputError(f"dimension {dim.name!r}: {brief(value)} holds a NUL character, which no coordinate does")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"dimension {dim.name!r}: {brief(value)} is no text: {error}") from error
    return str(value)


class _Asked(NamedTuple):
    """One dimension's part of a box, of numbers or times."""

    bounds: tuple[Bound, Bound]
    """Both included; (low, below it) if the part holds no coordinate."""
    clipped: bool = False
    """Whether more was asked for than the domain has."""
    is_single: bool = False
    """Whether one coordinate was given."""


def _range(dim: Dim, part: Any, room: Room, *, pairs: _Pairs = ()) -> _Asked:
    """One dimension's part of a box."""
    first, last = (_bound(bound) for bound in dim.reach)
    nothing = (first, ends.below(dim, first))
    full = datatype.ends_of(dim.dtype) if room is Room.RECORDED else (first, last)
    if isinstance(part, slice):
        lo, hi = _slice(dim, part, full)
        if lo > hi and first <= lo:
            return _Asked(nothing)
    elif isinstance(part, pairs):
        if len(part) != 2:
            raise InputError(f"dimension {dim.name!r}: a box has a pair (lo, hi) or a slice, not {brief(part)}")
        lo, hi = _pair(dim, part, full)
    else:
        several = ends.several_of(dim, part)
        if several is None:
            lo = hi = ends.coordinate(dim, part)
            least, most = datatype.ends_of(dim.dtype)
            is_possible = least <= lo <= most
            _check_reach(dim, Room.DOMAIN if room in _SINGLES_INSIDE or not is_possible else room, part, (lo, hi))
            return _Asked((lo, hi), is_single=True)
        lo, hi = several
        if lo == hi:
            _check_reach(dim, Room.DOMAIN if room in _SINGLES_INSIDE else room, part, (lo, hi))
            return _Asked((lo, hi), is_single=True)
        if room in _SINGLES_INSIDE and (hi < first or lo > last):
            room = Room.DOMAIN
    if room is not Room.CLIPPED:
        _check_reach(dim, room, part, (lo, hi))
        return _Asked(nothing if lo > hi else (lo, hi))
    clipped = lo < first or hi > last
    lo, hi = max(lo, first), min(hi, last)
    return _Asked(nothing if lo > hi else (lo, hi), clipped)


def _check_reach(dim: Dim, room: Room, part: Any, bounds: tuple[Bound, Bound]) -> None:
    """A BoundsError if a part of a box reaches further than `room` lets it."""
    (lo, hi), (first, last) = bounds, (_bound(bound) for bound in dim.reach)
    if (lo < first and not _reaches(dim, room, 0)) or (hi > last and not _reaches(dim, room, 1)):
        raise BoundsError(f"dimension {dim.name!r}: {_asked(dim, part, lo, hi)} is not inside {_told(dim, room)}")


def _slice(dim: Dim, part: slice, full: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    """The coordinates of a slice; the low one above the high one if there is none."""
    if part.step not in (None, 1):
        raise InputError(f"dimension {dim.name!r}: a slice in a box has no step; read the box, then stride over it")
    lo = full[0] if part.start is None else ends.lowest(dim, ends.end_of(dim, part.start))
    if part.stop is None:
        return lo, full[1]
    if period.is_written(dim.dtype, part.stop):
        return lo, ends.highest(dim, ends.high_end_of(dim, part.stop))
    return lo, ends.highest_below(dim, ends.end_of(dim, part.stop))


def _reaches(dim: Dim, room: Room, end: int) -> bool:
    """Whether a box may pass an end of the domain."""
    return room in (Room.TYPE, Room.RECORDED) or (room is Room.OPEN and dim.open[end])


def _told(dim: Dim, room: Room) -> str:
    """The domain as a refusal tells of it, and what to do."""
    way = "" if room is Room.DOMAIN else "; let the domain grow with the write (grow=True), or give another box"
    if dim.is_empty:
        return f"the domain, which has no coordinate yet{way or '; write or append to the array first'}"
    first, last = (_show(dim, _bound(bound)) for bound in dim.reach)
    return f"the domain ({first}, {last}){way}"


def _pair(dim: Dim, pair: Sequence[Any], full: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    """The coordinates between two ends, both included; the low one above the high one if there is none."""
    low = ends.end_of(dim, full[0] if pair[0] is None else pair[0])
    high = ends.high_end_of(dim, full[1] if pair[1] is None else pair[1])
    if low.value > high.value and pair[0] is not None and pair[1] is not None:
        raise InputError(f"dimension {dim.name!r}: the pair {brief(pair)} is inclusive and has its lower end first")
    return ends.lowest(dim, low), ends.highest(dim, high)


def _asked(dim: Dim, part: Any, lo: Bound, hi: Bound) -> str:
    """What is outside of the domain: the coordinates, or what was given if there is none."""
    if lo <= hi:
        return f"({_show(dim, lo)}, {_show(dim, hi)})"
    low, high = (part.start, part.stop) if isinstance(part, slice) else part
    return f"({brief(low)}, {brief(high)})"
