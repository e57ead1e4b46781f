"""The job of who trains a model: shuffled batches of rows of a matrix, read by forked workers while it is corrected.

A loader opens the matrix once and forks its workers, as the DataLoader of PyTorch does: each gets batches of row
numbers from the parent, reads `a[rows]` and sends back what it found.
"""

import multiprocessing
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs

ROWS, COLUMNS, BATCH, WORKERS, EPOCHS = 600, 40, 32, 3, 3
QUICK = gs.Context("64MiB", 2, durability="close")


def matrix(uri: Path, kind: str) -> tuple[gs.Array, np.ndarray]:
    """A matrix of cells by genes, and the same in memory."""
    random = np.random.default_rng(3)
    values = random.integers(1, 1_000, (ROWS, COLUMNS)).astype("float32")
    values[random.random((ROWS, COLUMNS)) < 0.8] = 0
    if kind == "dense":
        return gs.array(uri, values, dims=["cell", "gene"], tile=(50, COLUMNS), context=QUICK), values
    dims = [gs.Dim("cell", (0, ROWS - 1), 50), gs.Dim("gene", (0, COLUMNS - 1))]
    a = gs.create(uri, gs.Schema(dims, [gs.Attr("value", "float32")], sparse=True, capacity=500), context=QUICK)
    a.write_cells(np.nonzero(values), values[np.nonzero(values)])
    return a, values


def serve(a: gs.Array, batches: Any, found: Any) -> None:
    """A worker: reads batches of rows until there are no more."""
    try:
        while (rows := batches.get()) is not None:
            part = a[rows]
            found.put((rows, part.to_dense() if a.sparse else part))
    except BaseException:
        found.put((None, traceback.format_exc()))
        raise


@contextmanager
def workers(a: gs.Array) -> Iterator[tuple[Any, Any]]:
    """Forked workers, and the queues to them and from them."""
    fork = multiprocessing.get_context("fork")
    batches, found = fork.Queue(), fork.Queue()
    started = [fork.Process(target=serve, args=(a, batches, found)) for _ in range(WORKERS)]
    for worker in started:
        worker.start()
    try:
        yield batches, found
        for _ in started:
            batches.put(None)
        for worker in started:
            worker.join(60)
        assert [worker.exitcode for worker in started] == [0] * WORKERS
    finally:
        for worker in started:
            worker.kill()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_every_row_comes_once_an_epoch_and_is_that_of_one_version(tmp_path: Path, kind: str) -> None:
    uri = tmp_path / "matrix.gs"
    made, values = matrix(uri, kind)
    a = gs.open(uri, context=QUICK)
    assert isinstance(a, gs.Array) and len(a[[3, 5]]) > 0  # Its threads and cache are there before the fork.
    stop, random = threading.Event(), np.random.default_rng(7)
    corrections = 0

    def correct() -> None:
        nonlocal corrections
        while not stop.is_set():
            made.update({"value": "value + 1"}, where="value > 0", box={"cell": (0, 99)})
            if kind == "sparse":
                made.write_cells({"cell": [150], "gene": [corrections % COLUMNS]}, [5000 + corrections])
            else:
                made[150, corrections % COLUMNS] = 5000 + corrections
            corrections += 1

    with workers(a) as (batches, found):
        writer = threading.Thread(target=correct)
        writer.start()
        try:
            for _ in range(EPOCHS):
                order = random.permutation(ROWS)
                asked = [order[start : start + BATCH] for start in range(0, ROWS, BATCH)]
                for rows in asked:
                    batches.put(rows)
                seen: list[int] = []
                for _ in asked:
                    rows, part = found.get(timeout=60)
                    assert rows is not None, part
                    np.testing.assert_array_equal(part, values[rows])
                    seen += rows.tolist()
                assert sorted(seen) == list(range(ROWS))
        finally:
            stop.set()
            writer.join()
    assert corrections > 0
    # The corrections are there for whoever opens the matrix now, each of them once.
    want = values.copy()
    want[:100][want[:100] > 0] += corrections
    for number in range(corrections):
        want[150, number % COLUMNS] = 5000 + number
    now = gs.open(uri, context=QUICK)
    assert isinstance(now, gs.Array)
    np.testing.assert_array_equal(now.read().to_dense(), want)
    with workers(now) as (batches, found):
        batches.put(np.array([150, 0, 599, 150]))
        rows, part = found.get(timeout=60)
        np.testing.assert_array_equal(part, want[[150, 0, 599, 150]])
