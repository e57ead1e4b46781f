"""Groups and arrays of a store, at random: rules for the machines of `test_store_machine`."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tree_model import (
    SCHEMAS,
    SIZE,
    Node,
    Refused,
    StoreModel,
    Tree,
    add_groups,
    children,
    look_at_array,
    look_at_group,
    move,
    parents,
    put,
    remove,
)

import gridstone as gs
from gridstone import errors

RANDOM = st.randoms(use_true_random=True)
NAMES = ["a", "b", "é c"]
KEYS = ["k", "unités"]
VALUES = [None, 1, 2.5, "text", b"\xff", [1, [2]], {"a": {}}, np.datetime64("2026-01-01")]


@dataclass
class Store:
    """A store, how it is opened, and what it should hold."""

    uri: str
    context: gs.Context
    sealed: bool
    model: StoreModel = field(default_factory=StoreModel)

    def open(self, path: str = "/", **options: Any) -> Any:
        """What lies at a path."""
        return gs.open(self.uri, path=path, context=self.context, **options)

    def follow(self, trial: Tree, message: str | None = None, *touched: int) -> None:
        """The model follows a commit that made this of the store."""
        self.model.now = trial
        self.model.commit(self.model.newest + 1, message, set(touched))
        assert self.open().version == self.model.newest


class GroupRules:
    """What the machine does to groups and arrays, one commit each."""

    stores: list[Store]
    handles: list[tuple[Store, int, Any]]

    # What rules share.

    def path(self, r: Random, tree: Tree, *, kind: str | None = None) -> str:
        """A path: of something that is there (of a kind), or of nothing, beside or below it."""
        there = [p for p, node in tree.items() if kind is None or (node.kind == "group") == (kind == "group")]
        if there and r.random() < 0.8:
            return r.choice(sorted(there))
        return self.new_path(r, tree)

    def new_path(self, r: Random, tree: Tree) -> str:
        """A path in something that is there; perhaps not free, perhaps below an array."""
        groups = [p for p, node in tree.items() if not node.is_array or r.random() < 0.1]
        names = r.choices(NAMES, k=r.choice([1, 1, 1, 2]))
        return r.choice(sorted(groups) or ["/"]).rstrip("/") + "/" + "/".join(names)

    def attempt(
        self,
        store: Store,
        change: Callable[[Tree], Any],
        act: Callable[[], Any],
        *,
        message: str | None = None,
        commits: bool = True,
        touched: tuple[int, ...] = (),
    ) -> Any:
        """Does something to a store and to the model; where the model refuses the store must, and stay as it is."""
        trial = copy.deepcopy(store.model.now)
        try:
            change(trial)
        except Refused as refused:
            with pytest.raises(refused.kinds):
                act()
                pytest.fail("was not refused")
            event("refused", act.__qualname__.split(".")[1])
            assert store.open().version == store.model.newest
            return None
        found = act()
        if commits:
            store.follow(trial, message, *touched)
        return found

    def look_at_groups(self, store: Store, handles: list[gs.Group]) -> None:
        """Handles through which something was done, or refused, show what there is now."""
        for handle in handles:
            look_at_group(handle, store.model.now, handle.path, store.model.newest)

    def message(self, r: Random) -> str | None:
        return r.choice([None, "why", "naïve"])

    # What is there.

    @rule(r=RANDOM, how=st.sampled_from(["function", "method"]))
    def create_group(self, r: Random, how: str) -> None:
        """`gs.group` and `Group.group`: there afterwards, with all groups above, whether or not it was there before."""
        store = r.choice(self.stores)
        path = self.path(r, store.model.now)
        groups = [*parents(path), path]
        used: list[gs.Group] = []

        def act() -> Any:
            if how == "method" and path != "/":
                above = store.open(r.choice([p for p in parents(path) if p in store.model.now]), mode="r+")
                if isinstance(above, gs.Group):
                    used.append(above)
                    return above.group(path[len(above.path.rstrip("/")) + 1 :])
            return gs.group(store.uri, path=path, context=store.context, mode="a")

        found = self.attempt(
            store, lambda tree: add_groups(tree, groups), act, commits=not set(groups) <= set(store.model.now)
        )
        assert found is None or (found.path == path and isinstance(found, gs.Group))
        self.look_at_groups(store, [*used, *([] if found is None else [found])])

    @rule(r=RANDOM, kind=st.sampled_from(sorted(SCHEMAS)), overwrite=st.booleans())
    def create_array(self, r: Random, kind: str, overwrite: bool) -> None:
        """`gs.create` and `Group.create`; what is in the way is replaced only if that is said."""
        store = r.choice(self.stores)
        known = overwrite or r.random() < 0.3
        path = self.path(r, store.model.now) if known else self.new_path(r, store.model.now)
        if path == "/":
            return
        node = Node(kind)
        used: list[gs.Group] = []

        def act() -> Any:
            if r.random() < 0.5:
                group = store.open(mode="r+")
                used.append(group)
                return group.create(path[1:], SCHEMAS[kind], overwrite=overwrite)
            return gs.create(store.uri, SCHEMAS[kind], path=path, overwrite=overwrite, context=store.context)

        found = self.attempt(
            store, lambda tree: put(tree, path, node, overwrite=overwrite), act, touched=(node.number,)
        )
        assert found is None or (found.path == path and found.mode == "r+" and found.version == store.model.newest)
        self.look_at_groups(store, used)

    def any_array(self) -> bool:
        return any(node.is_array for store in self.stores for node in store.model.now.values())

    def array(self, r: Random) -> tuple[Store, str]:
        """An array of some store."""
        found = [(s, p) for s in self.stores for p, node in sorted(s.model.now.items()) if node.is_array]
        return r.choice(found)

    @precondition(any_array)
    @rule(r=RANDOM)
    def write(self, r: Random) -> None:
        """Boxes, cells and deletes in one of the arrays."""
        store, path = self.array(r)
        trial, message = copy.deepcopy(store.model.now), self.message(r)
        target = store.open(path, mode="r+")
        if r.random() < 0.3:
            above = store.open(path.rpartition("/")[0] or "/", mode="r+")
            target = above[path.rpartition("/")[2]]
        version = change_cells(r, target, trial[path], message=message)
        store.follow(trial, message, trial[path].number)
        assert version == store.model.newest == target.version
        look_at_array(target, path, trial[path])

    @precondition(any_array)
    @rule(r=RANDOM, strategy=st.sampled_from(["all", "tiered", "manifest"]))
    def merge(self, r: Random, strategy: str) -> None:
        """`consolidate` of one array changes nothing that any of them shows."""
        store, path = self.array(r)
        target = store.open(path, mode="r+")
        before = _fragments_of(target)
        target.consolidate(strategy)
        while store.model.newest < target.version:
            version = store.model.newest + 1
            store.model.commit(version)
            after = _fragments_of(store.open(path, version=version))
            if after < before:
                store.model.hiding.add(version)  # Fragments went and none came: it stands in for the version before.
            before = after
        look_at_array(target, path, store.model.now[path])

    @rule(r=RANDOM, key=st.sampled_from(KEYS), remove=st.booleans())
    def change_metadata(self, r: Random, key: str, remove: bool) -> None:
        """Metadata of groups and arrays."""
        store = r.choice(self.stores)
        path = r.choice(sorted(store.model.now))
        trial = copy.deepcopy(store.model.now)
        meta, target = trial[path].meta, store.open(path, mode="r+").meta
        if remove and key not in meta:
            with pytest.raises(KeyError):
                del target[key]
            return
        if remove:
            del target[key], meta[key]
        else:
            target[key] = meta[key] = r.choice(VALUES)
        store.follow(trial, None, *([trial[path].number] if trial[path].is_array else []))
        assert dict(target) == meta

    @rule(r=RANDOM, how=st.sampled_from(["function", "method", "transaction"]))
    def move_node(self, r: Random, how: str) -> None:
        """Moves of arrays and groups; what is in the way, or within itself, is refused."""
        store = r.choice(self.stores)
        path, message = self.path(r, store.model.now), self.message(r)
        target = self.path(r, store.model.now) if r.random() < 0.2 else self.new_path(r, store.model.now)
        used: list[gs.Group] = []

        def act() -> Any:
            if how == "transaction":
                with gs.transaction(store.uri, message, context=store.context) as tx:
                    tx.move(path, target)
            elif how == "method" and path != "/":
                above = r.choice([p for p in parents(path) if p in store.model.now])
                group = store.open(above, mode="r+")
                if isinstance(group, gs.Group):
                    used.append(group)
                    group.move(path[len(above.rstrip("/")) + 1 :], target, message=message)
                    return
                gs.move(store.uri, path, target, message=message, context=store.context)
            else:
                gs.move(store.uri, path, target, message=message, context=store.context)

        self.attempt(store, lambda tree: move(tree, path, target), act, message=message)
        self.look_at_groups(store, used)

    @rule(r=RANDOM)
    def remove_node(self, r: Random) -> None:
        """`tx.remove` takes a node away with all below it; handles of it are told."""
        store = r.choice(self.stores)
        path = self.path(r, store.model.now)
        if path == "/" or r.random() < 0.4:
            return

        def change(tree: Tree) -> None:
            if path not in tree:
                raise Refused(errors.NotFoundError)
            remove(tree, path)

        def act() -> None:
            with gs.transaction(store.uri, context=store.context) as tx:
                tx.remove(path)

        self.attempt(store, change, act)

    @rule(r=RANDOM)
    def list_a_place(self, r: Random) -> None:
        """`gs.ls`, `in`, `open` and `exists` of what is there and what is not."""
        store = r.choice(self.stores)
        tree = store.model.now
        path = self.path(r, tree)
        assert gs.exists(store.uri, context=store.context)
        if path not in tree:
            for asked in (gs.ls, gs.open):
                with pytest.raises(errors.NotFoundError):
                    asked(store.uri, path=path, context=store.context)
            above, _, name = path.rpartition("/")
            if above in tree and not tree[above].is_array:
                group = store.open(above)
                assert name not in group and group.get(name) is None
                with pytest.raises(errors.NotFoundError) as caught:
                    group[name]
                assert isinstance(caught.value, KeyError)
            return
        listed = [(e.name, e.path, e.kind) for e in gs.ls(store.uri, path=path, context=store.context)]
        if tree[path].is_array:
            assert listed == [(path.rpartition("/")[2], path, "array")]
            with pytest.raises(errors.InputError):
                gs.group(store.uri, path=path, context=store.context, mode="a")
            return
        lead = path.rstrip("/")
        found = children(tree, path)
        assert listed == [(n, f"{lead}/{n}", "array" if c.is_array else "group") for n, c in found.items()]
        assert all(name in store.open(path) for name in found)
        look_at_group(store.open(path), tree, path, store.model.newest)

    # Handles.

    @rule(r=RANDOM)
    def hold(self, r: Random) -> None:
        """Keeps a handle of something, for later."""
        store = r.choice(self.stores)
        path = r.choice(sorted(store.model.now))
        self.handles = [*self.handles[-5:], (store, store.model.now[path].number, store.open(path, mode="r+"))]

    @precondition(lambda self: self.handles)
    @rule(r=RANDOM)
    def use_handle(self, r: Random) -> None:
        """A handle means what it was opened for, wherever that was moved; what was removed is told."""
        store, number, handle = r.choice(self.handles)
        self._move_or_remove(r, store, number)
        path = store.model.path_of(number)
        if path is None:
            event("handle", "gone")
            with pytest.raises(errors.NotFoundError):
                handle.refresh()
            if isinstance(handle, gs.Group):
                assert "(removed)" in repr(handle) and "(removed)" in handle._repr_html_()
                with pytest.raises(errors.NotFoundError):
                    handle.children()
            return
        if not store.sealed and r.random() < 0.2:
            # Where it has moved, its version tells which array was meant.
            if isinstance(handle, gs.Array) and handle.version < store.model.oldest and handle.path != path:
                with pytest.raises(errors.GridstoneError):
                    pickle.loads(pickle.dumps(handle))
                return
            handle = pickle.loads(pickle.dumps(handle))
        node = store.model.now[path]
        if isinstance(handle, gs.Group):
            event("handle", "of a group")
            assert handle.refreshed().path == path and handle.mode == "r+"
            look_at_group(handle, store.model.now, path, store.model.newest)
            return
        event("handle", "moved" if handle.path != path else "there")
        assert handle.refresh() == store.model.newest
        look_at_array(handle, path, node)
        trial = copy.deepcopy(store.model.now)
        change_cells(r, handle, trial[path])
        store.follow(trial, None, number)
        look_at_array(handle, path, trial[path])

    def _move_or_remove(self, r: Random, store: Store, number: int) -> None:
        """What a handle means goes elsewhere, perhaps with something else in its place, or away."""
        trial, path = copy.deepcopy(store.model.now), store.model.path_of(number)
        if path in (None, "/") or r.random() < 0.4:
            return
        free = next(f"/{name}{i}" for i in range(99) for name in NAMES if f"/{name}{i}" not in trial)
        if r.random() < 0.2:
            remove(trial, path)
            with gs.transaction(store.uri, context=store.context) as tx:
                tx.remove(path)
            store.follow(trial)
            return
        move(trial, path, free)
        gs.move(store.uri, path, free, context=store.context)
        store.follow(trial)
        if r.random() < 0.5:
            node = Node("dense")
            put(trial, path, node)
            gs.create(store.uri, SCHEMAS["dense"], path=path, context=store.context)
            store.follow(trial, None, node.number)


def _fragments_of(array: gs.Array) -> set[str]:
    """The ids of an array's fragments."""
    return set(array.fragments["id"].to_pylist())


def _drawn_change(r: Random) -> tuple[str, list[int]]:
    kind = r.choice(["box", "cells", "cells", "delete", "delete box"])
    places = sorted(r.sample(range(SIZE), r.choice([1, 3, SIZE])))
    return kind, list(range(places[0], places[-1] + 1)) if "box" in kind else places


def changed_places(r: Random) -> set[int]:
    """The cells that a change of the same randomness writes or deletes."""
    return set(_drawn_change(r)[1])


def change_cells(r: Random, target: gs.Array, node: Node, **options: Any) -> Any:
    """One change of an array and of its node; what the call returned."""
    kind, places = _drawn_change(r)
    if kind == "delete":
        for x in places:
            node.cells.pop(x, None)
        return target.delete(coords={"x": places}, **options)
    if kind == "delete box":
        for x in places:
            node.cells.pop(x, None)
        return target.delete({"x": (places[0], places[-1])}, **options)
    numbers = [r.randint(1, 999) for _ in places]
    texts = [r.choice([None, "", "x", "ü" * 40]) for _ in places]
    node.cells |= dict(zip(places, zip(numbers, texts, strict=True), strict=True))
    values = {
        "v": np.array(numbers),
        "s": np.ma.MaskedArray([t or "" for t in texts], [t is None for t in texts], object),
    }
    if kind == "box" and node.kind == "dense":
        return target.write(values, {"x": (places[0], places[-1])}, **options)
    return target.write_cells({"x": places}, values, **options)
