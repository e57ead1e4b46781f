"""An index of the labels along a dimension: in ascending order, with the position of each.

Labels are compared as what they are: integers and floats, times in ticks of their type, texts. Labels at equal steps,
and coordinates, are searched without a list of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..column import datatype
from ..column.datatype import AnyArray
from ..schema.dimension import Dim
from ..schema.labels import Steps, missing

Key = int | float | str


@dataclass(frozen=True, slots=True)
class Index:
    """The labels of a dimension."""

    dim: Dim
    dtype: str
    count: int
    """Labels that are not missing."""
    direction: int
    """1: they ascend along the dimension, -1: they descend, 0: neither."""
    ranked: Callable[[int], Key]
    """The label of a rank in ascending order."""
    positions: Callable[[int, int], AnyArray]
    """The positions of the ranks from the first to before the second."""

    @property
    def is_text(self) -> bool:
        """Whether labels are texts."""
        return self.dtype == "string"

    @property
    def is_coordinates(self) -> bool:
        """Whether there are no labels, but coordinates."""
        return self.dim._stored_labels is None

    @property
    def title(self) -> str:
        """What is searched, for messages."""
        return f"the {'coordinates' if self.is_coordinates else 'labels'} of dimension {self.dim.name!r}"

    def below(self, key: Key) -> int:
        """How many labels are less than `key`."""
        return self._search(lambda label: label < key)  # type: ignore[operator]

    def up_to(self, key: Key) -> int:
        """How many labels are not greater than `key`."""
        return self._search(lambda label: label <= key)  # type: ignore[operator]

    def _search(self, is_before: Callable[[Key], bool]) -> int:
        return _count_before(self.count, lambda rank: is_before(self.ranked(rank)))

    def show(self, key: Key) -> str:
        """A label for people."""
        if self.is_text:
            return repr(key)
        return datatype.show(datatype.from_text(self.dtype, repr(key)), self.dtype)

    def sample(self, count: int) -> Sequence[Key]:
        """The first labels in ascending order."""
        return [self.ranked(rank) for rank in range(min(count, self.count))]


def of_steps(dim: Dim, steps: Steps, offset: int) -> Index:
    """An index of labels at steps, of a dimension whose first position lies `offset` behind the origin."""
    floats = datatype.is_float(steps.dtype)

    def label(position: int) -> Key:
        if floats:
            return datatype.rounded(steps.dtype, steps.start + float(offset + position) * steps.step)
        return steps.start + (offset + position) * steps.step

    first, last = _held(label, dim.size, steps)
    count = last - first + 1
    if steps.step > 0:
        return Index(
            dim,
            steps.dtype,
            count,
            1,
            lambda rank: label(first + rank),
            lambda low, high: np.arange(first + low, first + high),
        )
    return Index(
        dim, steps.dtype, count, -1, lambda rank: label(last - rank), lambda low, high: last - np.arange(low, high)
    )


def _held(label: Callable[[int], Key], size: int, steps: Steps) -> tuple[int, int]:
    """The first and the last of so many positions whose label the type holds; the others have none."""
    low, high = datatype.ends_of(steps.dtype)

    def is_held(position: int) -> bool:
        return low <= label(position) <= high  # type: ignore[operator]

    def before(is_in: Callable[[Key], bool]) -> int:
        return _count_before(size, lambda position: is_in(label(position)))

    if size == 0 or (is_held(0) and is_held(size - 1)):
        return 0, size - 1
    if steps.step > 0:
        return before(lambda key: key < low), before(lambda key: key <= high) - 1  # type: ignore[operator]
    return before(lambda key: key > high), before(lambda key: key >= low) - 1  # type: ignore[operator]


def _count_before(count: int, is_before: Callable[[int], bool]) -> int:
    """How many of the first numbers are before, where all of these come first."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if is_before(middle):
            low = middle + 1
        else:
            high = middle
    return low


def of_coordinates(dim: Dim) -> Index:
    """An index of the coordinates of a dimension without labels."""
    return of_steps(dim, Steps(dim.dtype, datatype.ticks_of(dim.reach[0]), 1), 0)


def of_list(dim: Dim, values: AnyArray) -> Index:
    """An index of labels in a list."""
    places = np.flatnonzero(~missing(values))
    held = np.ma.getdata(values)[places]
    dtype = "string" if held.dtype.kind == "O" else datatype.parse(held.dtype)
    keys = held.view(np.int64) if held.dtype.kind in "mM" else held
    before, after = keys[:-1], keys[1:]
    direction = 1
    if not np.all(before <= after):
        direction = -1 if np.all(before >= after) else 0
    if direction < 0:
        places, keys = places[::-1], keys[::-1]
    elif direction == 0:
        order = np.argsort(keys, kind="stable")
        places, keys = places[order], keys[order]

    def ranked(rank: int) -> Any:
        found = keys[rank]
        return found if isinstance(found, str) else found.item()

    return Index(dim, dtype, len(keys), direction, ranked, lambda low, high: places[low:high])
