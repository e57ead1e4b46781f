"""What is stored and asked for: made from a fixed seed, written once as .npy files, never inside a clock.

Dense: a smooth field with noise, int32; a ramp such as `i * ncol + j` would flatter any delta coding. Sparse: positions
like those of ships, 90 % of them around 50 harbours, several at one place now and then.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Columns = dict[str, Array]
Span = tuple[int, int]
"""Inclusive at both ends."""

REPEATS_INSIDE = 5
"""Operations timed one by one in a process that reads or commits; its figure is their median."""

DOMAIN = (3_600_000, 1_800_000)
GRID = 1_000
"""The domain of the points in 1/10,000 degree, and the extent of a space tile on both sides."""

_SEED = 20261121
_HARBOURS = 50


@dataclass(frozen=True)
class Size:
    """How large everything is; `scale` 1 is 100 MB dense and 1 M points."""

    scale: float

    @property
    def side(self) -> int:
        """Cells along a side of the dense array, a multiple of 20."""
        return max(5, round(250 * math.sqrt(self.scale))) * 20

    @property
    def tile(self) -> tuple[int, int]:
        """4 x 5 tiles."""
        return self.side // 4, self.side // 5

    @property
    def box(self) -> int:
        """Cells along a side of the box that is read."""
        return self.side // 5

    @property
    def updates(self) -> int:
        """Cells that an update changes."""
        return max(100, round(10_000 * self.scale))

    @property
    def points(self) -> int:
        """Cells of the sparse array."""
        return max(10_000, round(1_000_000 * self.scale))

    def targets(self) -> dict[str, int]:
        """Cells that a box of points holds, about."""
        return {"small": self.points // 1000, "medium": self.points // 100, "large": self.points // 10}

    commit: int = 1_000


class Inputs:
    """The input files in a folder."""

    def __init__(self, folder: Path, size: Size) -> None:
        self.folder, self.size = folder, size

    def make(self) -> None:
        """Writes all files."""
        self.folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(_SEED)
        np.save(self.folder / "dense.npy", _field(rng, self.size.side))
        cells = rng.choice(self.size.side**2, self.size.updates, replace=False)
        rows, cols = np.divmod(cells, self.size.side)
        values = rng.integers(-(2**20), 2**20, self.size.updates, dtype=np.int32)
        np.savez(self.folder / "updates.npz", rows=rows, cols=cols, values=values)
        centres = rng.integers(100_000, [n - 100_000 for n in DOMAIN], (_HARBOURS, 2))
        points = _points(rng, self.size.points, centres)
        np.savez(self.folder / "points.npz", **points)  # type: ignore[arg-type]
        for i in range(REPEATS_INSIDE + 1):
            np.savez(self.folder / f"commit{i}.npz", **_points(rng, self.size.commit, centres))  # type: ignore[arg-type]
        boxes = {name: _boxes_around(points, centres, count) for name, count in self.size.targets().items()}
        np.savez(self.folder / "boxes.npz", **boxes)  # type: ignore[arg-type]

    def dense(self) -> Array:
        """The dense array."""
        values: Array = np.load(self.folder / "dense.npy")
        return values

    def updates(self) -> tuple[Array, Array, Array]:
        """Rows, columns and values of the cells to change, all at different places."""
        found = _columns(self.folder / "updates.npz")
        return found["rows"], found["cols"], found["values"]

    def dense_boxes(self, kind: str) -> list[tuple[slice, slice]]:
        """One more selection than is timed: the first one warms up. `kind`: "box", "row" or "column"."""
        rng = np.random.default_rng(_SEED + 1)
        side, box = self.size.side, self.size.box
        shape = {"box": (box, box), "row": (1, side), "column": (side, 1)}[kind]
        starts = [[int(rng.integers(0, side - n + 1)) for n in shape] for _ in range(REPEATS_INSIDE + 1)]
        return [(slice(r, r + shape[0]), slice(c, c + shape[1])) for r, c in starts]

    def points(self) -> Columns:
        """The cells of the sparse array, in no order: x, y and three attributes."""
        return _columns(self.folder / "points.npz")

    def commits(self) -> list[Columns]:
        """Batches of cells to add; the first one warms up."""
        return [_columns(self.folder / f"commit{i}.npz") for i in range(REPEATS_INSIDE + 1)]

    def point_boxes(self, kind: str) -> list[tuple[Span, Span]]:
        """Boxes around harbours, of a size in `Size.targets`, or "cell": of one existing cell. The first warms up."""
        if kind == "cell":
            points = self.points()
            rows = np.random.default_rng(_SEED + 2).integers(0, self.size.points, REPEATS_INSIDE + 1)
            return [((int(points["x"][i]),) * 2, (int(points["y"][i]),) * 2) for i in rows]
        found = _columns(self.folder / "boxes.npz")[kind].tolist()
        return [((x0, x1), (y0, y1)) for x0, x1, y0, y1 in found]


def _columns(path: Path) -> Columns:
    with np.load(path) as found:
        return {name: found[name] for name in found.files}


def _field(rng: np.random.Generator, side: int) -> Array:
    along = np.linspace(0, 12 * np.pi, side, dtype=np.float32)
    field = 20_000 * np.sin(along)[:, None] * np.cos(0.7 * along)[None, :]
    field += 3_000 * np.sin(5 * along)[None, :]
    field += rng.standard_normal((side, side), dtype=np.float32) * 12
    values: Array = field.astype(np.int32)
    return values


def _points(rng: np.random.Generator, count: int, centres: Array) -> Columns:
    near = rng.random(count) < 0.9
    home = centres[rng.integers(0, len(centres), count)] + rng.normal(0, 500, (count, 2))
    anywhere = rng.random((count, 2)) * DOMAIN
    where = np.clip(np.where(near[:, None], home, anywhere).astype(np.int64), 0, np.array(DOMAIN) - 1)
    speed = np.where(near, rng.exponential(0.5, count), rng.normal(12, 3, count)).clip(0, 40)
    return {
        "x": np.ascontiguousarray(where[:, 0]),
        "y": np.ascontiguousarray(where[:, 1]),
        "time": 1_700_000_000 + rng.integers(0, 86_400, count),
        "mmsi": (200_000_000 + rng.integers(0, 20_000, count)).astype(np.int32),
        "sog": np.round(speed, 1).astype(np.float32),
    }


def _boxes_around(points: Columns, centres: Array, count: int) -> Array:
    """Squares around harbours, each just large enough for `count` cells."""
    return np.array([_box_around(points, centre, count) for centre in centres[: REPEATS_INSIDE + 1]])


def _box_around(points: Columns, centre: Sequence[int], count: int) -> list[int]:
    away = np.maximum(np.abs(points["x"] - centre[0]), np.abs(points["y"] - centre[1]))
    half = int(np.partition(away, count - 1)[count - 1])
    spans = ((max(0, int(c) - half), min(n - 1, int(c) + half)) for c, n in zip(centre, DOMAIN, strict=True))
    return [bound for span in spans for bound in span]
