"""Which positions of a sparse array a key in brackets chose, in the order asked for, repeated ones too.

The cells of a result are those that exist, each once and in row order. A selection says where each of them lies in an
array or matrix whose sides are the chosen positions: nowhere else, or at several places where positions repeat.
"""

from dataclasses import dataclass

import numpy as np

from ..column.datatype import AnyArray


@dataclass(frozen=True, slots=True)
class Along:
    """Positions along one dimension, counted from the lowest of them: in steps (`listed` is None), or a list."""

    count: int
    step: int = 1
    listed: AnyArray | None = None
    """uint64, in the order asked for."""

    @property
    def repeats(self) -> bool:
        """Whether some are chosen more than once."""
        return self.listed is not None and np.unique(self.listed).size < self.listed.size

    @property
    def positions(self) -> AnyArray:
        """All of them (uint64), in the order asked for."""
        if self.listed is not None:
            return self.listed
        upward = np.arange(self.count, dtype=np.uint64) * np.uint64(abs(self.step))
        return upward if self.step > 0 else upward[::-1]

    def stepped(self, found: AnyArray) -> AnyArray:
        """The places of positions in a selection by steps."""
        if self.step == 1:
            return found
        apart: AnyArray = (found.view(np.uint64) // np.uint64(abs(self.step))).view(np.int64)
        return apart if self.step > 0 else self.count - 1 - apart


Selection = tuple[Along | None, ...]
"""By dimension; None: all of a dimension of texts or floats, which has no positions."""


def shape_of(chosen: Selection | None, box: tuple[int, ...]) -> tuple[int, ...]:
    """Positions per dimension: those chosen, or those of the box."""
    if chosen is None:
        return box
    return tuple([n if along is None else along.count for along, n in zip(chosen, box, strict=True)])


def placed(chosen: Selection | None, places: tuple[AnyArray, ...]) -> tuple[tuple[AnyArray, ...], AnyArray | slice]:
    """Where cells at these positions (int64, from the lowest chosen) lie, and which cell lies at each place."""
    if chosen is None:
        return places, slice(None)
    made, cells = list(places), None
    for axis, along in enumerate(chosen):
        if along is None:
            continue
        if along.listed is None:
            made[axis] = along.stepped(made[axis])
            continue
        which, at = _looked_up(along.listed, made[axis])
        if which is not None:
            made = [place[which] for place in made]
            cells = which if cells is None else cells[which]
        made[axis] = at
    return tuple(made), slice(None) if cells is None else cells


def _looked_up(listed: AnyArray, found: AnyArray) -> tuple[AnyArray | None, AnyArray]:
    """The places of positions in a list. Where it repeats some, which of `found` lies at each place comes first."""
    order = np.argsort(listed, kind="stable")
    ranked, found = listed[order], found.view(np.uint64)
    first = np.searchsorted(ranked, found, "left")
    if not ranked.size or (ranked[1:] != ranked[:-1]).all():
        return None, order[first]
    counts = np.searchsorted(ranked, found, "right") - first
    which = np.repeat(np.arange(found.size), counts)
    return which, order[runs(first, counts)]


def runs(firsts: AnyArray, counts: AnyArray) -> AnyArray:
    """The numbers of several runs, one behind the other: `counts[i]` of them from `firsts[i]` on."""
    ends = np.cumsum(counts)
    made: AnyArray = np.arange(ends[-1] if ends.size else 0) + np.repeat(firsts - (ends - counts), counts)
    return made


def segments(rows: Along, held: AnyArray, low: int) -> tuple[AnyArray, AnyArray] | None:
    """Where the cells of each chosen row begin, and how many there are, in the cells' coordinates along the first
    dimension, which ascend. None where these are no signed integers, whose order is that of the rows."""
    if held.dtype.kind not in "imM":
        return None
    ascending = held.view(np.int64) if held.dtype.kind in "mM" else held
    # Coordinates of a narrow type are searched in it, so that they are not copied.
    wanted = (rows.positions + np.uint64(low & (2**64 - 1))).view(np.int64).astype(ascending.dtype, copy=False)
    firsts = np.searchsorted(ascending, wanted, "left")
    return firsts, np.searchsorted(ascending, wanted, "right") - firsts
