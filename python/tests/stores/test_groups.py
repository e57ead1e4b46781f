"""Groups: their children and their metadata, beside others who change them."""

import contextlib
import pickle
import threading
import uuid
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from typing import Any

import numpy as np
import pytest

import gridstone as gs

SCHEMA = gs.Schema([gs.Dim("i", (0, 9))], [gs.Attr("v", "int8")])


def told(group: gs.Group) -> dict[str, Any]:
    """All that a handle says, each in a question of its own."""
    return {
        "version": group.version,
        "path": group.path,
        "names": list(group),
        "number": len(group),
        "keys": list(group.keys()),
        "entries": [tuple(entry) for entry in group.children()],
        "metadata": dict(group.meta),
        "tags": group.tags,
        "text": repr(group),
        "html": group._repr_html_(),
    }


def test_a_handle_does_not_contradict_itself(store_uri: str) -> None:
    """All that is asked of a handle is answered by one version, whoever made it: that of a handle opened just now."""
    writer, reader = gs.group(store_uri, mode="a"), gs.open(store_uri)
    assert isinstance(reader, gs.Group)

    def agree(version: int, *names: str) -> None:
        fresh = gs.open(store_uri)
        assert isinstance(fresh, gs.Group)
        for group in (writer, reader, pickle.loads(pickle.dumps(writer)), writer.refreshed()):
            assert told(group) == told(fresh)
            assert group.version == group.refresh() == version
            assert [entry.name for entry in group.children()] == list(group) == list(names)
            assert all(f"{name} (" in repr(group) and f">{name}<" in group._repr_html_() for name in names)
            assert ("empty" in repr(group)) == (not names)

    agree(1)
    made = writer.create("a", SCHEMA)
    agree(2, "a")
    made[...] = 1
    writer.group("g")
    agree(4, "a", "g")
    gs.create(store_uri, SCHEMA, path="/by another")
    agree(5, "a", "by another", "g")
    writer.meta["k"] = 1
    writer.move("g", "h")
    agree(7, "a", "by another", "h")
    del writer["a"]
    gs.tag(store_uri, "here")
    agree(9, "by another", "h")


def test_a_handle_of_the_past_stays_there(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    root.create("g/a", SCHEMA)
    made = gs.open(store_uri, path="/g/a")
    assert isinstance(made, gs.Array)
    past = [gs.open(store_uri, path="/g", version=2), gs.open(store_uri, path="/g", timestamp=made.timestamp)]
    root["g"].create("b", SCHEMA)
    root["g"].meta["k"] = 1
    root.move("g", "h")
    with gs.transaction(store_uri) as tx:
        tx.remove("/h")
    for group in (*past, pickle.loads(pickle.dumps(past[0]))):
        assert isinstance(group, gs.Group)
        assert (group.version, group.path, list(group), len(group), dict(group.meta)) == (2, "/g", ["a"], 1, {})
        assert [entry.path for entry in group.children()] == ["/g/a"] == [entry.path for entry in group.walk()]
        assert "version 2: a (array)" in repr(group) and "version 2<" in group._repr_html_()
        with pytest.raises(gs.errors.BoundsError, match="at version 2"):
            group.refresh()
        with pytest.raises(gs.errors.NotFoundError, match="removed"):
            group.refreshed()


def test_a_handle_that_is_gone_can_be_shown_and_pickled(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    gone = root.group("g")
    root.move("g", "<h>")
    assert gone.path == "/<h>" and "&lt;h&gt;" in gone._repr_html_()
    del root["<h>"]
    for group in (gone, pickle.loads(pickle.dumps(gone))):
        for asked in (
            lambda g=group: g.version,
            lambda g=group: g.path,
            lambda g=group: g.children(),
            lambda g=group: g.walk(),
            lambda g=group: g.get("a"),
            lambda g=group: "a" in g,
            lambda g=group: dict(g.meta),
            group.refresh,
        ):
            with pytest.raises(gs.errors.NotFoundError, match="removed"):
                asked()
        assert repr(group).endswith("'/<h>' (removed)>") and "(removed)" in group._repr_html_()
    gs.delete(store_uri)
    assert repr(root).startswith(f"<gridstone.Group {root.uri!r} '/' ")


def test_what_opens_is_in_a_group(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    for path in ("a/b", "a/c/d", "é c/f g"):
        root.create(path, SCHEMA)
    root.group("e")
    names = ["a", "e", "a/b", "a/c", "a/c/d", "/a/c/d/", "é c/f g", "a/", "/", "", "b", "a/zz", "zz/b", "a/b/c", "a//b"]
    for group in (root, gs.open(store_uri, version=root.version), root["a"]):
        assert isinstance(group, gs.Group)
        for name in [*names, "c/d", ".", "..", "a/../e", "a\\b"]:
            opened = None
            with contextlib.suppress(gs.errors.NotFoundError, gs.errors.InputError):
                opened = group[name]
            assert (name in group) == (opened is not None), name
    assert "a/b" in root and "c/d" in root["a"] and "a/b" not in root["a"]
    for wrong in (3, None, b"a", ("a",), "half a \ud800 pair", "a/\ud800"):
        assert wrong not in root


def test_a_missing_name_is_a_key_error_too(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    root.create("a/b", SCHEMA)
    for act in (lambda: root["zz"], lambda: root["a/zz"], lambda: root["a/b/zz"], lambda: root.remove("zz")):
        with pytest.raises(gs.errors.NotFoundError) as caught:
            act()
        error = caught.value
        assert isinstance(error, KeyError) and isinstance(error, FileNotFoundError)
        assert "zz" in str(error) and str(error) == error.args[0], "no quotes around the message, as of a KeyError"
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.args) == (type(error), str(error), error.args)
    with pytest.raises(KeyError):
        del root["zz"]
    assert root.get("zz") is None and root.get("a/zz", 7) == 7
    found = root.get("a/b")
    assert isinstance(found, gs.Array) and found.path == "/a/b"
    with pytest.raises(gs.errors.InputError):
        root.get("..")
    with pytest.raises(TypeError, match="name="):
        root.get(3)  # type: ignore[arg-type]
    gs.create(store_uri + "2", SCHEMA)
    with pytest.raises(gs.errors.NotFoundError) as caught:
        gs.open(store_uri + "2", path="/zz")
    assert not isinstance(caught.value, KeyError), "what is no lookup in a group is no KeyError"
    gs.delete(store_uri + "2")


def test_the_views_of_a_mapping(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    root.create("a", SCHEMA)[...] = 1
    root.group("g").create("b", SCHEMA)
    keys, values, items = root.keys(), root.values(), root.items()
    assert isinstance(keys, KeysView) and isinstance(values, ValuesView) and isinstance(items, ItemsView)
    assert list(keys) == ["a", "g"] == [name for name, _ in items] and keys == {"a", "g"} and keys & {"a"} == {"a"}
    assert [child.path for child in values] == ["/a", "/g"] == [child.path for child in dict(root).values()]
    assert len(keys) == len(values) == len(items) == 2 and "g" in keys and "zz" not in keys
    root.create("later", SCHEMA)
    assert list(keys) == ["a", "g", "later"]
    assert root != root.refreshed() and len({root, root.refreshed()}) == 2, "a handle is equal to itself alone"


def test_walking(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    for path in ("b/c", "b/d/e", "a", "é/f g"):
        root.create(path, SCHEMA)
    root.group("b/d/empty")
    expected = ["/a", "/b", "/b/c", "/b/d", "/b/d/e", "/b/d/empty", "/é", "/é/f g"]
    walked = root.walk()
    assert [entry.path for entry in walked] == expected
    assert [entry.kind == "array" for entry in walked] == [True, False, True, False, True, False, False, True]
    assert all(entry.name == entry.path.rpartition("/")[2] for entry in walked)
    inner = root["b"]
    assert isinstance(inner, gs.Group) and [entry.path for entry in inner.walk()] == expected[2:6]
    root.move("b", "x")
    assert [entry.path for entry in inner.walk()] == ["/x/c", "/x/d", "/x/d/e", "/x/d/empty"]
    assert gs.group(store_uri, path="/x/d/empty").walk() == []


def test_walking_beside_moves_and_vacuums(store_uri: str) -> None:
    """What is told is of one version, which nobody takes away meanwhile."""
    root = gs.group(store_uri, context=gs.Context(durability="close"), mode="a")
    inner = root.group("a")
    for i in range(20):
        inner.group(f"{i}/below")
    done = threading.Event()

    def move() -> None:
        for i in range(30):
            root.move("ab"[i % 2], "ba"[i % 2])
            root.vacuum(versions=1, safety_age=0)
        done.set()

    thread = threading.Thread(target=move)
    thread.start()
    while not done.is_set():
        walked = [entry.path for entry in inner.walk()]
        assert len(walked) == 40 and {path[:3] for path in walked} in ({"/a/"}, {"/b/"})
    thread.join()


def test_an_array_that_is_a_group_names_the_arrays_below(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    with pytest.raises(gs.errors.NotFoundError, match="there is no array in it"):
        gs.diff(store_uri, store_uri)
    root.create("a/b", SCHEMA)
    with pytest.raises(gs.errors.NotFoundError, match=r"its arrays: \['/a/b'\]"):
        gs.diff(store_uri, store_uri)
    with gs.transaction(store_uri) as tx:
        for i in range(30):
            tx.create(f"/a/n{i}", SCHEMA)
    with pytest.raises(gs.errors.NotFoundError, match=r"some of its arrays: \['/a/b', '/a/n0'.*walk"):
        gs.diff(store_uri, store_uri)


def test_a_closed_group(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    with root.group("g") as group:
        made = group.create("a", SCHEMA)
        meta = group.meta
        assert group.mode == "r+" and gs.open(store_uri).mode == "r"
    made[...] = 1
    asked = [
        *(lambda: list(group), lambda: group["a"], lambda: "a" in group, lambda: group.version, lambda: group.key_id),
        *(lambda: dict(meta), lambda: pickle.dumps(group), lambda: group.create("b", SCHEMA), lambda: group.tags),
        *(group.children, group.walk, group.refresh, group.refreshed, group.verify),
    ]
    for act in asked:
        with pytest.raises(gs.errors.InputError, match="closed"):
            act()
    assert (group.path, group.uri, bool(group)) == ("/g", root.uri, True)
    assert repr(group) == f"<gridstone.Group {root.uri!r} '/g' (closed)>" and "(closed)" in group._repr_html_()
    group.close()


def test_threads_share_a_handle(store_uri: str) -> None:
    """Each sees its own commits at once, and never goes back."""
    root, wrong = gs.group(store_uri, mode="a"), []

    def work(number: int) -> None:
        last = 0
        for i in range(15):
            root.group(f"{number} {i}")
            seen = root.version
            if f"{number} {i}" not in root or seen < last or f"{number} {i} (group)" not in repr(root):
                wrong.append((number, i))
            last = seen

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(root) == 60 and root.version == 61


def test_metadata_of_groups(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    inner = root.group("inner")
    inner.create("a", SCHEMA)
    inner.meta["units"] = "m"
    inner.meta.update({"box": [1, 2.5, None], "when": np.datetime64("2026-01-01")})
    assert dict(inner.meta) == {"box": [1, 2.5, None], "units": "m", "when": np.datetime64("2026-01-01")}
    assert dict(root.meta) == {} and dict(inner["a"].meta) == {}
    other = gs.open(store_uri, path="/inner")
    assert other.meta["units"] == "m" and "nothing" not in other.meta
    with pytest.raises(KeyError):
        other.meta["nothing"]
    with pytest.raises(gs.errors.AccessError, match="r\\+"):
        other.meta["units"] = "km"
    del inner.meta["units"]
    assert "units" not in pickle.loads(pickle.dumps(other)).meta
    inner.meta.clear()
    assert len(inner.meta) == 0


def test_a_group_that_is_gone_is_told(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    gone = root.group("g")
    root.create("g", SCHEMA, overwrite=True)
    with pytest.raises(gs.errors.NotFoundError):
        gone.meta["x"] = 1
    assert "x" not in root["g"].meta


def test_a_group_at_a_version_is_as_it_was(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    inner = root.group("inner")
    inner.create("a", SCHEMA)[...] = 1
    inner.meta["units"] = "m"
    then = gs.open(store_uri).version
    inner["a"][...] = 2
    inner.meta["units"] = "km"
    inner.create("later", SCHEMA)
    with gs.transaction(store_uri) as tx:
        tx.remove("/inner/a")
    root.move("inner", "moved")
    past = gs.open(store_uri, version=then)
    for group in (past, pickle.loads(pickle.dumps(past))):
        assert list(group) == ["inner"] and len(group) == 1 and "moved" not in group
        below = group["inner"]
        assert list(below) == ["a"] and "later" not in below and below.meta["units"] == "m"
        assert (below["a"][...] == 1).all() and below["a"].version == then == below.version
        with pytest.raises(gs.errors.NotFoundError):
            below["later"]
        for write in (lambda g=below: g.create("b", SCHEMA), lambda g=below: g.group("b")):
            with pytest.raises(gs.errors.AccessError, match=rf"version {then}, which is the past"):
                write()
        with pytest.raises(gs.errors.AccessError):
            below.meta["units"] = "cm"
        with pytest.raises(gs.errors.AccessError):
            below.move("a", "b")
    assert list(past.refreshed()) == ["moved"]
    with pytest.raises(gs.errors.NotFoundError):
        past["inner"].refreshed()["a"]


def test_a_handle_means_the_group_and_not_its_path(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    inner = root.group("a").group("inner")
    array = inner.create("cells", SCHEMA)
    inner.meta["units"] = "m"
    old = pickle.dumps(inner)
    root.move("a", "/b")
    # Something else, of the same shape, where it was.
    other = root.group("a").group("inner")
    other.meta["units"] = "km"
    other.create("others", SCHEMA)
    array.refresh()
    assert (array.path, inner.refreshed().path) == ("/b/inner/cells", "/b/inner")
    assert list(inner) == ["cells"] and "others" not in inner and len(inner) == 1 and inner.meta["units"] == "m"
    assert inner["cells"].path == "/b/inner/cells"
    inner.meta["units"] = "cm"
    assert gs.open(store_uri, path="/b/inner").meta["units"] == "cm" and other.meta["units"] == "km"
    assert inner.create("more", SCHEMA).path == "/b/inner/more"
    assert inner.group("below").path == "/b/inner/below"
    inner.move("more", "further")
    assert list(inner) == ["below", "cells", "further"] and list(other) == ["others"]
    assert inner.path == "/b/inner" and [entry.path for entry in inner.children()] == [f"/b/inner/{n}" for n in inner]
    assert told(pickle.loads(old)) == told(inner)
    with gs.transaction(store_uri) as tx:
        tx.remove("/b/inner")
    for asked in (lambda: list(inner), lambda: inner["cells"], lambda: inner.create("x", SCHEMA), inner.refreshed):
        with pytest.raises(gs.errors.NotFoundError, match=r"/b/inner .* removed"):
            asked()
    with pytest.raises(gs.errors.NotFoundError):
        inner.meta["units"] = "m"
    assert list(other) == ["others"]


def test_history_of_a_group_is_that_of_its_store(store_uri: str) -> None:
    g = gs.group(store_uri, mode="a")
    g.create("a/b", SCHEMA)
    g.move("a/b", "c")
    then = gs.open(store_uri, path="/a", version=2)
    assert isinstance(then, gs.Group)
    del g["c"]
    told = [[operation["op"] for operation in version.operations] for version in g.history()]
    assert [version.version for version in g.history()] == [1, 2, 3, 4]
    assert [
        any(word in op for op in ops) for word, ops in zip(("create", "create", "move", "remove"), told, strict=True)
    ] == [True] * 4, told
    assert [version.version for version in then.history()] == [1, 2]
    assert g["a"].history() == g.history(), "of any group of the store"


@contextlib.contextmanager
def moved_at_each_look(root: gs.Group, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each time that a handle has looked where it lies, what it found is moved at once."""
    look = gs.Group._now
    mover = root.refreshed()

    def moving(group: gs.Group) -> Any:
        found = look(group)
        if group is not mover:
            there = "a" if "a" in [name for name, _ in look(mover).children()] else "b"
            gs.move(root.uri, f"/{there}", "/ab".replace(there, ""))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(gs.Group, "_now", moving)
        yield


QUESTIONS: dict[str, Callable[[gs.Group], Any]] = {
    "names": list,
    "number": len,
    "keys": lambda g: list(g.keys()),
    "values": lambda g: [child.path[2:] for child in g.values()],
    "items": lambda g: [(name, child.path[2:]) for name, child in g.items()],
    "children": lambda g: [entry.path[2:] for entry in g.children()],
    "walk": lambda g: [(entry.name, entry.path[2:], entry.kind) for entry in g.walk()],
    "a child": lambda g: (g["x"].path[2:], g["inner"].path[2:]),
    "a path below": lambda g: g["inner/deep/w"].path[2:],
    "what is there": lambda g: g.get("x") is not None and g.get("y") is None,
    "in": lambda g: ("x" in g, "inner/deep" in g, "inner/y" in g, "y" in g),
    "history": lambda g: len(g.history()) > 3,
    "metadata": lambda g: (g.meta["k"], list(g.meta.items()), list(g.meta.values())),
    "text": lambda g: "x (array)" in repr(g) and ">x<" in g._repr_html_(),
    "pickle": lambda g: list(pickle.loads(pickle.dumps(g))),
    "set metadata": lambda g: g.meta.update({"k": 2}),
    "create": lambda g: g.create("made", SCHEMA).path[2:],
    "create below": lambda g: g.create("more/made", SCHEMA).path[2:],
    "group": lambda g: (g.group("more").path[2:], g.group("inner").path[2:]),
    "move": lambda g: g.move("x", "moved") > 0,
    "remove": lambda g: g.remove("x") > 0,
}


@pytest.mark.parametrize("asked", QUESTIONS)
def test_each_question_is_of_one_moment(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moved between any two steps of a question, the group answers as if nobody had moved it."""
    outcomes = []
    for moving in (False, True):
        uri = f"mem://one-moment-{uuid.uuid4()}"
        root = gs.group(uri, mode="a")
        inner = root.group("a")
        inner.create("x", SCHEMA)
        inner.create("inner/deep/w", SCHEMA)
        inner.meta["k"] = 1
        with moved_at_each_look(root, monkeypatch) if moving else contextlib.nullcontext():
            answer = QUESTIONS[asked](inner)
        below = [(entry.path[2:], entry.kind) for entry in inner.walk()]
        outcomes.append((answer, below, dict(inner.meta), len(root)))
        gs.delete(uri)
    assert outcomes[0] == outcomes[1]


def test_a_pass_sees_a_commit_to_two_arrays_in_both_or_in_neither(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    root.create("a", SCHEMA)[...] = 1
    root.create("b", SCHEMA)[...] = 1
    seen = []
    for child in root.values():
        assert isinstance(child, gs.Array)
        seen.append(int(child[0]))
        with gs.transaction(store_uri) as tx:
            for name in "ab":
                found = tx[f"/{name}"]
                assert isinstance(found, gs.Array)
                found[...] = 2
    assert seen == [1, 1]


def test_a_pass_over_children_that_others_remove(store_uri: str) -> None:
    """It is over those that were there when it began, each as it was then; refreshed, they are as they are."""
    root = gs.group(store_uri, mode="a")
    for name in "abc":
        root.create(name, SCHEMA)[...] = 1
    for asked in (lambda: root.items(), lambda: enumerate(root.values())):
        seen, version = [], root.version
        for _, child in asked():
            assert isinstance(child, gs.Array)
            seen.append((child.path, int(child[0]), child.version))
            if child.path == "/c":
                child.refresh()
                assert (child.path, int(child[0])) == ("/d", 2)
            for name in list(root):
                if name == "b":
                    del root["b"]
                elif name == "c":
                    root["c"][...] = 2
                    root.move("c", "d")
        assert seen == [("/a", 1, version), ("/b", 1, version), ("/c", 1, version)]
        root.move("d", "c")
        root["c"][...] = 1
        root.create("b", SCHEMA)[...] = 1
