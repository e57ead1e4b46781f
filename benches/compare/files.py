"""The HDF5 files that are attached: made once by h5py, and told again by NumPy for the checks.

The stack: float32 steps of a square, gzip-4 + shuffle, a chunk is a quarter of a step; 2 GiB at scale 1. The series:
1,000 files of 100 chunks. The particles: eight datasets of float32 in one file, contiguous, as those of VPIC.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Columns = dict[str, Array]
Box = tuple[slice, ...]

CHUNKS = 200
"""Whole chunks of the box of which the first answer is the mean."""
FIELD = "field"
"""The dataset of the stack and of the files of the series."""
COLUMNS = ("x", "y", "z", "ux", "uy", "uz", "energy", "weight")
SLAB = 1 << 20
"""Particles that are made, and read by h5py, at once."""
ABOVE, WIDTH = 2.0, 0.25
"""The question to the particles: those with more energy than this, by bins of so much of it."""
RUN_SHAPE, RUN_CHUNK = (100, 16, 16), (1, 16, 16)
"""The shape and the chunks of each file of the series."""

_SEED = 20261127


@dataclass(frozen=True)
class Files:
    """The files in a folder; `scale` 1 is the size of the targets."""

    folder: Path
    scale: float

    def make(self, kind: str) -> None:
        """Writes the files of a kind: "stack", "series" or "particles"; and the small one."""
        self._make_small()
        {"stack": self._make_stack, "series": self._make_series, "particles": self._make_particles}[kind]()

    # The stack.

    @property
    def stack(self) -> Path:
        """The file with the dataset `field`."""
        return self.folder / "stack.h5"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Steps, and cells along both sides: 536 x 1,000 x 1,000 at scale 1."""
        side = 1_000 if self.scale >= 0.01 else 40
        return max(24, round(536 * self.scale)), side, side

    @property
    def chunk(self) -> tuple[int, int, int]:
        """1 x 500 x 500 at scale 1."""
        _, rows, cols = self.shape
        return 1, rows // 2, cols // 2

    def step(self, number: int) -> Array:
        """The values of a step: a smooth field with noise, in sixty-fourths."""
        rng = np.random.default_rng([_SEED, number])
        _, rows, cols = self.shape
        along, across = (np.linspace(0, 6, n, dtype=np.float32) for n in (rows, cols))
        field = 280 + 20 * np.sin(along + 0.02 * number)[:, None] * np.cos(across)[None, :]
        field += rng.standard_normal((rows, cols), dtype=np.float32) * np.float32(0.4)
        return np.round(field * 64) / np.float32(64)

    def read(self, box: Box) -> Array:
        """What a box of the stack holds."""
        steps = range(*box[0].indices(self.shape[0]))
        return np.stack([self.step(number)[box[1:]] for number in steps])

    def mean(self, box: Box) -> float:
        """The mean of a box of the stack."""
        steps = range(*box[0].indices(self.shape[0]))
        return float(np.mean([self.step(number)[box[1:]].mean(dtype=np.float64) for number in steps]))

    @property
    def everything(self) -> Box:
        """The box of the whole stack."""
        return tuple(slice(0, n) for n in self.shape)

    @property
    def first(self) -> Box:
        """The box of 200 whole chunks (fewer of a small stack)."""
        return (slice(0, min(CHUNKS // 4, self.shape[0])), *self.everything[1:])

    def boxes(self, kind: str, count: int) -> list[Box]:
        """Boxes of 20 steps at random places: "whole" chunks of all; "part" of each chunk, in the middle; "random"
        places, a fifth of each side; "steps": 25 whole steps.
        """
        rng = np.random.default_rng([_SEED, 1])
        steps, rows, cols = self.shape
        most = {"steps": 25}.get(kind, 20)
        found = []
        for _ in range(count):
            start = int(rng.integers(0, steps - min(most, steps) + 1))
            sides = (_side(kind, n, rng) for n in (rows, cols))
            found.append((slice(start, start + min(most, steps)), *sides))
        return found

    @property
    def small(self) -> Path:
        """A file as the stack's with a few cells, to warm up with."""
        return self.folder / "small.h5"

    def _make_small(self) -> None:
        import h5py

        with h5py.File(self.small, "w") as file:
            for name in (FIELD, *COLUMNS):
                shape, chunks = ((4, 4, 4), (1, 2, 2)) if name == FIELD else ((64,), None)
                file.create_dataset(name, shape, "f4", chunks=chunks, compression="gzip" if chunks else None)

    def _make_stack(self) -> None:
        import h5py

        with h5py.File(self.stack, "w") as file:
            made = file.create_dataset(
                FIELD, self.shape, "f4", chunks=self.chunk, compression="gzip", compression_opts=4, shuffle=True
            )
            for number in range(self.shape[0]):
                made[number] = self.step(number)

    # The series.

    @property
    def runs(self) -> list[Path]:
        """The files of the series."""
        return [self.folder / "series" / f"run_{n:04}.h5" for n in range(max(20, round(1_000 * self.scale)))]

    def run(self, number: int) -> Array:
        """The values of a file of the series."""
        size = int(np.prod(RUN_SHAPE))
        return np.arange(number * size, (number + 1) * size, dtype=np.int32).reshape(RUN_SHAPE)

    def _make_series(self) -> None:
        import h5py

        self.runs[0].parent.mkdir()
        for number, path in enumerate(self.runs):
            with h5py.File(path, "w") as file:
                file.create_dataset(
                    FIELD, data=self.run(number), chunks=RUN_CHUNK, compression="gzip", compression_opts=4, shuffle=True
                )

    # The particles.

    @property
    def particles(self) -> Path:
        """The file of the particles."""
        return self.folder / "particles.h5"

    @property
    def count(self) -> int:
        """Particles: 64 million at scale 1."""
        return max(100_000, round(64_000_000 * self.scale))

    def slabs(self) -> Iterator[tuple[slice, Columns]]:
        """The particles, part by part."""
        for start in range(0, self.count, SLAB):
            where = slice(start, min(start + SLAB, self.count))
            rng, size = np.random.default_rng([_SEED, 2, start]), where.stop - start
            columns = {name: rng.random(size, np.float32) for name in ("x", "y", "z", "weight")}
            columns |= {name: rng.standard_normal(size, np.float32) for name in ("ux", "uy", "uz")}
            yield where, {**columns, "energy": rng.standard_exponential(size, np.float32)}

    def _make_particles(self) -> None:
        import h5py

        with h5py.File(self.particles, "w") as file:
            for name in COLUMNS:
                file.create_dataset(name, (self.count,), "f4")
            for where, columns in self.slabs():
                for name in COLUMNS:
                    file[name][where] = columns[name]


def _side(kind: str, cells: int, rng: np.random.Generator) -> slice:
    if kind in ("whole", "steps"):
        return slice(0, cells)
    if kind == "part":
        return slice(cells // 4, cells - cells // 4)
    start = int(rng.integers(0, cells - cells // 5 + 1))
    return slice(start, start + cells // 5)


class Spectrum:
    """Particles above an energy, by bins of energy: their number, and the mean of `ux`; added up part by part."""

    def __init__(self) -> None:
        self.counts, self.sums = np.zeros(1, np.int64), np.zeros(1)

    def add(self, energy: Array, ux: Array) -> None:
        """Adds particles."""
        kept = energy > ABOVE
        bins = (energy[kept] / WIDTH).astype(np.int64)
        size = max(int(bins.max(initial=0)) + 1, len(self.counts))
        self.counts = _longer(self.counts, size) + np.bincount(bins, minlength=size)
        self.sums = _longer(self.sums, size) + np.bincount(bins, ux[kept], minlength=size)

    def columns(self) -> Columns:
        """The bins that have particles: their low edges, numbers and means."""
        found = np.flatnonzero(self.counts)
        return {"energy": found * WIDTH, "n": self.counts[found], "mean": self.sums[found] / self.counts[found]}


def _longer(values: Array, size: int) -> Array:
    return np.pad(values, (0, size - len(values)))
