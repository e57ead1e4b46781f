"""Promise: workers in other processes read and write, and one that dies in the middle costs no cell and adds none."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import gridstone as gs

A = np.arange(120 * 40.0).reshape(120, 40)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two workers, each a process of its own, which are started again when they die."""
    settings = {"distributed.worker.memory.pause": False, "distributed.scheduler.worker-saturation": "inf"}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=True) as made,
    ):
        yield made


def blocks_that(act: Any, chunks: tuple[int, int] = (10, 40)) -> Any:
    """The array, whose blocks do something before they are there."""
    x = da.from_array(A, chunks=chunks)
    return x.map_blocks(act, dtype=float, meta=np.empty((0, 0)))


def kill_once(folder: str, at: float) -> Any:
    """Kills the worker the first time that the block with this value is computed."""

    def block(values: Any) -> Any:
        if (values == at).any():
            mark = Path(folder) / f"killed-{at}"
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        return values

    return block


def test_workers_write_and_one_process_commits(client: Client, tmp_path: Path) -> None:
    uri = tmp_path / "a.gs"
    version = gs.dask.store(da.from_array(A, chunks=(17, 13)), uri, "/deep/a", message="by workers")
    a = gs.open(uri, path="/deep/a")
    assert a.version == version and (a[...] == A).all() and a.history()[-1].message == "by workers"


def test_workers_read_the_version_that_the_graph_was_made_of(client: Client, tmp_path: Path) -> None:
    a = gs.array(tmp_path / "a.gs", A, tile=16)
    x, y = gs.dask.array(a, chunks=a.chunks), da.from_array(gs.open(a.uri), chunks=a.chunks)
    a[...] = 0.0
    assert x.sum().compute() == y.sum().compute() == A.sum() and gs.dask.array(a).sum().compute() == 0


def test_handles_of_a_worker_write_in_dasks_own_store(client: Client, tmp_path: Path) -> None:
    a = gs.array(tmp_path / "a.gs", A * 0, tile=16)
    da.store(da.from_array(A, chunks=40), a, lock=False)
    a.refresh()
    assert (a[...] == A).all()


def test_a_delayed_store_commits_on_a_worker(client: Client, tmp_path: Path) -> None:
    todo = gs.dask.store(da.from_array(A, chunks=25), tmp_path / "a.gs", compute=False)
    version = todo.compute()
    a = gs.open(tmp_path / "a.gs")
    assert a.version == version and (a[...] == A).all()


def test_a_killed_worker_costs_nothing(client: Client, tmp_path: Path) -> None:
    """Blocks that it had written are written again, and each is committed once."""
    uri = tmp_path / "a.gs"
    x = blocks_that(kill_once(str(tmp_path), at=3333.0))
    with dask.annotate(retries=3):
        gs.dask.store(x, uri)
    a = gs.open(uri)
    assert (tmp_path / "killed-3333.0").exists() and (a[...] == A).all() and a.version == 2
    assert sum(a.fragments["cells"].to_pylist()) == A.size, "of a block written twice one is there"
    assert gs.verify(uri).ok


def test_a_killed_worker_costs_a_dataset_nothing(client: Client, tmp_path: Path) -> None:
    import xarray as xr

    uri, place = tmp_path / "d.gs", {"y": np.arange(120), "x": np.arange(40)}
    x = blocks_that(kill_once(str(tmp_path), at=2345.0))
    with dask.annotate(retries=3):
        assert gs.to_gridstone(xr.Dataset({"v": (("y", "x"), x)}, place), uri) == 2
    assert (tmp_path / "killed-2345.0").exists()
    with xr.open_dataset(uri, engine="gridstone") as found:
        xr.testing.assert_identical(found, xr.Dataset({"v": (("y", "x"), A)}, place))
    assert gs.verify(uri).ok


@pytest.mark.parametrize("there", [False, True])
def test_a_graph_that_workers_fail_leaves_nothing(client: Client, tmp_path: Path, there: bool) -> None:
    uri = tmp_path / "a.gs"
    if there:
        gs.array(uri, A * 0, tile=16)

    def block(values: Any) -> Any:
        if (values == 4444.0).any():
            raise ZeroDivisionError("a block fails")
        return values

    with pytest.raises(ZeroDivisionError):
        gs.dask.store(blocks_that(block), uri)
    time.sleep(0.3)  # Blocks that were running are written after the error.
    if there:
        a = gs.open(uri)
        assert a.version == 2 and len(a.fragments) == 1 and not a[...].any() and gs.verify(uri).ok
    else:
        assert not gs.exists(uri)
    gs.dask.store(da.from_array(A, chunks=50), uri)
    assert (gs.open(uri)[...] == A).all()


def test_workers_that_keep_dying_leave_nothing(client: Client, tmp_path: Path) -> None:
    from distributed.scheduler import KilledWorker

    uri = tmp_path / "a.gs"
    gs.array(uri, A * 0, tile=16)

    def block(values: Any) -> Any:
        if (values == 2222.0).any():
            os.kill(os.getpid(), signal.SIGKILL)
        return values

    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), pytest.raises(KilledWorker):
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
        gs.dask.store(blocks_that(block), uri)
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
    a = gs.open(uri)
    assert a.version == 2 and not a[...].any()


def test_frames_are_read_by_workers(client: Client, tmp_path: Path) -> None:
    schema = gs.Schema([gs.Dim("t", (0, 999), 100)], [gs.Attr("v", "float64")], sparse=True, capacity=50)
    a = gs.create(tmp_path / "s.gs", schema)
    t = np.arange(0, 1000, 3)
    a.write_cells({"t": t}, {"v": t / 2})
    f = gs.dask.frame(a, index="t", blocksize="1KiB")
    assert f.npartitions > 4 and f[f.v > 100].v.sum().compute() == (t / 2)[t / 2 > 100].sum()
    assert f.loc[250:260].compute().index.tolist() == [252, 255, 258]
