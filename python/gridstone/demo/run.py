"""The demonstration from beginning to end, with its times, counters and pictures."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import io, plot
from ..arrays.array import Array
from ..base.progress import Progress
from ..errors import ExistsError, InputError
from ..query.box import domain_of
from ..stores import store
from . import appends, attached, chart, days, ships, upkeep, weather
from .outcome import Outcome, Tell, check

SIDE = 2_000
UPDATES = 100_000
_GRID = 48
SQUARE = 0.5
"""Degrees of a side."""


def run(
    out: str | Path,
    *,
    data: str | Path | Sequence[str | Path] | None = None,
    cells: int = 1_000_000,
    seed: int = 7,
    progress: Progress = None,
    tell: Tell = lambda _: None,
) -> Outcome:
    """Loads ship positions, updates a chart, appends from several processes, and draws all of it.

    The positions are of several days, each of which reaches further; a busy and a quiet box of them are read. The chart
    is updated at random cells, and read by box, step and point. A file is attached, asked and written over. A Dataset
    of xarray is written, appended to and opened. Positions are counted in squares. Every number is compared with what
    it should be before it is shown.

    Args:
        out: a folder, made if it does not exist; the demonstration's own stores in it are replaced.
        data: CSV files with columns LON, LAT and others (MarineCadastre's, say), or a folder of them, one per day;
            None: two days are made up.
        cells: how many positions to make up for the first day.
        seed: of everything made up.
        progress: of the loads.
        tell: called with the name of each step when it begins.
    """
    if cells < 1_000:
        raise InputError(f"the demonstration needs at least 1,000 positions, not {cells}")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    outcome = Outcome()
    if data is None:
        files = _made_up(folder, cells, seed, outcome, tell)
    else:
        files = days.files_of(Path(data) if isinstance(data, str | Path) else [Path(file) for file in data])
    array = _positions(folder, files[0], outcome, progress, tell)
    if len(files) > 1:
        array, seen = days.load(array, files[1:], outcome, progress, tell)
        with outcome.step("draw days.png", tell):
            outcome.pictures.append(str(days.draw(array, seen, folder / "days.png")))
    upkeep.run(array, fresh(upkeep.place(folder)), outcome, tell)
    _chart(folder, seed, outcome, tell)
    attached.run(fresh(folder / "heights.gs"), folder, seed, outcome, tell)
    weather.run(fresh(folder / "weather.gs"), seed, outcome, tell)
    appends.run(fresh(folder / "swell.gs"), fresh(folder / "film.gs"), folder, outcome, tell)
    return outcome


def _made_up(folder: Path, cells: int, seed: int, outcome: Outcome, tell: Tell) -> list[Path]:
    """Two days of positions. The second one's are from the sea to the east, and tell the draught."""
    files = [folder / "ais.csv", folder / "ais-2.csv"]
    with outcome.step("make up positions (CSV)", tell) as counters:
        ships.write_csv(files[0], cells, seed)
        ships.write_csv(files[1], cells // 4, seed + 1, day=1)
        counters["bytes"] = sum(file.stat().st_size for file in files)
    return files


def _positions(folder: Path, data: Path, outcome: Outcome, progress: Progress, tell: Tell) -> Array:
    uri = fresh(folder / "ais.gs")
    with outcome.step("load the CSV, sorted, in one commit", tell) as counters:
        array = io.from_csv(uri, data, dims=["LON", "LAT"], progress=progress, message="ship positions")
        counters["cells"] = sum(array.fragments.column("cells").to_pylist())
        counters["bytes"] = sum(array.fragments.column("bytes").to_pylist())
    outcome.stores.append(uri)
    busy, quiet = boxes(array)
    for name, box in (("read a harbour", busy), ("read open sea", quiet)):
        with outcome.step(name, tell) as counters:
            found = array.read(box, order="any")
            counters.update(cells=len(found), **found.stats)
    _count(array, outcome, tell)
    for name, mbrs, title in (
        ("positions.png", False, "Ship positions, cells per pixel"),
        ("tiles.png", True, "The bounding rectangles of the data tiles over them"),
    ):
        with outcome.step(f"draw {name}", tell):
            target = plot.plot(array, folder / name, dims=("LON", "LAT"), mbrs=mbrs, title=title)
        outcome.pictures.append(str(target))
    return array


def _count(array: Array, outcome: Outcome, tell: Tell) -> None:
    """Counts the positions in squares, and compares the busiest one with a read of it."""
    by = {"LON": SQUARE, "LAT": SQUARE}
    with outcome.step("count positions in squares of half a degree", tell) as counters:
        squares = array.aggregate({"n": "count(*)"}, by=by, order="n desc")
        counters.update(cells=len(squares), **squares.stats)
    with outcome.step("count all positions", tell) as counters:
        whole = array.aggregate({"n": "count(*)"})
        counters.update(cells=1, **whole.stats)
    total, (lon, lat) = int(whole["n"][0]), (float(squares["LON"][0]), float(squares["LAT"][0]))
    square = array.read(where=f"LON >= {lon} and LON < {lon + SQUARE} and LAT >= {lat} and LAT < {lat + SQUARE}")
    check(int(squares["n"].sum()) == total, array.uri, "the positions of all squares together")
    check(int(squares["n"][0]) == len(square), array.uri, "the positions in the busiest square")
    outcome.found.append(
        f"{len(squares):,} squares of half a degree have positions; the busiest begins at {lon:g}, {lat:g} and has "
        f"{len(square):,} of {total:,}. The index alone counted {whole.stats['tiles_from_index']} tiles."
    )


def boxes(array: Array) -> tuple[dict[str, tuple[float, float]], dict[str, tuple[float, float]]]:
    """The busiest small box of the positions, and the quietest that is not empty and nine times as large."""
    names = ("LON", "LAT")
    domain = {name: (float(low), float(high)) for name, (low, high) in zip(array.dims, array.domain, strict=True)}
    counts = plot.density(array, names, domain_of(array.schema), (_GRID * 3, _GRID * 3))
    coarse = counts.reshape(_GRID, 3, _GRID, 3).sum(axis=(1, 3))
    busy = np.unravel_index(int(counts.argmax()), counts.shape)
    filled = np.where(coarse > 0, coarse, np.iinfo(np.int64).max)
    quiet = np.unravel_index(int(filled.argmin()), coarse.shape)
    return _cell(domain, names, busy, _GRID * 3), _cell(domain, names, quiet, _GRID)


def _cell(
    domain: dict[str, tuple[float, float]], names: tuple[str, str], place: tuple[Any, ...], parts: int
) -> dict[str, tuple[float, float]]:
    made = {}
    for name, number in zip(names, place, strict=True):
        low, high = domain[name]
        step = (high - low) / parts
        made[name] = (low + int(number) * step, min(high, low + (int(number) + 1) * step))
    return made


def _chart(folder: Path, seed: int, outcome: Outcome, tell: Tell) -> None:
    ground = chart.heights(SIDE, seed)
    rows, columns = chart.lights(ground, UPDATES, seed)
    uri = fresh(folder / "chart.gs")
    with outcome.step(f"write a chart of {SIDE:,} x {SIDE:,} cells", tell) as counters:
        array = store.array(uri, ground, name="height")
        counters.update(cells=ground.size, **array.stats)
    outcome.stores.append(uri)
    drawn = array.version
    with outcome.step(f"update {UPDATES:,} cells at random", tell) as counters:
        array.write_cells((rows, columns), np.full(UPDATES, chart.LIT), message="the lights go on")
        counters.update(cells=UPDATES, **array.stats)
    with outcome.step("read the newest version", tell) as counters:
        after = array[...]
        counters.update(cells=after.size, **array.stats)
    with outcome.step("read the version before", tell) as counters:
        past = array.at(version=drawn)
        before = past[...]
        counters.update(cells=before.size, **past.stats)
    with outcome.step("read every 7th row and 3rd column", tell) as counters:
        thinned = array[::7, ::3]
        counters.update(cells=thinned.size, **array.stats)
    with outcome.step("read the updated cells, point by point", tell) as counters:
        lit = array.vindex[rows, columns]
        counters.update(cells=lit.size, **array.stats)
    check(np.array_equal(before, ground), uri, f"version {drawn} has changed")
    check(int((after == chart.LIT).sum()) == UPDATES, uri, f"{UPDATES:,} cells were updated")
    check(np.array_equal(thinned, after[::7, ::3]), uri, "every 7th row and 3rd column")
    check(bool((lit == chart.LIT).all()), uri, "the updated cells, point by point")
    outcome.found.append(
        f"The chart has {UPDATES:,} lit cells in version {array.version}, and none in version {drawn}."
    )
    with outcome.step("draw chart.png", tell):
        titles = (
            f"version {drawn}: as first written",
            f"version {array.version}: {UPDATES:,} cells lit, the rest drawn by night",
        )
        pictures = chart.picture(before), chart.picture(after)
        target = plot.before_and_after(*pictures, folder / "chart.png", titles, "One array, two versions")
    outcome.pictures.append(str(target))


def fresh(place: Path) -> str:
    """The place for a store of the demonstration; its last one there is removed."""
    uri = str(place)
    if store.exists(uri):
        store.delete(uri)
    if place.exists():
        if not place.is_dir() or any(place.iterdir()):
            raise ExistsError(f"{uri!r} is there and is no store; choose another folder")
        shutil.rmtree(place)
    return uri
