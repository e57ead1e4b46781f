"""Transactions: several arrays in one version, all or nothing; what is staged is read inside, and nowhere else."""

import os
import pickle
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from places import data_files

import gridstone as gs
from gridstone.errors import ConflictError, ExistsError, InputError, NotFoundError, UnsupportedError

DENSE = gs.Schema([gs.Dim("y", (0, 99), 10), gs.Dim("x", (0, 99), 10)], [gs.Attr("v", "int64", filters="none")])
SPARSE = gs.Schema([gs.Dim("x", (0, 9999))], [gs.Attr("v", "float64")], sparse=True)


@pytest.fixture
def store(store_uri: str) -> str:
    gs.create(store_uri, DENSE, path="/temp")
    gs.create(store_uri, SPARSE, path="/places")
    return store_uri


def array(uri: str, path: str, mode: str = "r") -> gs.Array:
    found = gs.open(uri, path=path, mode=mode)
    assert isinstance(found, gs.Array)
    return found


def test_several_arrays_change_in_one_version(store: str) -> None:
    with gs.transaction(store, "both") as tx:
        temp = tx["/temp"]
        temp[0:10, 0:5] = 7
        temp["v"][2, 3] = 8
        temp.write(np.full((2, 2), 9), box=(slice(50, 52), slice(0, 2)))
        tx["places"].write_cells({"x": [1, 2]}, {"v": [0.5, 1.5]})
        tx["/places"].delete(coords={"x": [2]})
        tx["/places"].meta["unit"] = "mm"
        made = tx.create("/new/deep", DENSE)
        made[5, 5] = 1
        assert (temp[2, 3], temp[0, 0], temp[50, 1], made[5, 5]) == (8, 7, 9, 1)
        assert tx["/places"].read().to_numpy()["v"].tolist() == [0.5]
        assert tx["/places"].meta["unit"] == "mm"
        assert array(store, "/temp")[2, 3] == 0
        assert tx.version is None
        assert "/new/deep" in tx
        assert "/absent" not in tx
        assert [entry.path for entry in tx.ls()] == ["/new", "/places", "/temp"]
        assert temp.version == tx.base_version == 2
    assert tx.version == 3
    assert array(store, "/temp")[2, 3] == 8
    assert array(store, "/places").read().to_numpy()["x"].tolist() == [1]
    assert array(store, "/places").meta["unit"] == "mm"
    assert array(store, "/new/deep")[5, 5] == 1
    assert array(store, "/new/deep").history()[0].message == "both"
    assert array(store, "/temp").at(version=2)[2, 3] == 0
    assert "committed as version 3" in repr(tx)


def test_nothing_is_committed_after_an_exception(store: str) -> None:
    big = np.random.default_rng(1).integers(0, 2**60, (100, 100))
    wide = gs.create(
        store, gs.Schema([gs.Dim("i", (0, 99_999), 100_000)], [gs.Attr("v", "int64", filters="none")]), path="/w"
    )
    before = data_files(store)
    with pytest.raises(RuntimeError, match="no more"), gs.transaction(store) as tx:
        tx["/temp"][...] = big
        tx["/w"][...] = np.arange(100_000)
        tx["/places"].meta["k"] = 1
        assert "://" in store or len(data_files(store)) > len(before)
        raise RuntimeError("no more")
    assert data_files(store) == before
    assert array(store, "/temp").version == wide.version == 3
    assert tx.version is None
    assert "k" not in array(store, "/places").meta


def test_ctrl_c_leaves_the_store_as_it_was(store: str) -> None:
    with pytest.raises(KeyboardInterrupt), gs.transaction(store) as tx:
        tx["/temp"][...] = 5
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10_000_000):
            pass
    assert array(store, "/temp").version == 2
    assert not array(store, "/temp")[...].any()


def test_reads_inside_stay_at_the_snapshot_while_others_commit(store: str) -> None:
    with gs.transaction(store) as tx:
        array(store, "/temp", "r+")[1, 1] = 5
        assert tx["/temp"][1, 1] == 0
        tx["/temp"][1, 2] = 6
    found = array(store, "/temp")
    assert (found[1, 1], found[1, 2], found.version) == (5, 6, 4)


def test_streams_points_and_scans_work_inside(store: str) -> None:
    with gs.transaction(store) as tx:
        with tx["/places"].writer() as w:
            w.append({"x": np.arange(0, 100, 2)}, np.arange(50.0))
        found = tx["/places"].points({"x": [4, 5]})
        assert found.to_numpy()["v"].tolist() == [2.0]
        assert sum(len(batch) for batch in tx["/places"].scan()) == 50
        assert tx["/places"].nonempty_domain == ((0, 98),)
        assert len(tx["/places"].fragments) == 1
    assert array(store, "/places").read().to_numpy()["v"].sum() == sum(range(50))


def test_a_conflict_is_told_and_can_be_tried_again(store: str) -> None:
    with pytest.raises(ConflictError, match="removed"), gs.transaction(store) as tx:
        tx["/places"].write_cells({"x": [1]}, {"v": [1.0]})
        tx["/temp"][0, 0] = 1
        with gs.transaction(store) as other:
            other.remove("/places")
    assert array(store, "/temp")[0, 0] == 0
    assert tx.version is None


def test_serializable_refuses_what_read_something_that_changed(store: str) -> None:
    def book(seat: int, isolation: str) -> None:
        with gs.transaction(store, isolation=isolation) as tx:
            taken = tx["/temp"][0, seat]
            array(store, "/temp", "r+")[0, seat] = 1
            if not taken:
                tx["/temp"][0, seat] = 2

    with pytest.raises(ConflictError, match="read and written"):
        book(1, "snapshot")
    assert array(store, "/temp")[0, 1] == 1, "the seat was sold once"
    with pytest.raises(ConflictError, match="serializable"):
        book(2, "serializable")
    assert array(store, "/temp")[0, 2] == 1
    for read, change in [
        (lambda tx: tx["/temp"].meta.get("k"), lambda: array(store, "/temp", "r+").meta.update(k=1)),
        (lambda tx: "/later" in tx, lambda: gs.create(store, DENSE, path="/later")),
        (lambda tx: tx.ls(), lambda: gs.create(store, DENSE, path="/later2")),
    ]:
        with pytest.raises(ConflictError), gs.transaction(store, isolation="serializable") as tx:
            read(tx)
            change()
            tx["/places"].write_cells({"x": [1]}, {"v": [1.0]})
    with gs.transaction(store, isolation="serializable") as tx:
        tx["/temp"].read({"y": (0, 5), "x": (0, 5)})
        array(store, "/temp", "r+")[50, 50] = 1
        tx["/temp"][9, 9] = 1
    assert tx.version is not None


def test_use_after_the_end_and_twice_is_an_error(store: str) -> None:
    with gs.transaction(store) as tx:
        temp = tx["/temp"]
        temp[0, 0] = 1
        with pytest.raises(InputError, match="entered once"), tx:
            pass
    for use in [
        lambda: temp[0, 0],
        lambda: temp.__setitem__((0, 0), 2),
        lambda: tx["/temp"],
        lambda: tx.create("/x", DENSE),
        lambda: tx.remove("/temp"),
        tx.commit,
        tx.__enter__,
    ]:
        with pytest.raises(InputError):
            use()
    tx.abort()
    assert tx.version == 3
    gone = gs.transaction(store)
    gone.abort()
    with pytest.raises(InputError, match="aborted"):
        gone["/temp"]
    by_hand = gs.transaction(store)
    by_hand["/temp"][0, 1] = 2
    assert by_hand.commit() == 4
    with gs.transaction(store) as early:
        early["/temp"][0, 2] = 3
        early.commit()
    assert early.version == 5


def test_wrong_requests_are_refused(store: str) -> None:
    with pytest.raises(NotFoundError):
        gs.transaction(store + "-absent")
    with pytest.raises(InputError, match="isolation"):
        gs.transaction(store, isolation="dirty")
    with gs.transaction(store) as tx:
        with pytest.raises(NotFoundError):
            tx["/absent"]
        with pytest.raises(ExistsError):
            tx.create("/temp", DENSE)
        with pytest.raises(InputError, match="message"):
            tx["/temp"].write(np.zeros((100, 100)), message="mine")
        with pytest.raises(InputError, match="transaction"):
            tx["/temp"].consolidate()
        with pytest.raises(InputError, match="transaction"):
            tx["/temp"].refresh()
        with pytest.raises(InputError, match="transaction"):
            tx["/temp"].write(np.zeros((100, 100)), commit=False)
        for value in (tx, tx["/temp"]):
            with pytest.raises(UnsupportedError):
                pickle.dumps(value)
    assert tx.version == 2, "nothing was staged"


def test_threads_stage_and_commit_tiny_writes_side_by_side(store: str) -> None:
    places = array(store, "/places", "r+")
    failed: list[BaseException] = []

    def run(work: object, number: int) -> None:
        try:
            work(number)  # type: ignore[operator]
        except BaseException as error:
            failed.append(error)

    def side_by_side(work: object) -> None:
        threads = [threading.Thread(target=run, args=(work, n)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not failed
        assert not any(thread.is_alive() for thread in threads)

    with gs.transaction(store) as tx:
        side_by_side(lambda n: [tx["/temp"].__setitem__((n, i), n * 100 + i + 1) for i in range(20)])
    expected = np.arange(8)[:, None] * 100 + np.arange(20) + 1
    assert (array(store, "/temp")[0:8, 0:20] == expected).all()

    def tiny(number: int) -> None:
        for i in range(20):
            version = places.write_cells({"x": [number * 20 + i]}, {"v": [float(i)]})
            assert places.version >= version

    side_by_side(tiny)
    found = array(store, "/places")
    assert found.read().to_numpy()["x"].tolist() == list(range(160))
    assert found.version <= 3 + 160


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_commits_while_its_parent_does(tmp_path: Path) -> None:
    uri = str(tmp_path / "a.gs")
    places = gs.create(uri, SPARSE)
    stop = threading.Event()

    def write() -> None:
        n = 0
        while not stop.is_set():
            places.write_cells({"x": [n % 5000]}, {"v": [1.0]})
            n += 1

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    tx = gs.transaction(uri)
    tx["/"].write_cells({"x": [9999]}, {"v": [1.0]})
    try:
        for number in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                code = 1
                try:
                    places.write_cells({"x": [6000 + number]}, {"v": [2.0]})
                    other = gs.open(uri, mode="r+")
                    other.write_cells({"x": [7000 + number]}, {"v": [2.0]})  # type: ignore[union-attr]
                    try:
                        tx.commit()
                    except InputError:
                        code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    tx.commit()
    found = array(uri, "/").read({"x": (6000, 9999)}).to_numpy()["x"].tolist()
    assert found == [*range(6000, 6005), *range(7000, 7005), 9999]


def test_deletes_by_condition_see_what_was_staged_before(store: str) -> None:
    array(store, "/places", "r+").write_cells({"x": [1, 2, 3]}, [1.0, -1.0, 3.0])
    array(store, "/temp", "r+")[0:2, 0:3] = [[1, 2, 3], [4, 5, 6]]
    with gs.transaction(store) as tx:
        places, temp = tx["/places"], tx["/temp"]
        places.write_cells({"x": [4, 5]}, [-4.0, 5.0])
        places.delete(where="v < 0")
        places.write_cells({"x": [6]}, [-6.0])
        temp[0, 0] = 50
        temp.delete({"y": (0, 1)}, where=gs.col("v") > 4)
        temp[0, 1] = 70
        assert places.read()["x"].tolist() == [1, 3, 5, 6]
        assert temp[0:2, 0:3].tolist() == [[0, 70, 3], [4, 0, 0]]
        array(store, "/places", "r+").write_cells({"x": [7]}, [-7.0])
        with pytest.raises(InputError, match="transaction"):
            places.delete(where="v < 0", commit=False)
    assert array(store, "/places").read()["x"].tolist() == [1, 3, 5, 6, 7]
    assert array(store, "/temp")[0:2, 0:3].tolist() == [[0, 70, 3], [4, 0, 0]]
