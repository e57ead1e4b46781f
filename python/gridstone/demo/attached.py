"""A file of another format as an array: attached, asked and updated, looked at again when it has grown, and drawn."""

import hashlib
from pathlib import Path

import numpy as np

from ..arrays.array import Array
from ..plot import plot
from ..stores.attach import attach
from . import chart
from .outcome import Outcome, Tell, check

_SIDE = 1_000


def run(uri: str, folder: Path, seed: int, outcome: Outcome, tell: Tell) -> None:
    """Attaches a file of NumPy that lies beside the store, and writes over a part of its cells."""
    file = folder / "heights.npy"
    heights = chart.heights(_SIDE, seed).astype("float32")
    np.save(file, heights)
    before = hashlib.sha256(file.read_bytes()).hexdigest()
    with outcome.step(f"attach {file.name}, without a copy", tell) as counters:
        array = attach(uri, file, {"height": "array"})
        counters.update(cells=heights.size)
    assert isinstance(array, Array)
    outcome.stores.append(uri)
    with outcome.step("its mean, asked where it lies", tell) as counters:
        mean = float(np.mean(array))
        counters.update(cells=heights.size)
    array[:100, :100] = 0
    heights[:100, :100] = 0
    check(np.isclose(mean, np.load(file).mean(dtype="float64")), uri, "the mean of the attached cells")
    check(np.array_equal(array[...], heights), uri, "cells written over the file's")
    check(hashlib.sha256(file.read_bytes()).hexdigest() == before, uri, "the attached file has changed")
    outcome.found.append(f"{file.name} is an array; 10,000 cells are written over it, and the file is as it was.")
    longer = np.concatenate([np.load(file), chart.heights(_SIDE, seed + 1)[: _SIDE // 4].astype("float32")])
    np.save(file, longer)
    with outcome.step(f"look again at {file.name}, which has grown", tell) as counters:
        array.refresh_sources()
        counters.update(cells=longer.size)
    longer[:100, :100] = 0
    check(np.array_equal(array[...], longer), uri, "cells of the file that has grown, under those written over it")
    outcome.found.append(f"{file.name} grew by {_SIDE // 4} rows: they are there, and what was written over it stays.")
    with outcome.step("draw heights.png", tell):
        target = folder / "heights.png"
        plot(array, target, placement=True, title="Where the cells of an attached file lie")
    outcome.pictures.append(str(target))
