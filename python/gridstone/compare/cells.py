"""Compares the cells of two arrays, box by box, so that memory holds the cells of one box."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.progress import Callback
from ..column import datatype
from ..column.columns import Field
from ..column.datatype import AnyArray
from ..query.box import Box, TextSpan, domain_of
from ..query.ends import Bound
from ..schema.dimension import Dim
from .report import Difference, Example

if TYPE_CHECKING:
    from ..arrays.array import Array

_CELLS = (10_000, 4_000_000)
"""Cells of a box, at least and at most."""

_CELL_BYTES_VAR = 64
_SHARE = 16
"""A box's cells take at most so small a part of the budget, with all that is made of them."""

_ENDLESS = (-math.inf, math.inf)

Bounds = tuple[tuple[Bound, Bound], ...]


def compare(
    a: "Array", b: "Array", within: Box | None, found: Difference, examples: int, report: Callback | None
) -> None:
    """Counts into `found` what differs in `within` (None: everywhere)."""
    cells = max(_CELLS[0], min(_CELLS[1], a.context.memory_budget // (_SHARE * _row_bytes(a, found.attrs))))
    boxes = _Sparse(a, b, cells) if a.sparse else _Dense(a, b, cells)
    whole = boxes.around(within)
    for done, box in enumerate(() if whole is None else boxes.cut(whole), 1):
        boxes.compare(box, found, examples)
        if report is not None:
            report(done, 0)


def _row_bytes(array: "Array", attrs: tuple[str, ...]) -> int:
    kinds = [dim.dtype for dim in array.schema.dims] + [array.schema.attr(name).dtype for name in attrs]
    return sum(_CELL_BYTES_VAR if datatype.is_var(kind) else datatype.cell_bytes(kind) for kind in kinds)


def _union(boxes: list[Bounds]) -> Bounds | None:
    if not boxes:
        return None
    return tuple((min(lo for lo, _ in pairs), max(hi for _, hi in pairs)) for pairs in zip(*boxes, strict=True))


def _common(one: Bounds, other: Bounds) -> Bounds | None:
    found = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return None if any(lo > hi for lo, hi in found) else found


def _cells(box: Bounds) -> int:
    count = 1
    for lo, hi in box:
        count *= int(hi) - int(lo) + 1
    return count


def _written(array: "Array") -> list[Bounds]:
    """The box around all that is written, in ticks and floats, along texts without an end; none if nothing is."""
    found = array.native.nonempty_domain()
    if found is None:
        return []
    return [tuple(_ends(dim.dtype, lo, hi) for dim, (lo, hi) in zip(array.schema.dims, found, strict=True))]


def _ends(dtype: str, lo: str, hi: str) -> tuple[Bound, Bound]:
    if dtype == "string":
        return _ENDLESS
    if not datatype.is_float(dtype):
        return int(lo), int(hi)
    # The shortest text of a float32 is that of another float64.
    return datatype.rounded(dtype, float(lo)), datatype.rounded(dtype, float(hi))


def _half(dtype: str, bound: tuple[Bound, Bound]) -> tuple[Bound, Bound] | None:
    """The last coordinate of the lower half and the first of the upper one; None if there is but one."""
    lo, hi = bound
    if not datatype.is_float(dtype):
        middle = (int(lo) + int(hi)) // 2
        return (middle, middle + 1) if lo < hi else None
    kind: Any = np.float32 if dtype == "float32" else np.float64
    # Several ends may be one float32.
    first, last = kind(lo), kind(hi)
    if not first < last:
        return None
    low = min(max(kind(lo / 2 + hi / 2), first), np.nextafter(last, kind(-np.inf)))
    return float(low), float(np.nextafter(low, kind(np.inf)))


class _Boxes:
    """Boxes in which both arrays are compared."""

    def __init__(self, a: "Array", b: "Array", cells_max: int) -> None:
        self._a, self._b, self._cells_max = a, b, cells_max
        self._kinds = [dim.dtype for dim in a.schema.dims]

    def around(self, within: Box | None) -> Bounds | None:
        """The box that is looked at: what either has written, as far as it lies in `within`."""
        whole = _union(_written(self._a) + _written(self._b))
        return whole if whole is None or within is None else _common(whole, self._limits(within))

    def _limits(self, within: Box) -> Bounds:
        """The box that was asked for, as the boxes here have their ends."""
        open_ends = within.open or ((False, False),) * len(within.bounds)
        pairs = zip(within.bounds, open_ends, strict=True)
        return tuple((-math.inf if low else lo, math.inf if high else hi) for (lo, hi), (low, high) in pairs)

    def _box(self, bounds: Bounds) -> Box:
        """The box for reading."""
        return Box(self._a.schema.dims, bounds)

    def _read(self, array: "Array", box: Bounds, names: tuple[str, ...]) -> Any:
        wanted = list(names) or array.schema_names[:1]
        return array.read(self._box(box), wanted, order="any" if array.sparse else "row")

    def _coordinate(self, axis: int, value: Any) -> Any:
        kind = self._kinds[axis]
        return datatype.from_text(kind, str(int(value))) if datatype.is_time(kind) else value

    def _places(self, values: list[Any]) -> dict[str, Any]:
        return {dim.name: plain(value) for dim, value in zip(self._a.schema.dims, values, strict=True)}


class _Dense(_Boxes):
    """Boxes of dense arrays, cut along their longest side."""

    def cut(self, whole: Bounds) -> Iterator[Bounds]:
        """Boxes of few enough cells."""
        waiting = [whole]
        while waiting:
            box = waiting.pop()
            if _cells(box) <= self._cells_max:
                yield box
                continue
            axis = max(range(len(box)), key=lambda i: box[i][1] - box[i][0])
            middle = _half(self._kinds[axis], box[axis])
            if middle is None:
                yield box
                continue
            (lo, hi), (low, high) = box[axis], middle
            waiting.append((*box[:axis], (high, hi), *box[axis + 1 :]))
            waiting.append((*box[:axis], (lo, low), *box[axis + 1 :]))

    def compare(self, box: Bounds, found: Difference, examples: int) -> None:
        """Counts what differs; where only one has the box in its domain all its cells are only there."""
        parts = [_common(box, domain_of(array.schema).bounds) for array in (self._a, self._b)]
        both = None if parts[0] is None or parts[1] is None else _common(parts[0], parts[1])
        shared = 0 if both is None else _cells(both)
        found.only_a += (0 if parts[0] is None else _cells(parts[0])) - shared
        found.only_b += (0 if parts[1] is None else _cells(parts[1])) - shared
        self._show_outside(parts, both, found, examples)
        if both is None:
            return
        if not found.attrs:
            found.same += shared
            return
        ours, theirs = (self._read(array, both, found.attrs) for array in (self._a, self._b))
        shape = tuple(int(hi) - int(lo) + 1 for lo, hi in both)
        any_differs: AnyArray = np.zeros(shape, np.bool_)
        differing: dict[str, AnyArray] = {}
        for name in found.attrs:
            differs = unequal(ours[name], theirs[name], len(shape))
            found.values[name] += int(differs.sum())
            differing[name] = differs
            any_differs |= differs
        count = int(any_differs.sum())
        found.different += count
        found.same += any_differs.size - count
        for flat in np.flatnonzero(any_differs)[: max(0, examples - len(found.examples))]:
            at = np.unravel_index(int(flat), shape)
            names = [name for name in found.attrs if differing[name][at]]
            values = [{name: plain(side[name][at]) for name in names} for side in (ours, theirs)]
            coords = [self._coordinate(axis, int(both[axis][0]) + int(i)) for axis, i in enumerate(at)]
            found.examples.append(Example(self._places(coords), "different", *values))

    def _show_outside(self, parts: list[Bounds | None], both: Bounds | None, found: Difference, examples: int) -> None:
        for part, kind, array in zip(parts, ("only_a", "only_b"), (self._a, self._b), strict=True):
            if part is None or (both is not None and _cells(part) == _cells(both)) or len(found.examples) >= examples:
                continue
            corner = _outside(part, both)
            one: Bounds = tuple((at, at) for at in corner)
            values = {n: plain(v.reshape(-1)[0]) for n, v in self._read(array, one, found.attrs).to_numpy().items()}
            coords = self._places([self._coordinate(axis, at) for axis, at in enumerate(corner)])
            found.examples.append(Example(coords, kind, *((values, None) if kind == "only_a" else (None, values))))


def _outside(part: Bounds, both: Bounds | None) -> list[Bound]:
    """A corner of `part` that does not lie in `both`."""
    corner = [lo for lo, _ in part]
    for axis, ((lo, hi), span) in enumerate(zip(part, both or part, strict=True)):
        if both is None or lo < span[0]:
            return corner
        if hi > span[1]:
            corner[axis] = hi
            return corner
    return corner


class _Sparse(_Boxes):
    """Boxes of sparse arrays, cut until their data tiles hold few enough cells.

    Along a dimension of texts the ends of a box are numbers. A number stands for a text at which a data tile ends, and
    for the texts behind it, before the next such text.
    """

    def __init__(self, a: "Array", b: "Array", cells_max: int) -> None:
        super().__init__(a, b, cells_max)
        tables = [array.tiles() for array in (a, b)]
        self._counts = np.concatenate([table.column("cells").to_numpy() for table in tables]).astype(np.float64)
        self._texts = [_texts(tables, dim.name) if dim.is_text else [] for dim in a.schema.dims]
        self._spans: tuple[TextSpan | None, ...] = (None,) * len(self._texts)
        self._ends = [
            [np.concatenate([_numbers(table, dim, end, texts) for table in tables]) for end in ("lo", "hi")]
            for dim, texts in zip(a.schema.dims, self._texts, strict=True)
        ]

    def around(self, within: Box | None) -> Bounds | None:
        """As of all boxes; along texts from the first that a tile begins with to the last that one ends with."""
        if within is not None and within.spans:
            self._spans = within.spans
        whole = super().around(within)
        return whole and _common(whole, tuple((0, len(t) - 1) if t else _ENDLESS for t in self._texts))

    def _limits(self, within: Box) -> Bounds:
        spans = zip(super()._limits(within), within.spans or (None,) * len(within.bounds), self._texts, strict=True)
        return tuple(bound if span is None else _covered(texts, span) for bound, span, texts in spans)

    def _box(self, bounds: Bounds) -> Box:
        if not any(self._texts):
            return super()._box(bounds)
        parts = zip(bounds, self._texts, self._spans, strict=True)
        spans = tuple(_span(texts, int(b[0]), int(b[1]), within) if texts else None for b, texts, within in parts)
        pairs = zip(bounds, spans, strict=True)
        ends = tuple(bound if span is None else (0, -1 if span.empty else 0) for bound, span in pairs)
        return Box(self._a.schema.dims, ends, spans)

    def _side(self, array: "Array", box: Bounds, names: tuple[str, ...]) -> dict[str, AnyArray] | None:
        """The cells of one array; None if the box lies beyond its domain."""
        domain = zip(array.schema.dims, domain_of(array.schema).bounds, strict=True)
        inside = _common(box, tuple(_ENDLESS if dim.is_text else ends for dim, ends in domain))
        if inside is None or self._box(inside).empty:
            return None
        cells: dict[str, AnyArray] = self._read(array, inside, names).to_numpy()
        return cells

    def cut(self, whole: Bounds) -> Iterator[Bounds]:
        """Boxes of few enough cells, about; none in which there is nothing."""
        waiting = [(whole, np.arange(len(self._counts)))]
        while waiting:
            box, tiles = waiting.pop()
            tiles = tiles[self._meets(box, tiles)]
            if len(tiles) == 0:
                continue
            shares = self._shares(box, tiles)
            axis = self._widest(box, tiles)
            middle = None if axis is None else _half(self._kinds[axis], box[axis])
            if float((self._counts[tiles] * shares).sum()) <= self._cells_max or middle is None or axis is None:
                yield box
                continue
            (lo, hi), (low, high) = box[axis], middle
            waiting.append(((*box[:axis], (high, hi), *box[axis + 1 :]), tiles))
            waiting.append(((*box[:axis], (lo, low), *box[axis + 1 :]), tiles))

    def _meets(self, box: Bounds, tiles: AnyArray) -> AnyArray:
        meets: AnyArray = np.ones(len(tiles), np.bool_)
        for (lo, hi), (low, high) in zip(box, self._ends, strict=True):
            meets &= (low[tiles] <= float(hi)) & (high[tiles] >= float(lo))
        return meets

    def _shares(self, box: Bounds, tiles: AnyArray) -> AnyArray:
        """How much of each tile lies in the box, if its cells lie evenly. (Half of a width never overflows.)"""
        shares: AnyArray = np.ones(len(tiles))
        for (lo, hi), (low, high) in zip(box, self._ends, strict=True):
            span = high[tiles] / 2 - low[tiles] / 2
            inside = np.minimum(high[tiles], float(hi)) / 2 - np.maximum(low[tiles], float(lo)) / 2
            shares *= np.where(span > 0, np.clip(inside, 0, span) / np.where(span > 0, span, 1), 1)
        return shares

    def _widest(self, box: Bounds, tiles: AnyArray) -> int | None:
        """The dimension in which the box is widest, counted in tiles; None if it is a single place."""
        widths = []
        for (lo, hi), (low, high) in zip(box, self._ends, strict=True):
            if lo < hi:
                mean = float(((high[tiles] / 2 - low[tiles] / 2) / len(tiles)).sum())
                widths.append((float(hi) / 2 - float(lo) / 2) / mean if mean > 0 else np.inf)
            else:
                widths.append(-1.0)
        best = max(range(len(widths)), key=lambda i: widths[i])
        return best if widths[best] >= 0 else None

    def compare(self, box: Bounds, found: Difference, examples: int) -> None:
        """Counts what differs, cells at one place as a multiset."""
        read = [self._side(array, box, found.attrs) for array in (self._a, self._b)]
        known = read[0] or read[1]
        if known is None:
            return
        sides = [side or {name: values[:0] for name, values in known.items()} for side in read]
        counts = [len(side[self._a.dims[0]]) for side in sides]
        if sum(counts) == 0:
            return
        is_a = np.arange(sum(counts)) < counts[0]
        places = np.stack([codes([side[name] for side in sides]) for name in self._a.dims])
        values = {name: codes([side[name] for side in sides]) for name in found.attrs}
        rows = np.lexsort([~is_a, *reversed(list(values.values())), *places[::-1]])
        at_place = np.cumsum(_changes(places[:, rows]))
        of_row = np.cumsum(_changes(np.vstack([places[:, rows], *(value[rows] for value in values.values())])))
        left = _unpaired(of_row, is_a[rows])
        found.same += int((~left & is_a[rows]).sum())
        self._count_left(rows[left], at_place[left], is_a, (sides, values), found, examples)

    def _count_left(
        self, rows: AnyArray, place: AnyArray, is_a: AnyArray, held: tuple[Any, Any], found: Difference, examples: int
    ) -> None:
        """Cells without an equal at a place: as many as both have differ, the rest is only in one."""
        sides, values = held
        ours = is_a[rows]
        nth: AnyArray = np.empty(len(rows), np.int64)
        for side in (True, False):
            chosen = ours == side
            nth[chosen] = _numbered(place[chosen])
        order = np.lexsort([~ours, nth, place])
        rows, place, nth, ours = rows[order], place[order], nth[order], ours[order]
        pairs: AnyArray = np.zeros(len(rows), np.bool_)
        pairs[:-1] = (place[1:] == place[:-1]) & (nth[1:] == nth[:-1]) & ours[:-1] & ~ours[1:]
        second = np.roll(pairs, 1)
        found.different += int(pairs.sum())
        found.only_a += int((ours & ~pairs).sum())
        found.only_b += int((~ours & ~second).sum())
        for name, value in values.items():
            found.values[name] += int((value[rows[pairs]] != value[rows[second]]).sum())
        for i in np.flatnonzero(~second)[: max(0, examples - len(found.examples))]:
            row, other = int(rows[i]), int(rows[i + 1]) if pairs[i] else None
            names = [n for n, v in values.items() if other is None or v[row] != v[other]]
            shown = [None if r is None else self._values(sides, r, names) for r in (row, other)]
            kind = "different" if other is not None else "only_a" if ours[i] else "only_b"
            a, b = shown if kind != "only_b" else (None, shown[0])
            found.examples.append(Example(self._values(sides, row, list(self._a.dims)), kind, a, b))

    def _values(self, sides: list[dict[str, AnyArray]], row: int, names: list[str]) -> dict[str, Any]:
        count = len(sides[0][self._a.dims[0]])
        side, at = (sides[0], row) if row < count else (sides[1], row - count)
        return {name: plain(side[name][at]) for name in names}


def _changes(rows: AnyArray) -> AnyArray:
    """Where a column of `rows` differs from the one before it."""
    changes: AnyArray = np.zeros(rows.shape[1], np.bool_)
    changes[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    return changes


def _unpaired(groups: AnyArray, is_a: AnyArray) -> AnyArray:
    """Cells that are left if in each group, whose cells of a come first, each of a takes one of b away."""
    count = int(groups[-1]) + 1
    ours, theirs = (np.bincount(groups[side], minlength=count) for side in (is_a, ~is_a))
    paired = np.minimum(ours, theirs)
    nth: AnyArray = np.empty(len(groups), np.int64)
    for side in (is_a, ~is_a):
        nth[side] = _numbered(groups[side])
    return nth >= paired[groups]


def _numbered(groups: AnyArray) -> AnyArray:
    """The place of each among those of its group, which follow each other."""
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]]) if len(groups) else np.zeros(0, np.int64)
    sizes = np.diff(np.r_[starts, len(groups)])
    return np.arange(len(groups)) - np.repeat(starts, sizes)


def codes(parts: list[AnyArray]) -> AnyArray:
    """A number for each value of the parts, one after the other; the same for values that count as equal."""
    masks = [np.ma.getmaskarray(part).any(axis=tuple(range(1, part.ndim))) for part in parts]
    plain_parts = [np.ma.getdata(part) for part in parts]
    if plain_parts[0].dtype.kind == "O":
        known: dict[Any, int] = {}
        keys = (_key(value) for part in plain_parts for value in part)
        found: AnyArray = np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int64)
    else:
        words = np.concatenate([_words(part) for part in plain_parts])
        if words.shape[1] == 1:
            found = np.unique(words[:, 0], return_inverse=True)[1].reshape(-1)
        else:
            found = np.unique(words, axis=0, return_inverse=True)[1].reshape(-1)
    return np.where(np.concatenate(masks), -1, found)


def _words(values: AnyArray) -> AnyArray:
    """Values as rows of unsigned numbers that are the same where the values count as equal."""
    values = np.ascontiguousarray(values).reshape(len(values), math.prod(values.shape[1:]))
    if values.dtype.kind in "fc":
        # -0.0 becomes 0.0, and every NaN the same.
        values = values + values.dtype.type(0)
        parts = values.view(values.real.dtype).copy()
        parts[np.isnan(parts)] = np.nan
        values = parts
    width = values.dtype.itemsize
    unit = next(size for size in (8, 4, 2, 1) if width % size == 0)
    return values.view(f"u{unit}")


def _key(value: Any) -> Any:
    if isinstance(value, np.ndarray | list | tuple):
        numbers = np.asarray(value)
        return (len(numbers), _words(numbers.reshape(1, -1)).tobytes() if numbers.size else b"")
    return value


def unequal(a: AnyArray, b: AnyArray, ndim: int) -> AnyArray:
    """Where two arrays of cells differ; `ndim` axes count cells, further ones the numbers of a vector."""
    ours, theirs = np.ma.getdata(a), np.ma.getdata(b)
    if ours.dtype.kind == "O":
        flat = [_key(x) != _key(y) for x, y in zip(ours.ravel(), theirs.ravel(), strict=True)]
        differs: AnyArray = np.array(flat, np.bool_).reshape(ours.shape)
    else:
        differs = ours != theirs
        if ours.dtype.kind in "fc":
            differs &= ~(np.isnan(ours) & np.isnan(theirs)) if ours.dtype.kind == "f" else ~_both_nan(ours, theirs)
        elif ours.dtype.kind in "mM":
            differs &= ~(np.isnat(ours) & np.isnat(theirs))
    masks = [np.ma.getmaskarray(side) for side in (a, b)]
    differs = (differs & ~masks[0] & ~masks[1]) | (masks[0] != masks[1])
    return np.asarray(differs.any(axis=tuple(range(ndim, differs.ndim))))


def _both_nan(a: AnyArray, b: AnyArray) -> AnyArray:
    """Where complex numbers are the same, part by part, with NaN equal to NaN."""
    same: AnyArray = np.ones(a.shape, np.bool_)
    for part in ("real", "imag"):
        x, y = getattr(a, part), getattr(b, part)
        same &= (x == y) | (np.isnan(x) & np.isnan(y))
    return same


def _texts(tables: list[Any], name: str) -> list[str]:
    """The texts at which tiles end, in order; all cells lie at the first or above it."""
    return sorted({text for t in tables for end in ("lo", "hi") for text in t.column(f"{name}_{end}").to_pylist()})


def _covered(texts: list[str], span: TextSpan) -> tuple[int, int]:
    """From the number in which a span of texts begins to that in which it ends."""
    low = 0 if span.lo is None else max(0, bisect_right(texts, span.lo) - 1)
    if span.hi is None:
        return low, len(texts) - 1
    return low, (bisect_left if span.below else bisect_right)(texts, span.hi) - 1


def _span(texts: list[str], first: int, last: int, within: TextSpan | None) -> TextSpan:
    """The texts that these numbers stand for, as far as they were asked for."""
    low, asked = texts[first], within or TextSpan(None, None, False)
    low = low if asked.lo is None else max(low, asked.lo)
    if last + 1 == len(texts) or (asked.hi is not None and asked.hi < texts[last + 1]):
        return TextSpan(low, asked.hi, asked.below)
    return TextSpan(low, texts[last + 1], True)


def _numbers(table: Any, dim: Dim, end: str, texts: list[str]) -> AnyArray:
    """One end of the MBR of every tile in a dimension: ticks, floats, or the numbers of texts."""
    if dim.is_text:
        return np.array([bisect_left(texts, text) for text in table.column(f"{dim.name}_{end}").to_pylist()], float)
    from ..column import arrow

    values = arrow.column_of(Field(dim.name, dim.dtype, False, "dimension"), table.column(f"{dim.name}_{end}")).values
    return np.asarray(values.view(np.int64) if values.dtype.kind in "mM" else values, np.float64)


def plain(value: Any) -> Any:
    """A value of Python; None for null."""
    if value is None or value is np.ma.masked or (isinstance(value, np.ma.MaskedArray) and value.mask.all()):
        return None
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value
    return value.item() if isinstance(value, np.generic) else value
