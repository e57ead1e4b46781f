"""A call with a commit key, repeated with the same content, commits once; with other content it is a ConflictError."""

import itertools
import multiprocessing
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs

DENSE = gs.Schema([gs.Dim("y", (0, 9), 5), gs.Dim("x", (0, 9), 5)], [gs.Attr("v", "float64")])
SPARSE = gs.Schema(
    [gs.Dim("x", (0, 99_999))],
    [gs.Attr("v", "int64", nullable=True), gs.Attr("s", "string", nullable=True)],
    sparse=True,
)
X = np.arange(20)


def values(shift: int = 0) -> dict[str, Any]:
    return {"v": X + shift, "s": [f"text {x}" for x in X]}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "keys.gs")
    gs.create(place, DENSE, path="/dense")
    gs.create(place, SPARSE, path="/sparse").write_cells({"x": X}, values())
    return place


Call = Callable[[str, Any, Any], int]


def opened(uri: str, path: str) -> gs.Array:
    found = gs.open(uri, path=path, mode="r+")
    assert isinstance(found, gs.Array)
    return found


def streamed(uri: str, key: Any, wrong: Any) -> int:
    array = opened(uri, "/sparse")
    with array.writer(order="any", commit_key=key) as writer:
        for part in np.array_split(X, 1 + np.random.default_rng().integers(7)):
            writer.append({"x": part + 500}, {"v": part + wrong, "s": ["a"] * len(part)})
    return array.version


def ordered(uri: str, key: Any, wrong: Any) -> int:
    array = opened(uri, "/dense")
    with array.writer((slice(0, 4), slice(0, 4)), commit_key=key) as writer:
        writer.append(np.arange(6.0) + wrong)
        writer.append(np.arange(10.0))
    return array.version


def transacted(uri: str, key: Any, wrong: Any) -> int:
    with gs.transaction(uri, commit_key=key) as tx:
        tx["/dense"][0, 0] = tx["/dense"][0, 0] + 1 + wrong
        tx["/sparse"].meta["runs"] = wrong
        tx["/sparse"].delete(where="v > 15")
        tx.create(f"/new/a{key!s:.9}", SPARSE).write_cells({"x": [1]}, {"v": [wrong], "s": ["a"]})
    assert tx.version is not None
    return tx.version


def loaded(uri: str, key: Any, wrong: Any) -> int:
    table = {"x": X + 900, "v": X + wrong, "s": ["b"] * len(X)}
    return gs.io.from_arrow(uri, _table(table), path="/sparse", commit_key=key).version


def created(uri: str, key: Any, wrong: Any) -> int:
    table = {"x": X + 900, "v": X + wrong}
    return gs.io.from_arrow(
        uri, _table(table), dims=["x"], path=f"/made/a{key!s:.9}", sparse=True, commit_key=key
    ).version


def gridded(uri: str, key: Any, wrong: Any) -> int:
    source = f"{uri}.npy"
    np.save(source, np.arange(12.0).reshape(3, 4) + wrong)
    return gs.io.from_npy(uri, source, path=f"/grid/a{key!s:.9}", commit_key=key).version


def _table(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("pyarrow").table(columns)


CALLS: dict[str, Call] = {
    "write": lambda uri, key, wrong: opened(uri, "/dense").write(
        np.full((2, 2), 1.0 + wrong), (slice(0, 2), slice(0, 2)), commit_key=key
    ),
    "write_cells": lambda uri, key, wrong: opened(uri, "/sparse").write_cells(
        {"x": X + 300}, values(wrong), commit_key=key
    ),
    "delete box": lambda uri, key, wrong: opened(uri, "/sparse").delete((slice(3, 5 + wrong),), commit_key=key),
    "delete boxes": lambda uri, key, wrong: opened(uri, "/sparse").delete(
        [(slice(3, 5),), (slice(8, 9 + wrong),)], commit_key=key
    ),
    "delete where": lambda uri, key, wrong: opened(uri, "/sparse").delete(where=f"v > {9 + wrong}", commit_key=key),
    "delete coords": lambda uri, key, wrong: opened(uri, "/sparse").delete(
        coords={"x": [1, 2 + wrong]}, commit_key=key
    ),
    "writer of any order": streamed,
    "writer in order": ordered,
    "transaction": transacted,
    "load": loaded,
    "load that creates": created,
    "load of a grid": gridded,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("key", ["job 17", b"\xff\x00raw", "k" * 128])
def test_a_call_is_done_once(uri: str, name: str, key: Any) -> None:
    call = CALLS[name]
    first = call(uri, key, 0)
    newest = opened(uri, "/dense").version
    assert first == newest
    for other in range(3):
        opened(uri, "/dense")[9, 9] = other
    newest += 3
    again = call(uri, key, 0)
    # A load gives a handle, which shows the newest version.
    assert again == (newest if name.startswith(("load", "writer")) else first)
    assert opened(uri, "/dense").version == newest
    with pytest.raises(gs.ConflictError, match="commit key"):
        call(uri, key, 1)
    assert opened(uri, "/dense").version == newest
    # Without a key, or with another one, it is another commit.
    if name not in ("load that creates", "transaction", "delete where"):
        assert call(uri, uuid.uuid4().bytes, 0) == newest + 1


def test_receipts_are_committed_once(uri: str) -> None:
    array = opened(uri, "/sparse")
    one, two = (array.write_cells({"x": X + at}, values(), commit=False) for at in (100, 200))
    first = gs.commit(uri, [one, two], commit_key="both")
    assert gs.commit(uri, [one, two], commit_key=b"both") == first
    with pytest.raises(gs.ConflictError, match="commit key"):
        gs.commit(uri, [two, one], commit_key="both")
    with pytest.raises(gs.ConflictError, match="committed already"):
        gs.commit(uri, [one, two], commit_key="again")
    with pytest.raises(gs.InputError, match="give it to gridstone"):
        array.write_cells({"x": X}, values(), commit=False, commit_key="k")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("key", "word"), [("", "1 to 128 bytes"), (b"", "found 0"), ("é" * 65, "found 130"), (17, "text or bytes")]
)
def test_what_cannot_be_a_key_is_refused(uri: str, key: Any, word: str) -> None:
    for name, call in CALLS.items():
        with pytest.raises(gs.InputError, match=word):
            call(uri, key, 0)
            pytest.fail(name)
    with pytest.raises(gs.InputError, match=word):
        gs.commit(uri, [], commit_key=key)
    with pytest.raises(gs.InputError, match="when it begins"), gs.transaction(uri) as tx:
        tx["/sparse"].write_cells({"x": X}, values(), commit_key="k")


def test_how_the_data_is_given_does_not_matter(uri: str) -> None:
    dense, sparse = opened(uri, "/dense"), opened(uri, "/sparse")
    data = np.arange(100.0).reshape(10, 10)
    first = dense.write(data, commit_key="grid")
    for same in (np.asfortranarray(data), {"v": data}, data.astype(np.float64)[::1], data.tolist()):
        assert dense.write(same, commit_key="grid") == first
    first = sparse.write_cells({"x": X + 50}, values(), commit_key="cells")
    given = values()
    for same in (dict(reversed(given.items())), given | {"v": given["v"].tolist()}):
        assert sparse.write_cells({"x": X + 50}, same, commit_key="cells") == first
    for other in (values() | {"s": ["a"] * 20}, values() | {"v": [None, *X[1:].tolist()]}):
        with pytest.raises(gs.ConflictError):
            sparse.write_cells({"x": X + 50}, other, commit_key="cells")


def test_a_null_is_not_the_value_under_it(uri: str) -> None:
    sparse = opened(uri, "/sparse")
    masked = np.ma.MaskedArray(X.copy(), mask=X == 3)
    first = sparse.write_cells({"x": X + 70}, values() | {"v": masked}, commit_key="nulls")
    masked.data[3] = 99
    assert sparse.write_cells({"x": X + 70}, values() | {"v": masked}, commit_key="nulls") == first
    with pytest.raises(gs.ConflictError):
        sparse.write_cells({"x": X + 70}, values(), commit_key="nulls")


def test_a_transaction_run_again_reads_what_it_read(uri: str) -> None:
    for _ in range(3):
        with gs.transaction(uri, commit_key="increment 1") as tx:
            tx["/dense"][2, 2] = np.nan_to_num(tx["/dense"][2, 2]) + 1
    assert opened(uri, "/dense")[2, 2] == 1
    with gs.transaction(uri, commit_key="increment 2") as tx:
        tx["/dense"][2, 2] = tx["/dense"][2, 2] + 1
    assert opened(uri, "/dense")[2, 2] == 2


def work(uri: str, place: int, told: Any) -> None:
    """What one of several processes does: threads of it too."""
    array = opened(uri, "/sparse")

    def write() -> None:
        for job in range(10):
            told.put((job, array.write_cells({"x": X + 1_000 + job * 20}, values(job), commit_key=f"job {job}")))

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert place >= 0


def test_processes_and_threads_with_the_same_keys_commit_each_once(uri: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    told = spawn.Queue()
    processes = [spawn.Process(target=work, args=(uri, place, told)) for place in range(2)]
    for process in processes:
        process.start()
    found = [told.get(timeout=120) for _ in range(2 * 3 * 10)]
    for process in processes:
        process.join()
    versions = {
        job: {version for _, version in grouped} for job, grouped in itertools.groupby(sorted(found), lambda f: f[0])
    }
    assert all(len(of_job) == 1 for of_job in versions.values()), versions
    assert len(opened(uri, "/sparse").read({"x": (1_000, 2_000)})) == 200


def test_a_copy_of_the_history_knows_the_keys(uri: str, tmp_path: Path) -> None:
    first = CALLS["write"](uri, "k", 0)
    for history in (False, True):
        target = str(tmp_path / f"copy {history}.gs")
        gs.copy(uri, target, history=history)
        newest = gs.open(target, path="/dense").version
        made = CALLS["write"](target, "k", 0)
        assert made == (first if history else newest + 1)
    opened(uri, "/dense").vacuum(versions=1, safety_age="0s")
    assert CALLS["write"](uri, "k", 0) == first


def _all_written(array: gs.Array, key: str) -> int:
    with array.writer(commit_key=key) as writer:
        writer.append(np.arange(100.0))
    assert isinstance(writer.outcome, int)
    return writer.outcome


def test_what_is_asked_for_up_to_the_end_of_the_domain_is_the_same_after_others_let_it_grow(uri: str) -> None:
    calls: dict[str, tuple[str, Callable[[gs.Array, str], int]]] = {
        "everything": ("/sparse", lambda a, key: a.delete((...,), commit_key=key)),
        "a condition": ("/sparse", lambda a, key: a.delete(where="v > 3", commit_key=key)),
        "everything, a condition": ("/sparse", lambda a, key: a.delete((...,), where="v > 4", commit_key=key)),
        "an open slice": ("/sparse", lambda a, key: a.delete(slice(5, None), commit_key=key)),
        "an open pair": ("/sparse", lambda a, key: a.delete({"x": (None, 5)}, commit_key=key)),
        "a list": ("/sparse", lambda a, key: a.delete([(slice(None, 2),), (slice(7, None),)], commit_key=key)),
        "an open slice, a condition": (
            "/sparse",
            lambda a, key: a.delete(slice(5, None), where="v > 6", commit_key=key),
        ),
        "the domain of then": ("/sparse", lambda a, key: a.delete({"x": (0, 99_999)}, commit_key=key)),
        "a writer": ("/dense", _all_written),
    }
    done = {}
    for name, (path, call) in calls.items():
        opened(uri, "/sparse").write_cells({"x": X}, values())
        done[name] = call(opened(uri, path), name)
    for _ in range(2):
        opened(uri, "/sparse").resize(x=(-1 - len(opened(uri, "/sparse")), 200_000))
        opened(uri, "/dense").resize(y=(0, 10 + len(opened(uri, "/dense"))))
        newest = gs.open(uri).version
        for name, (path, call) in calls.items():
            assert call(opened(uri, path), name) == done[name], name
        assert gs.open(uri).version == newest
