"""Receipts: cells written by many processes, made visible by one, once."""

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone.errors import ConflictError, CorruptionError, InputError, NotFoundError, UnsupportedError

DENSE = gs.Schema([gs.Dim("y", (0, 99), 10), gs.Dim("x", (0, 99), 10)], [gs.Attr("v", "int64")])
SPARSE = gs.Schema([gs.Dim("x", (0, 9999))], [gs.Attr("v", "float64")], sparse=True)


def filled(uri: str) -> str:
    gs.create(uri, DENSE, path="/temp")
    gs.create(uri, SPARSE, path="/places")
    return uri


@pytest.fixture
def store(store_uri: str) -> str:
    return filled(store_uri)


def array(uri: str, path: str, mode: str = "r+") -> gs.Array:
    found = gs.open(uri, path=path, mode=mode)
    assert isinstance(found, gs.Array)
    return found


def rows(uri: str, number: int) -> gs.Receipt:
    """Writes ten rows of the dense array; run in other processes."""
    box = (slice(number * 10, number * 10 + 10), slice(0, 100))
    return array(uri, "/temp").write(np.full((10, 100), number + 1), box=box, commit=False)


def test_every_way_to_write_gives_a_receipt(store: str) -> None:
    temp, places = array(store, "/temp"), array(store, "/places")
    receipts = [
        temp.write(np.arange(10_000).reshape(100, 100), commit=False),
        temp.write_cells({"y": [1], "x": [1]}, {"v": [-1]}, commit=False),
        temp.delete(coords={"y": [2], "x": [2]}, commit=False),
        places.write_cells({"x": [1, 2]}, {"v": [1.0, 2.0]}, commit=False),
    ]
    with places.writer(commit=False) as w:
        w.append({"x": [5, 6]}, np.array([5.0, 6.0]))
        assert w.receipt is None
    assert w.receipt is not None
    receipts.append(w.receipt)
    assert [type(r) for r in receipts] == [gs.Receipt] * 5
    assert [r.cells for r in receipts] == [10_000, 1, 1, 2, 2]
    assert temp.version == gs.open(store).version == 2
    assert gs.commit(store, receipts, message="all") == 3
    temp, places = array(store, "/temp"), array(store, "/places")
    assert (temp[0, 5], temp[1, 1], temp[2, 2]) == (5, -1, 0)
    assert places.read().to_numpy()["x"].tolist() == [1, 2, 5, 6]
    assert temp.history()[-1].message == places.history()[-1].message == "all"
    assert not any(temp.fragments["inline"].to_pylist())


def test_a_receipt_is_a_value(store: str) -> None:
    receipt = array(store, "/places").write_cells({"x": [1]}, {"v": [1.0]}, commit=False)
    for copy in (pickle.loads(pickle.dumps(receipt)), gs.Receipt.from_json(receipt.to_json())):
        assert copy == receipt
        assert hash(copy) == hash(receipt)
        assert copy.fragments == receipt.fragments
    assert json.loads(receipt.to_json())["gridstone_receipt"] == 1
    assert len(pickle.dumps(receipt)) < 2_000
    for part in ("1 cells", "'/places'", "version 2", str(os.getpid())):
        assert part in repr(receipt)
    other = array(store, "/places").write_cells({"x": [1]}, {"v": [1.0]}, commit=False)
    assert other != receipt
    assert (receipt.path, receipt.version, receipt.array) == ("/places", 2, other.array)


def test_the_later_in_the_list_wins(store: str) -> None:
    places = array(store, "/places")
    one, two = (places.write_cells({"x": [1]}, {"v": [v]}, commit=False) for v in (1.0, 2.0))
    gs.commit(store, [two, one])
    assert array(store, "/places").read().to_numpy()["v"].tolist() == [1.0]


def cell(uri: str) -> gs.Receipt:
    return array(uri, "/places").write_cells({"x": [1]}, {"v": [1.0]}, commit=False)


def check_refused(uri: str, receipts: list[gs.Receipt], error: type[Exception], match: str) -> None:
    version = array(uri, "/places").version
    with pytest.raises(error, match=match):
        gs.commit(uri, receipts)
    assert array(uri, "/places").version == version


def test_receipts_of_files_that_are_not_what_they_were(tmp_path: Path) -> None:
    store = filled(str(tmp_path / "a.gs"))
    good, missing, changed = cell(store), cell(store), cell(store)
    os.remove(Path(store) / "_data" / f"{missing.fragments[0]}.frag")
    check_refused(store, [good, missing], NotFoundError, missing.fragments[0])
    path = Path(store) / "_data" / f"{changed.fragments[0]}.frag"
    path.chmod(0o644)
    with path.open("ab") as file:
        file.write(b"more")
    check_refused(store, [changed, good], CorruptionError, changed.fragments[0])


def test_what_does_not_fit_is_refused_and_nothing_is_committed(store: str, stores: Stores) -> None:
    places, good = array(store, "/places"), cell(store)
    foreign = cell(filled(stores("other")))
    check_refused(store, [good, foreign], InputError, "is of the store")
    check_refused(store, [good, good], InputError, "twice")
    with pytest.raises(InputError, match="a list of receipts"):
        gs.commit(store, good)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="number 1"):
        gs.commit(store, [good, "text"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="message"):
        places.write_cells({"x": [1]}, {"v": [1.0]}, message="m", commit=False)  # type: ignore[call-overload]
    assert gs.commit(store, [good]) == 3
    check_refused(store, [good], ConflictError, "in version 3")
    late = cell(store)
    gs.create(store, SPARSE, path="/places", overwrite=True)
    check_refused(store, [late], ConflictError, "/places")
    with pytest.raises(UnsupportedError):
        gs.Receipt(late.to_json().replace('"gridstone_receipt":1', '"gridstone_receipt":9'))
    for bad in ("", "{}", "nothing"):
        with pytest.raises(InputError):
            gs.Receipt(bad)


def test_a_delete_by_condition_deletes_what_its_maker_saw(store: str) -> None:
    temp, places = array(store, "/temp"), array(store, "/places")
    temp[0:2, 0:3] = [[1, 2, 3], [4, 5, 6]]
    places.write_cells({"x": [1, 2, 3]}, [1.0, -1.0, -3.0])
    receipts = [
        temp.delete({"y": (0, 0)}, where="v > 1", commit=False),
        places.delete(where=gs.col("v") < 0, commit=False),
        places.delete(where="v > 100", commit=False),
        places.delete([], where="v < 0", commit=False),
    ]
    assert [len(receipt.fragments) for receipt in receipts[2:]] == [0, 0]
    temp[0, 1] = 20
    places.write_cells({"x": [3, 4]}, [-30.0, -40.0])
    assert gs.commit(store, [gs.Receipt.from_json(receipt.to_json()) for receipt in receipts]) == 7
    assert array(store, "/temp")[0:2, 0:3].tolist() == [[1, 20, 0], [4, 5, 6]]
    assert array(store, "/places").read()["x"].tolist() == [1, 3, 4]
    with pytest.raises(ConflictError, match="committed already"):
        gs.commit(store, receipts)


def test_a_delete_by_condition_is_refused_after_a_merge(store: str) -> None:
    for path, cell in [("/temp", {"y": [1], "x": [1]}), ("/places", {"x": [1]})]:
        written = array(store, path)
        written.write_cells(cell, [-1])
        receipt = written.delete(where="v < 0", commit=False)
        written.write_cells({name: [2] for name in cell}, [-2])
        array(store, path).consolidate("all")
        with pytest.raises(ConflictError, match="merged"):
            gs.commit(store, [receipt])
        again = array(store, path).delete(where="v < 0", commit=False)
        gs.commit(store, [again])
        assert not (array(store, path).read().to_numpy()["v"] < 0).any()


def test_no_cells_give_an_empty_receipt(store: str) -> None:
    places = array(store, "/places")
    nothing = [
        places.write_cells({"x": []}, {"v": []}, commit=False),
        places.delete(coords={"x": []}, commit=False),
    ]
    assert [r.cells for r in nothing] == [0, 0]
    assert gs.commit(store, nothing) == gs.commit(store, []) == 2


@pytest.mark.usefixtures("between_processes")
@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_processes_write_and_one_commits(store: str, start: str) -> None:
    with multiprocessing.get_context(start).Pool(3) as pool:
        receipts = pool.starmap(rows, [(store, n) for n in range(10)])
    assert len({r.writer for r in receipts} - {f"process {os.getpid()}"}) > 0
    assert gs.commit(store, receipts) == 3
    assert (array(store, "/temp")[...] == np.arange(10).repeat(10)[:, None] + 1).all()


@pytest.mark.usefixtures("between_processes")
def test_a_receipt_written_by_another_program_is_sent_as_text(store: str) -> None:
    code = (
        "import sys, gridstone as gs\n"
        "a = gs.open(sys.argv[1], path='/places', mode='r+')\n"
        "print(a.write_cells({'x': [7]}, {'v': [7.0]}, commit=False).to_json())\n"
    )
    said = subprocess.run([sys.executable, "-c", code, store], capture_output=True, text=True, check=True, timeout=60)
    gs.commit(store, [gs.Receipt.from_json(said.stdout.strip())])
    assert array(store, "/places").read().to_numpy()["x"].tolist() == [7]
