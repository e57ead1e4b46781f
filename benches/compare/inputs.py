"""What is stored and asked for: made from a fixed seed, written once as .npy files, never inside a clock.

Dense: the values of the paper, `i * columns + j`, and a smooth field with noise, because the former flatter any delta
coding. Cells: positions like those of ships, 90 % of them around 50 harbours of very different size, in 12 batches.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from files import Files
from weather import Weather

Array = npt.NDArray[Any]
Columns = dict[str, Array]
Box = tuple[slice, slice]
Shape = tuple[int, int]
Spans = tuple[tuple[int, int], tuple[int, int]]
"""A box by its lowest and highest coordinates, inclusive."""

REPEATS_INSIDE = 5
"""Operations timed one by one in a process that reads or commits; its figure is their median."""

WARMUP_READS = 20
"""Reads that a fresh process is watched for."""

MANY = 128
"""Commits of which a row tells the mean: among so many in a row are two that fold Gridstone's log, and each system's
other rare work; a median of few hides it.
"""

CELLS_DOMAIN = (360_000_000, 180_000_000)
CELLS_TILE = 10_000
"""As the paper: longitude and latitude in millionths of a degree, space tiles of a hundredth."""
TABLE_MAX, TABLE_TILE = 1_000_000, 10_000
BATCHES = 12
COMMIT = 1_000
"""Cells of a small commit."""

TRACKS_DOMAIN, TRACKS_TILE = (3_600_000, 1_800_000), 100
"""Positions of ships in ten-thousandths of a degree."""
DAY = 86_400

_SEED = 20261121
_HARBOURS = 50
_ATTRS = ("sog", "cog", "heading", "rot", "status", "voyage", "mmsi")


@dataclass(frozen=True)
class Layout:
    """The domain, 0 to these ends, the tile and the type of two dimensions."""

    domain: Shape
    tile: int
    dtype: str

    @staticmethod
    def rows() -> "Layout":
        """The layout of the table."""
        return Layout((TABLE_MAX, TABLE_MAX), TABLE_TILE, "int32")

    @staticmethod
    def tracks() -> "Layout":
        """The layout of the positions."""
        return Layout(TRACKS_DOMAIN, TRACKS_TILE, "int64")


@dataclass(frozen=True)
class Size:
    """How large everything is; `scale` 1 is 400 MB dense, 5 M cells and a CSV file of 10 M rows."""

    scale: float

    @property
    def side(self) -> int:
        """Cells along a side of the dense array, a multiple of 40; 10,000 at scale 1."""
        return max(5, round(250 * math.sqrt(self.scale))) * 40

    @property
    def tile(self) -> Shape:
        """4 x 10 tiles: 2,500 x 1,000 at scale 1."""
        return self.side // 4, self.side // 10

    @property
    def box(self) -> int:
        """Cells along a side of the box that is read: 1,000 at scale 1."""
        return self.side // 10

    def some(self, count: int) -> int:
        """As many of `count` single cells as the scale leaves."""
        return max(50, round(count * self.scale))

    def times(self, count: int) -> int:
        """As many of `count` small commits as the scale leaves."""
        return max(count // 50, round(count * min(1.0, self.scale)), 1)

    @property
    def cells(self) -> int:
        """Cells of the sparse array."""
        return max(24_000, round(5_000_000 * self.scale))

    @property
    def cube(self) -> tuple[int, int, int]:
        """Days and places of the cube: 365 x 1,000 x 1,000 at scale 1."""
        side = max(2, round(100 * math.sqrt(self.scale))) * 10
        return 365, side, side

    @property
    def cube_tile(self) -> tuple[int, int, int]:
        """The tile of the cube: 73 x 200 x 200 at scale 1."""
        _, side, _ = self.cube
        return 73, side // 5, side // 5

    @property
    def rows(self) -> int:
        """Rows of the CSV file."""
        return max(20_000, round(10_000_000 * self.scale))


class Inputs:
    """The input files in a folder."""

    def __init__(self, folder: Path, size: Size) -> None:
        self.folder, self.size = folder, size

    def make(self, kinds: Iterable[str]) -> None:
        """Writes the files of the kinds needed: "field", "cells", "csv", "rows", "tracks", "cube"; those of HDF5:
        "stack", "series", "particles"; those of xarray: "weather", "month".
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for kind in sorted(set(kinds)):
            if kind in ("stack", "series", "particles"):
                self.files.make(kind)
                continue
            if kind in ("weather", "month"):
                self.weather.make(kind)
                continue
            getattr(self, f"_make_{kind}")(np.random.default_rng(_SEED))

    @property
    def files(self) -> Files:
        """The files of HDF5."""
        return Files(self.folder, self.size.scale)

    @property
    def weather(self) -> Weather:
        """The dataset of the rows of xarray."""
        return Weather(self.folder, self.size.scale)

    # Dense.

    def dense(self, values: str = "paper") -> Array:
        """The dense array: of the paper's values, "field", or "fifth" (80 MB of the paper's values)."""
        side = self.size.side
        if values == "field":
            found: Array = np.load(self.folder / "field.npy")
            return found
        shape = (side // 4, side * 8 // 10) if values == "fifth" else (side, side)
        return np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)

    def _make_field(self, rng: np.random.Generator) -> None:
        side = self.size.side
        along = np.linspace(0, 12 * np.pi, side, dtype=np.float32)
        field = 20_000 * np.sin(along)[:, None] * np.cos(0.7 * along)[None, :]
        field += 3_000 * np.sin(5 * along)[None, :]
        field += rng.standard_normal((side, side), dtype=np.float32) * 12
        np.save(self.folder / "field.npy", field.astype(np.int32))

    def places(self, count: int, seed: int = 0) -> tuple[Array, Array, Array]:
        """Rows, columns and new values of `count` different cells."""
        rng = np.random.default_rng(_SEED + 100 + seed)
        cells = rng.choice(self.size.side**2, count, replace=False, shuffle=False)
        rows, cols = np.divmod(rng.permutation(cells), self.size.side)
        return rows, cols, rng.integers(-(2**20), 2**20, count, dtype=np.int32)

    def boxes(self, kind: str, count: int = REPEATS_INSIDE) -> list[Box]:
        """One more selection than is timed: the first one warms up. `kind`: box, tile, row, column or all."""
        rng = np.random.default_rng(_SEED + 1)
        side, box, tile = self.size.side, self.size.box, self.size.tile
        shape = {"box": (box, box), "tile": tile, "row": (1, side), "column": (side, 1), "all": (side, side)}[kind]
        step = tile if kind == "tile" else (1, 1)
        starts = [[int(rng.integers(0, (side - n) // s + 1)) * s for n, s in zip(shape, step, strict=True)]
                  for _ in range(count + 1)]  # fmt: skip
        return [(slice(r, r + shape[0]), slice(c, c + shape[1])) for r, c in starts]

    def alike(self) -> list[Box]:
        """Boxes of 1,000 x 1,000 (times the scale) that meet two tiles each, in the same places of them, and none
        another: reads of them differ by what was read before, and by nothing else.
        """
        box, (height, width) = self.size.box, self.size.tile
        rows, cols = self.size.side // height, self.size.side // width - 1
        picked = np.random.default_rng(_SEED + 3).permutation(rows * cols)[:WARMUP_READS]
        starts = [(int(i) // cols * height + (height - box) // 2, int(i) % cols * width + width // 2) for i in picked]
        return [(slice(r, r + box), slice(c, c + box)) for r, c in starts]

    # Cells.

    def _make_cells(self, rng: np.random.Generator) -> None:
        centres = rng.integers(2_000_000, [n - 2_000_000 for n in CELLS_DOMAIN], (_HARBOURS, 2))
        cells = _cells(rng, self.size.cells, centres)
        for i, part in enumerate(np.array_split(np.arange(self.size.cells), BATCHES)):
            _save(self.folder / f"batch{i}.npz", {name: column[part] for name, column in cells.items()})
        for i in range(max(self.size.times(1_000) + REPEATS_INSIDE, MANY) + 1):
            _save(self.folder / f"commit{i}.npz", _cells(rng, COMMIT, centres))
        boxes = {}
        for area, counts in (("dense", (1_000, 10_000, 100_000, 1_000_000)), ("thin", (1_000, 10_000))):
            for full in counts:
                count = max(10, round(full * self.size.scale))
                boxes[f"{area}{full}"] = np.array(list(_boxes(rng, cells, centres, area, count)))
        _save(self.folder / "boxes.npz", boxes)

    def batches(self) -> list[Columns]:
        """The cells of the sparse array, in no order: x, y and seven attributes."""
        return [_columns(self.folder / f"batch{i}.npz") for i in range(BATCHES)]

    def commits(self, count: int, first: int = 0) -> list[Columns]:
        """Batches of 1,000 cells to add."""
        return [_columns(self.folder / f"commit{i}.npz") for i in range(first, first + count)]

    def cell_boxes(self, kind: str) -> list[Spans]:
        """Boxes, the first of which warms up: "dense1000" holds about 1,000 cells (times the scale) in harbours,
        "thin1000" at sea; "cell": one cell of the first small commit.
        """
        if kind == "cell":
            cells = self.commits(1)[0]
            picked = np.random.default_rng(_SEED + 2).integers(0, COMMIT, REPEATS_INSIDE + 1)
            return [((int(cells["x"][i]),) * 2, (int(cells["y"][i]),) * 2) for i in picked]
        return [((x0, x1), (y0, y1)) for x0, x1, y0, y1 in _columns(self.folder / "boxes.npz")[kind].tolist()]

    # A table.

    @property
    def csv(self) -> Path:
        """The CSV file: x, y, a and b."""
        return self.folder / "table.csv"

    def table(self) -> Columns:
        """What the CSV file says."""
        return _columns(self.folder / "table.npz")

    def _make_csv(self, rng: np.random.Generator) -> None:
        import pyarrow as pa
        import pyarrow.csv

        count = self.size.rows
        table = {
            "x": rng.integers(0, TABLE_MAX + 1, count, dtype=np.int32),
            "y": rng.integers(0, TABLE_MAX + 1, count, dtype=np.int32),
            "a": rng.integers(0, 100_000, count, dtype=np.int32),
            "b": np.round(rng.normal(0.5, 0.2, count), 4),
        }
        _save(self.folder / "table.npz", table)
        pyarrow.csv.write_csv(pa.table(table), self.csv)

    # What questions are asked of.

    def _make_rows(self, rng: np.random.Generator) -> None:
        count = self.size.rows
        rows = {
            "x": rng.integers(0, TABLE_MAX + 1, count, dtype=np.int32),
            "y": rng.integers(0, TABLE_MAX + 1, count, dtype=np.int32),
            "a": rng.integers(0, max(1_000, count // 10), count, dtype=np.int32),
            "b": np.round(rng.normal(0.5, 0.2, count), 4),
        }
        _save(self.folder / "rows.npz", rows)

    def rows(self) -> Columns:
        """The table: x, y, a of one value per ten rows, b around its median of 0.5."""
        return _columns(self.folder / "rows.npz")

    def _make_tracks(self, rng: np.random.Generator) -> None:
        centres = rng.integers(2_000_000, [n - 2_000_000 for n in CELLS_DOMAIN], (_HARBOURS, 2))
        cells = _cells(rng, self.size.cells, centres)
        places = {name: cells.pop(name) // 100 for name in "xy"}
        _save(self.folder / "tracks.npz", {**places, "t": rng.integers(0, DAY, self.size.cells), **cells})

    def tracks(self) -> Columns:
        """The positions of ships over a day, in no order: x, y, t in seconds and seven attributes."""
        return _columns(self.folder / "tracks.npz")

    def _make_cube(self, rng: np.random.Generator) -> None:
        days, side, _ = self.size.cube
        along = np.linspace(0, 6 * np.pi, side, dtype=np.float32)
        field = 15 * np.sin(along)[:, None] * np.cos(0.7 * along)[None, :] + 280
        cube = np.empty((days, side, side), np.float32)
        for day in range(days):
            noise = rng.standard_normal((side, side), dtype=np.float32)
            cube[day] = np.round(field + np.float32(10 * math.sin(day / 58)) + noise, 2)
        np.save(self.folder / "cube.npy", cube)

    def cube(self) -> Array:
        """Temperatures of days and places, float32, as hundredths."""
        found: Array = np.load(self.folder / "cube.npy", mmap_mode="r")
        return found


def joined(parts: list[Columns]) -> Columns:
    """Several batches as one."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _save(path: Path, columns: Columns) -> None:
    np.savez(path, **columns)  # type: ignore[arg-type]


def _columns(path: Path) -> Columns:
    with np.load(path) as found:
        return {name: found[name] for name in found.files}


def _cells(rng: np.random.Generator, count: int, centres: Array) -> Columns:
    weights = 1 / np.arange(1, _HARBOURS + 1)
    near = rng.random(count) < 0.9
    harbour = rng.choice(_HARBOURS, count, p=weights / weights.sum())
    home = centres[harbour] + rng.normal(0, 50_000, (count, 2))
    anywhere = rng.random((count, 2)) * CELLS_DOMAIN
    where = np.clip(np.where(near[:, None], home, anywhere).astype(np.int64), 0, np.array(CELLS_DOMAIN))
    ship = rng.integers(0, 20_000, count)
    moving = ~near | (rng.random(count) < 0.3)
    course = np.where(moving, rng.integers(0, 3_600, count), 3_600)
    values = (
        np.where(moving, rng.normal(120, 30, count).clip(0, 400), rng.exponential(2, count)).astype(np.int64),
        course,
        np.where(rng.random(count) < 0.2, 511, course // 10),
        np.where(moving, rng.normal(0, 5, count), 0).astype(np.int64),
        np.where(moving, 0, rng.choice([1, 5], count)),
        ship * 12 + harbour % 12,
        200_000_000 + ship * 7_919 % 100_000_000,
    )
    x, y = np.ascontiguousarray(where[:, 0]), np.ascontiguousarray(where[:, 1])
    return {"x": x, "y": y, **{n: np.asarray(v, np.int64) for n, v in zip(_ATTRS, values, strict=True)}}


def _boxes(rng: np.random.Generator, cells: Columns, centres: Array, area: str, count: int) -> Iterable[list[int]]:
    """Squares just large enough for `count` cells: around the larger harbours, or far from any."""
    for i in range(REPEATS_INSIDE + 1):
        if area == "thin":
            centre = _at_sea(rng, centres)
        elif count > len(cells["x"]) // 50:
            centre = centres[0] + rng.integers(-2_000, 2_001, 2)  # only the largest harbour holds so many
        else:
            centre = centres[i]
        yield _box_around(cells, centre, count)


def _at_sea(rng: np.random.Generator, centres: Array) -> Array:
    """The place farthest from all harbours among 200 at random."""
    places = rng.integers(0, CELLS_DOMAIN, (200, 2))
    away = np.abs(places[:, None, :] - centres[None, :, :]).max(axis=2).min(axis=1)
    found: Array = places[int(away.argmax())]
    return found


def _box_around(cells: Columns, centre: Array, count: int) -> list[int]:
    away = np.maximum(np.abs(cells["x"] - centre[0]), np.abs(cells["y"] - centre[1]))
    half = int(np.partition(away, count - 1)[count - 1])
    spans = ((max(0, int(c) - half), min(n, int(c) + half)) for c, n in zip(centre, CELLS_DOMAIN, strict=True))
    return [bound for span in spans for bound in span]
