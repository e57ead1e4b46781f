"""Arrays that are created together with cells that other processes wrote before, and metadata within a transaction."""

import multiprocessing
import uuid

import numpy as np
import pytest

import gridstone as gs

SCHEMA = gs.Schema([gs.Dim("x", (0, 99), 8), gs.Dim("y", (0, 3))], [gs.Attr("v", "int64")])


@pytest.fixture
def store(tmp_path):
    uri = str(tmp_path / "s.gs")
    gs.group(uri, mode="a")
    return uri


def written(uri, path, id, low, high):
    """Rows of an array that is not there yet, written here."""
    own = gs.transaction(uri)
    array = own.create(path, SCHEMA, id=id)
    values = np.arange(low * 4, high * 4).reshape(-1, 4)
    made = array.write(values, box={"x": (low, high - 1)}, commit=False)
    own.abort()
    return made


def test_processes_write_an_array_that_one_commit_creates(store):
    id, base = uuid.uuid4().hex, gs.open(store).version
    rows = [(0, 13), (13, 14), (14, 77), (77, 100)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        receipts = pool.starmap(written, [(store, "/w/a", id, *each) for each in rows])
    assert gs.open(store).version == base and not gs.exists(store, path="/w")
    with gs.transaction(store, "all of it") as tx:
        made = tx.create("/w/a", SCHEMA, id=id)
        tx.add(receipts)
        tx.meta("/w")["title"] = "rows"
        assert made[50].tolist() == [200, 201, 202, 203]
    assert tx.version == base + 1
    a = gs.open(store, path="/w/a")
    assert np.array_equal(a[...], np.arange(400).reshape(100, 4))
    assert gs.open(store, path="/w").meta["title"] == "rows"
    assert not gs.verify(store).damage
    with pytest.raises(gs.ConflictError, match="committed already"):
        gs.commit(store, receipts)


def test_a_transaction_that_fails_leaves_no_version_and_its_files_to_a_vacuum(store):
    id, base = uuid.uuid4().hex, gs.open(store).version
    receipt = written(store, "/a", id, 0, 100)
    with pytest.raises(ZeroDivisionError), gs.transaction(store) as tx:
        tx.create("/a", SCHEMA, id=id)
        tx.add([receipt])
        1 / 0  # noqa: B018
    assert gs.open(store).version == base and not gs.exists(store, path="/a")
    with gs.transaction(store) as tx:  # the same receipts serve another try
        tx.create("/a", SCHEMA, id=id)
        tx.add([receipt])
    assert gs.open(store, path="/a")[99, 3] == 399


def test_what_cannot_be_added_is_refused(store):
    id = uuid.uuid4().hex
    receipt = written(store, "/a", id, 0, 2)
    with gs.transaction(store) as tx:
        with pytest.raises(gs.InputError, match="has not created"):
            tx.add([receipt])
        for wrong in ("", "x" * 32, id.upper().replace("0", "A"), id[:-1]):
            with pytest.raises(gs.InputError, match="32 hexadecimal digits"):
                tx.create("/a", SCHEMA, id=wrong)
        tx.create("/a", SCHEMA, id=id)
        with pytest.raises(gs.InputError, match="given twice"):
            tx.add([receipt, receipt])
        with pytest.raises(gs.InputError):
            tx.add(["no receipt"])
        tx.add([receipt])
    with gs.transaction(store) as tx, pytest.raises(gs.InputError, match="inside a transaction"):
        tx["/a"].write(np.zeros((100, 4)), commit=False)
    with gs.transaction(store) as tx, pytest.raises(gs.ExistsError):
        tx.create("/b", SCHEMA, id=id)


def test_metadata_by_path(store):
    base = gs.open(store).version
    with gs.transaction(store) as tx:
        tx.meta()["title"] = "the root"
        tx.group("/g")
        tx.meta("g").update(a=1, b=[2.5, None])
        del tx.meta("/g")["a"]
        assert dict(tx.meta("/g")) == {"b": [2.5, None]} and "a" not in tx.meta("/g")
        with pytest.raises(gs.NotFoundError):
            tx.meta("/none")["a"] = 1
        with pytest.raises(gs.NotFoundError):
            len(tx.meta("/none"))
    assert tx.version == base + 1
    assert gs.open(store).meta["title"] == "the root" and dict(gs.open(store, path="/g").meta) == {"b": [2.5, None]}
    one, other = gs.transaction(store), gs.transaction(store)
    for each in (one, other):
        each.meta("/g")["b"] = [*each.meta("/g")["b"], 7]
    one.commit()
    with pytest.raises(gs.ConflictError):
        other.commit()
