"""The next day's file, which does not fit: the domain and the attributes grow in the commit that brings the rows."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .. import io, plot
from ..arrays.array import Array
from ..base.progress import Progress
from ..errors import InputError
from .outcome import Outcome, Tell, check

DIMS = ("LON", "LAT")
_TIME = "BaseDateTime"

Domain = tuple[tuple[float, float], ...]


class Day(NamedTuple):
    """An array after the file of a day was loaded."""

    version: int
    domain: Domain
    cells: int


def files_of(data: Path | Sequence[Path]) -> list[Path]:
    """The files in the order that they are loaded in: as given, those of a folder by the times of their first rows."""
    found: list[Path] = []
    for place in [data] if isinstance(data, Path) else data:
        if not place.is_dir():
            found.append(place)
            continue
        inside = sorted(file for file in place.iterdir() if ".csv" in file.suffixes)
        if not inside:
            raise InputError(f"there is no CSV file in {str(place)!r}; name a file, or a folder that holds some")
        begins = [_begin(file) for file in inside]
        found += [file for _, file in sorted(zip(begins, inside, strict=True))]
    if not found:
        raise InputError("data= is empty; name a CSV file or a folder of them, or leave it out for made-up positions")
    return found


def _begin(file: Path) -> str:
    """When the first row was logged, as text; "" if the file does not tell."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    with pa_csv.open_csv(file, convert_options=pa_csv.ConvertOptions(column_types={_TIME: pa.string()})) as rows:
        if _TIME not in rows.schema.names:
            return ""
        times = [batch.column(_TIME) for batch in itertools.islice(rows, 1)]
    return "" if not sum(map(len, times)) else str(times[0][0]).replace(" ", "T")


def load(
    array: Array, files: Sequence[Path], outcome: Outcome, progress: Progress, tell: Tell
) -> tuple[Array, list[Day]]:
    """Loads the files into an array that is there, one commit each, and compares every day with what it should be."""
    days = [_day(array)]
    for number, file in enumerate(files, start=2):
        before = days[-1]
        names, stored = {attr.name for attr in array.schema.attrs}, _bytes(array)
        with outcome.step(f"load the file of day {number} into it", tell) as counters:
            array = io.from_csv(array.uri, file, evolve=True, progress=progress, message=f"day {number}")
            counters["cells"] = rows = _rows(file)
            counters["bytes"] = _bytes(array) - stored
        days.append(_day(array))
        after, uri = days[-1], array.uri
        check(after.version == before.version + 1, uri, "a load is one commit")
        check(after.cells == before.cells + rows, uri, f"{rows:,} rows came to {before.cells:,} cells")
        check(_day(array.at(version=before.version)) == before, uri, "the version before has changed")
        new = [attr.name for attr in array.schema.attrs if attr.name not in names]
        for name in new:
            nulls = sum(batch.column(name).null_count for batch in array.scan(attrs=[name]))
            check(nulls >= before.cells, uri, f"attribute {name!r} is new, and not null in the rows before")
        outcome.found.append(_grown(number, before, after, new))
    return array, days


def _grown(number: int, before: Day, after: Day, new: Sequence[str]) -> str:
    """One day in a sentence."""
    moves = [
        f"{name} from {_ends(old)} to {_ends(now)}"
        for name, old, now in zip(DIMS, before.domain, after.domain, strict=True)
        if old != now
    ]
    grown = f"the domain grew: {' and '.join(moves)}" if moves else "all of it lies in the domain"
    if new:
        grown += f"; new {'attribute' if len(new) == 1 else 'attributes'} {', '.join(new)}, null in the rows before"
    return (
        f"Day {number}: {after.cells - before.cells:,} rows in one commit; {grown}. "
        f"The version before still has its domain, and {before.cells:,} cells."
    )


def _ends(ends: tuple[float, float]) -> str:
    return f"[{ends[0]:.5g}, {ends[1]:.5g}]"


def _day(array: Array) -> Day:
    """What the version holds; its cells are read and counted."""
    cells = sum(batch.num_rows for batch in array.scan(attrs=[]))
    domain = tuple((float(low), float(high)) for low, high in array.domain)
    return Day(array.version, domain, cells)


def _bytes(array: Array) -> int:
    return sum(array.fragments.column("bytes").to_pylist())


def _rows(file: Path) -> int:
    """The rows of a CSV file, counted without our own reader."""
    import pyarrow.csv as pa_csv

    options = pa_csv.ConvertOptions(include_columns=["LON"])
    with pa_csv.open_csv(file, convert_options=options) as batches:
        return sum(batch.num_rows for batch in batches)


def draw(array: Array, days: Sequence[Day], target: Path) -> Path:
    """The cells of all days, and the domain that each day left."""
    outlines = [(f"day {number}", day.domain) for number, day in enumerate(days, start=1)]
    title = f"One array, {len(days)} days: each file is a commit, and the domain grows with it"
    return plot.outlined(array, target, DIMS, outlines, title)
