"""Copies and moves: what is copied is what was there, at every version, whatever was done to it."""

import itertools
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from buckets import KINDS
from hypothesis import given, settings
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone.cli import run
from gridstone.errors import ConflictError, ExistsError, InputError, NotFoundError, UnsupportedError

KEYS = ["11" * 32, "22" * 32]
STEPS = ["cells", "box", "delete cells", "delete box", "delete where", "merge", "alter", "meta", "many"]


def schema(sparse: bool) -> gs.Schema:
    options: dict[str, Any] = {"sparse": True, "capacity": 20, "duplicates": False} if sparse else {}
    attrs = [gs.Attr("v", "int32"), gs.Attr("s", "string", nullable=True)]
    return gs.Schema([gs.Dim("x", (0, 59), 16)], attrs, **options)


def act(a: gs.Array, step: str, seed: int) -> None:
    """Something that changes an array."""
    random = np.random.default_rng(seed)
    places = np.unique(random.integers(0, 60, 15))
    texts = np.array([None if p % 5 == 0 else f"t{seed}-{p}" for p in places], object)
    values = {"v": places * 10 + seed % 7, "s": np.ma.MaskedArray(texts, [t is None for t in texts])}
    low = int(random.integers(0, 50))
    if step == "box" and not a.sparse:
        texts = np.ma.MaskedArray(np.array([f"b{i}" for i in range(8)], object), [i % 3 == 0 for i in range(8)])
        a.write({"v": np.arange(8, dtype=np.int32) + seed, "s": texts}, {"x": (low, low + 7)})
    elif step in ("cells", "box", "many"):
        for _ in range(12 if step == "many" else 1):
            a.write_cells({"x": places}, values)
    elif step == "delete cells":
        a.delete(coords={"x": places[:4]})
    elif step == "delete box":
        a.delete({"x": (low, low + 5)})
    elif step == "delete where":
        a.delete(where=f"v > {low * 5} and x > {low}")
    elif step == "merge":
        a.consolidate("all")
    elif step == "alter" and "w" not in a.schema_names:
        a.alter(add=[gs.Attr("w", "int16", fill=7)])
        a.write_cells({"x": [3, 4]}, {"v": [1, 2], "s": np.array(["p", "q"], object), "w": [8, 9]})
        a.alter(drop=["w"])
    elif step == "meta":
        a.meta[f"k{seed % 3}"] = {"seed": seed}


def content(a: gs.Array) -> Any:
    found = a.read().to_numpy()
    return {
        name: [None if masked else value for value, masked in zip(*(part.tolist() for part in parts), strict=True)]
        for name, column in found.items()
        for parts in [(np.ma.getdata(column), np.ma.getmaskarray(column))]
    }


@pytest.fixture(params=[*itertools.product(KINDS, repeat=2)], ids="-to-".join)
def ends(request: pytest.FixtureRequest, stores_of: Callable[[str], Stores]) -> tuple[Stores, Stores]:
    """Places to copy from and places to copy to."""
    here, there = request.param
    return stores_of(here), stores_of(there)


def grown(uri: str, sparse: bool, steps: list[str], seed: int) -> gs.Array:
    """The array /g/a of a new store, after these steps."""
    a = gs.create(uri, schema(sparse), path="/g/a")
    for n, step in enumerate(steps):
        act(a, step, seed + n)
    a.refresh()
    return a


HISTORIES = (st.booleans(), st.lists(st.sampled_from(STEPS), min_size=1, max_size=9), st.integers(0, 10**6))


@settings(max_examples=12, deadline=None)
@given(*HISTORIES)
def test_a_copy_of_a_version_equals_it(ends: tuple[Stores, Stores], sparse: bool, steps: list[str], seed: int) -> None:
    here, there = ends
    a = grown(here(), sparse, steps, seed)
    contexts = [gs.Context(key=key) for key in KEYS]
    twin = gs.copy(a.uri, a.uri, path="/g/a", target_path="/h")
    assert isinstance(twin, gs.Array) and content(twin) == content(a)
    with pytest.raises(ExistsError):
        gs.copy(a.uri, a.uri, path="/g/a", target_path="/h")
    for version in {1, a.version, 1 + seed % a.version}:
        past = a.at(version=version)
        one = gs.copy(a.uri, there(), path="/g/a", target_path="/", version=version)
        assert isinstance(one, gs.Array)
        assert one.version == 1 and one.schema == past.schema and dict(one.meta) == dict(past.meta)
        assert content(one) == content(past)
        two = gs.copy(one.uri, here(), target_context=contexts[0])
        three = gs.copy(two.uri, there(), context=contexts[0], target_context=contexts[1])
        assert isinstance(three, gs.Array) and three.key_id is not None
        assert content(three) == content(past)
        assert not three.verify()["damage"]
        assert gs.diff(past, three).cells_equal


@settings(max_examples=12, deadline=None)
@given(*HISTORIES)
def test_a_copy_of_all_history_equals_every_version(
    ends: tuple[Stores, Stores], sparse: bool, steps: list[str], seed: int
) -> None:
    here, there = ends
    a = grown(here(), sparse, steps, seed)
    group = gs.copy(a.uri, there(), history=True)
    assert isinstance(group, gs.Group)
    b = gs.open(group.uri, path="/g/a", mode="r+")
    back = gs.open(gs.copy(group.uri, here(), history=True).uri, path="/g/a")
    for found in (b, back):
        assert isinstance(found, gs.Array) and found.version == a.version
        for version in range(1, a.version + 1):
            assert content(found.at(version=version)) == content(a.at(version=version))
        assert [(v.version, v.timestamp, v.message, v.commit_id) for v in found.history()] == [
            (v.version, v.timestamp, v.message, v.commit_id) for v in a.history()
        ]
        assert not gs.verify(found.uri)["damage"]
    act(b, "cells", seed)
    assert b.version == a.version + 1


def test_what_is_open_is_copied_as_it_shows(stores: Stores) -> None:
    """An array or group is copied at its place and version, by the context that it was opened with."""
    context = gs.Context(key=KEYS[0])
    a = gs.create(stores("from"), schema(True), path="/g/a", context=context)
    for seed in range(3):
        act(a, "cells", seed)
    old, late = a.at(version=2), gs.open(stores("from"), path="/g/a", context=context)
    act(a, "many", 9)
    for n, handle in enumerate((old, late, a)):
        copied = gs.copy(handle, stores(f"to{n}"))
        assert content(copied) == content(handle) and copied.path == "/" and copied.mode == "r+"
        assert copied.key_id == a.key_id
    assert len({len(handle.read()) for handle in (old, late, a)}) == 3
    group = gs.open(stores("from"), path="/g", version=2, context=context)
    assert content(gs.copy(group, stores("group"), target_path="/h")["a"]) == content(old)
    for wrong in ({"path": "/g"}, {"version": 2}):
        with pytest.raises(InputError, match="own path and version"):
            gs.copy(a, stores("none"), **wrong)
    with pytest.raises(InputError, match="history"):
        gs.copy(a, stores("none"), history=True)
    with gs.transaction(stores("from"), context=context) as tx, pytest.raises(UnsupportedError, match="transaction"):
        gs.copy(tx["/g/a"], stores("none"))
    a.close()
    with pytest.raises(InputError, match="closed"):
        gs.copy(a, stores("none"))
    assert not gs.exists(stores("none"))


def test_tags_and_what_was_vacuumed(ends: tuple[Stores, Stores]) -> None:
    here, there = ends
    a = gs.create(here("a"), schema(True))
    for n in range(6):
        act(a, "cells", n)
    gs.tag(a.uri, "four", 4)
    a.vacuum(versions=2, safety_age=0)
    gs.copy(a.uri, there("b"), history=True)
    b = gs.open(there("b"))
    assert isinstance(b, gs.Array)
    assert b.tags == {"four": 4} and content(b.at(version="four")) == content(a.at(version="four"))
    with pytest.raises(gs.errors.SnapshotExpiredError):
        b.at(version=3)
    one = gs.copy(a.uri, there("tagged"), version="four")
    assert isinstance(one, gs.Array) and content(one) == content(a.at(version="four"))
    with pytest.raises(NotFoundError, match="three"):
        gs.copy(a.uri, there("other"), version="three")
    assert not gs.exists(there("other"))


def test_what_was_vacuumed_cannot_be_tagged_in_a_history_that_ends_before_the_vacuum(stores: Stores) -> None:
    root = gs.group(stores("a"), mode="a")
    root.group("x")
    assert root.vacuum("0s").committed == 3
    gs.copy(stores("a"), stores("b"), version=2, history=True)
    with pytest.raises(gs.errors.SnapshotExpiredError):
        gs.tag(stores("b"), "first", 1)


def test_progress_interrupts_and_tells_bytes(ends: tuple[Stores, Stores]) -> None:
    here, there = ends
    gs.array(here("a"), np.random.default_rng(1).integers(0, 2**62, 400_000))
    seen: list[tuple[int, int]] = []
    gs.copy(here("a"), there("b"), progress=lambda done, total: seen.append((done, total)))
    assert seen and seen[-1][0] == seen[-1][1] > 1_000_000

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gs.copy(here("a"), there("c"), progress=stop)
    assert not gs.exists(there("c"))
    gs.copy(here("a"), there("c"))
    assert gs.diff(here("a"), there("c")).equal


def test_moves(store_uri: str) -> None:
    uri = store_uri
    a = gs.create(uri, schema(True), path="/g/a")
    act(a, "cells", 1)
    before = a.version
    version = gs.move(uri, "/g/a", "/h/b", message="tidied")
    assert a.path == "/g/a" and a.refresh() == version and a.path == "/h/b"
    act(a, "cells", 2)
    moved = pickle.loads(pickle.dumps(a))
    assert moved.path == "/h/b" and content(moved) == content(a)
    old = gs.open(uri, path="/g/a", version=before)
    assert isinstance(old, gs.Array) and old.path == "/g/a"
    assert [v.message for v in a.history() if v.version == version] == ["tidied"]
    group = gs.group(uri, path="/h", mode="r+")
    group.move("b", "c/d")
    assert "/h/c/d" in repr(gs.open(uri, path="/h/c/d"))
    group.move("c", "/top")
    assert list(gs.group(uri)) == ["g", "h", "top"]
    with gs.transaction(uri) as tx:
        tx.move("/top/d", "/e")
        assert "/e" in tx and "/top/d" not in tx
        act(tx["/e"], "cells", 3)
    assert gs.open(uri, path="/e").version == a.refresh()
    with pytest.raises(InputError):
        gs.move(uri, "/", "/x")
    with pytest.raises(ExistsError):
        gs.move(uri, "/e", "/g")
    with pytest.raises(NotFoundError):
        gs.move(uri, "/none", "/x")
    with pytest.raises(gs.errors.AccessError):
        readable = gs.open(uri)
        assert isinstance(readable, gs.Group)
        readable.move("e", "f")
    first, second = gs.transaction(uri), gs.transaction(uri)
    first.move("/e", "/e1")
    second.move("/e", "/e2")
    first.commit()
    with pytest.raises(ConflictError):
        second.commit()


def test_a_pickle_means_the_array_and_not_its_path(store_uri: str) -> None:
    a = gs.create(store_uri, schema(True), path="/x")
    act(a, "cells", 1)
    writer, reader = pickle.dumps(a), pickle.dumps(gs.open(store_uri, path="/x"))
    gs.move(store_uri, "/x", "/y")
    other = gs.create(store_uri, schema(True), path="/x")
    act(other, "cells", 2)
    found = pickle.loads(writer)
    assert (found.path, found.mode, content(found)) == ("/y", "r+", content(a))
    old = pickle.loads(reader)
    assert (old.path, content(old)) == ("/x", content(a))
    old.refresh()
    assert (old.path, content(old)) == ("/y", content(a))
    gs.create(store_uri, schema(True), path="/y", overwrite=True)
    with pytest.raises(NotFoundError):
        pickle.loads(writer)
    with pytest.raises(NotFoundError):
        old.refresh()


def test_command_line(stores: Stores, capsys: pytest.CaptureFixture[str]) -> None:
    a = gs.create(stores("a"), schema(True), path="/a")
    act(a, "cells", 1)
    places = [stores(name) for name in "abc"]
    assert run(["copy", places[0], places[1], "--history", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.pop("bytes_copied") > 0 and told.pop("objects_copied") > 1 and told.pop("versions_copied") == 2
    assert told == {"uri": places[1], "path": "/", "version": 2}
    assert run(["copy", places[0], places[2], "--path", "/a", "--to", "/n/m", "--version", "1"]) == 0
    assert run(["move", places[2], "/n/m", "/a"]) == 0
    capsys.readouterr()
    assert run(["diff", places[0], places[1], "--path", "/a"]) == 0
    assert run(["diff", places[0], places[2], "--path", "/a", "--json"]) == 3
    printed = capsys.readouterr().out
    assert json.loads(printed[printed.index("{") :])["only_a"] > 0
    assert run(["diff", places[0], "--path", "/a", "--version", "1", "--version-b", "2"]) == 3
    assert run(["diff", places[0], "--path", "/a"]) == 2
    assert run(["copy", places[0], places[1]]) == 5
    assert "overwrite" in capsys.readouterr().err
