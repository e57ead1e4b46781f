"""Transactions, tags, vacuum, the past and copies of stores, at random: rules for the machines of
`test_store_machine`.
"""

import copy
from abc import abstractmethod
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from group_rules import NAMES, GroupRules, Store, change_cells, changed_places
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from places import kind_of
from tree_model import (
    SCHEMAS,
    Node,
    Refused,
    StoreModel,
    Tree,
    add_groups,
    children,
    copied,
    look,
    look_at_array,
    move,
    parents,
    put,
    remove,
    shown,
)

import gridstone as gs
from gridstone import errors

RANDOM = st.randoms(use_true_random=True)
TAGS = ["one", "zwei 2"]
STORES_MAX = 4
COPIED = "copy of version"
"""How the message of a copy begins."""


class VersionRules(GroupRules):
    """What the machine does to stores as a whole, and to several nodes in one commit."""

    @abstractmethod
    def new_store(self, r: Random) -> Store:
        """A place of any kind, with a key or without, where there is no store yet."""

    # Several changes, one commit.

    @rule(r=RANDOM, end=st.sampled_from(["commit", "commit", "raise", "abort"]))
    def transaction(self, r: Random, end: str) -> None:
        """Changes of all kinds are one version or none; inside they are seen at once, outside not before."""
        store, message = r.choice(self.stores), self.message(r)
        trial = copy.deepcopy(store.model.now)
        before = store.model.newest
        try:
            with gs.transaction(store.uri, message, context=store.context) as tx:
                for _ in range(r.randint(1, 4)):
                    self._staged(r, tx, trial)
                    _look_inside(r, tx, trial)
                assert store.open().version == before
                if end == "raise":
                    raise KeyError
                if end == "abort":
                    tx.abort()
        except KeyError:
            assert end == "raise"
        if end != "commit":
            assert store.open().version == before and tx.version is None
            return
        if tx.version == before:
            assert trial == store.model.now
            return
        store.follow(trial, message)
        assert tx.version == store.model.newest

    def _staged(self, r: Random, tx: gs.Transaction, trial: Tree) -> None:
        """One change in a transaction, and of the tree; or one that is refused and changes nothing."""
        kind, path = r.choice(["create", "group", "remove", "move", "write", "write", "meta"]), self.path(r, trial)
        before = copy.deepcopy(trial)
        if kind in ("write", "meta"):
            arrays = sorted(p for p, node in trial.items() if node.is_array)
            if not arrays:
                return
            path = r.choice(arrays)
            if kind == "write":
                change_cells(r, tx[path], trial[path])
            else:
                tx[path].meta["k"] = trial[path].meta["k"] = r.randint(0, 9)
            return
        if path == "/":
            return
        node, overwrite, target = Node(r.choice(sorted(SCHEMAS))), r.random() < 0.5, self.new_path(r, trial)
        steps: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            "create": (
                lambda: put(trial, path, node, overwrite=overwrite),
                lambda: tx.create(path, SCHEMAS[node.kind], overwrite=overwrite),
            ),
            "group": (lambda: add_groups(trial, [*parents(path), path]), lambda: tx.group(path)),
            "remove": (lambda: _remove_what_is_there(trial, path), lambda: tx.remove(path)),
            "move": (lambda: move(trial, path, target), lambda: tx.move(path, target)),
        }
        change, act = steps[kind]
        try:
            change()
        except Refused as refused:
            trial.clear()
            trial.update(before)
            with pytest.raises(refused.kinds):
                act()
            event("refused in a transaction", kind)
            return
        act()

    def any_array(self) -> bool:
        return any(node.is_array for store in self.stores for node in store.model.now.values())

    @precondition(any_array)
    @rule(
        r=RANDOM,
        other=st.sampled_from(["write it", "write it", "write another", "remove it", "move it", "group"]),
        isolation=st.sampled_from(["snapshot", "serializable"]),
    )
    def overlap(self, r: Random, other: str, isolation: str) -> None:
        """Another commit beside a transaction: both hold, or the transaction is told of the conflict."""
        store, path = self.array(r)
        number = store.model.now[path].number
        with_read = r.random() < 0.5
        tx = gs.transaction(store.uri, "late", isolation, store.context)
        staged = tx[path]
        if with_read:
            assert shown(store.model.now[path].kind, staged.read().to_numpy()) == store.model.now[path].cells
        change, mine = r.getrandbits(32), copy.deepcopy(store.model.now)
        change_cells(Random(change), staged, mine[path])
        touched = changed_places(Random(change))
        changed = self._meanwhile(r, store, path, other)
        lost = bool(touched & changed) if isolation == "snapshot" else bool(changed)
        conflict: bool | None = other == "remove it" or (lost and with_read)
        if isolation == "serializable" and other == "move it":
            conflict = None  # What lies at the path was looked up, which may count as read.
        try:
            version = tx.commit()
        except errors.ConflictError:
            assert conflict is not False, "there is no conflict"
            event("overlap", f"conflict: {other}, {isolation}")
            assert store.open().version == store.model.newest
            return
        assert not conflict, "the conflict was not seen"
        event("overlap", f"both: {other}, {isolation}")
        trial = copy.deepcopy(store.model.now)
        place = store.model.path_of(number)
        assert place is not None
        change_cells(Random(change), _Nothing(), trial[place])  # type: ignore[arg-type]
        store.follow(trial, "late", number)
        assert version == store.model.newest

    def _meanwhile(self, r: Random, store: Store, path: str, other: str) -> set[int]:
        """The other commit; the cells of the array at the path that it wrote or deleted."""
        trial = copy.deepcopy(store.model.now)
        arrays = sorted(p for p, node in trial.items() if node.is_array)
        target = path if other == "write it" else r.choice([p for p in arrays if p != path] or [path])
        if other.startswith("write"):
            change = r.getrandbits(32)
            change_cells(Random(change), store.open(target, mode="r+"), trial[target])
            store.follow(trial, None, trial[target].number)
            return changed_places(Random(change)) if target == path else set()
        free = next(f"/{a}/{b}{i}" for i in range(99) for a in NAMES for b in NAMES if f"/{a}/{b}{i}" not in trial)
        free = free if "/" + free.split("/")[1] not in trial else "/" + free.split("/")[2]
        if other == "remove it":
            remove(trial, path)
            with gs.transaction(store.uri, context=store.context) as tx:
                tx.remove(path)
        elif other == "move it":
            if free in trial:
                return set()
            move(trial, path, free)
            gs.move(store.uri, path, free, context=store.context)
        else:
            if free in trial:
                return set()
            add_groups(trial, [*parents(free), free])
            gs.group(store.uri, path=free, context=store.context, mode="a")
        store.follow(trial)
        return set()

    # Versions.

    @rule(r=RANDOM, name=st.sampled_from(TAGS), replace=st.booleans())
    def tag(self, r: Random, name: str, replace: bool) -> None:
        """A tag names a version that is there; a name in use is moved only if that is said."""
        store = r.choice(self.stores)
        model = store.model
        version = r.choice([None, *sorted(model.versions), model.newest + 1, model.oldest - 1])
        wanted = model.newest if version is None else version

        def call() -> int:
            return gs.tag(store.uri, name, version, replace=replace, context=store.context)

        if wanted not in model.versions:
            with pytest.raises((errors.NotFoundError, errors.SnapshotExpiredError, errors.InputError)):
                call()
        elif name in model.tags and not replace:
            with pytest.raises(errors.ExistsError):
                call()
        else:
            assert call() == wanted
            moved = model.tags.get(name) != wanted
            model.tags[name] = wanted
            if moved or store.open().version > model.newest:
                store.follow(model.now)
        assert store.open().tags == model.tags

    @rule(r=RANDOM, name=st.sampled_from(TAGS))
    def untag(self, r: Random, name: str) -> None:
        """A tag is taken away; one that is not there is told."""
        store = r.choice(self.stores)
        if name not in store.model.tags:
            with pytest.raises(errors.NotFoundError):
                gs.untag(store.uri, name, context=store.context)
            return
        assert gs.untag(store.uri, name, context=store.context) == store.model.tags.pop(name)
        store.follow(store.model.now)

    @rule(
        r=RANDOM,
        asked=st.sampled_from(["0s", "1h", 1, 1, 2, 4]),
        safety_age=st.sampled_from(["0s", "1d"]),
        dry_run=st.sampled_from([False, False, True]),
    )
    def vacuum(self, r: Random, asked: Any, safety_age: str, dry_run: bool) -> None:
        """Keeps what was asked for, what has a tag, and all behind it; the rest is told to have expired."""
        store = r.choice(self.stores)
        model, newest = store.model, store.model.newest
        options = {"keep": asked} if isinstance(asked, str) else {"versions": asked}
        target = store.open(r.choice(sorted(model.now)), mode="r+")
        done = target.vacuum(**options, safety_age=safety_age, dry_run=dry_run)
        # What newer writes hide is taken out first, in a version that changes nothing and stands in for the one before.
        hiding = bool(done.hidden) and not dry_run
        floor = newest + 1 if hiding and asked in ("0s", 1) else model.floor(asked)
        if hiding:
            model.commit(newest + 1)
            model.hiding.add(newest + 1)
        held = {(holder.tag, holder.version) for holder in done.held_by}
        tags = {(name, version) for name, version in model.tags.items() if version < floor}
        assert {holder for holder in held if holder[0] is not None} == tags
        # Readers of old versions hold them once their handle is a minute old.
        kept = model.settled(min([floor, *(version for _, version in held)]))
        assert (done.oldest_before, done.oldest, done.newest) == (model.oldest, kept, newest + hiding)
        event("vacuum", "dry" if dry_run else "held by a tag" if tags else "free")
        if dry_run:
            assert done.committed is None and store.open().version == newest
            return
        gone = [version for version in model.versions if version < kept]
        model.forget(kept)
        if done.committed is not None:
            assert done.committed == model.newest + 1
            model.commit(model.newest + 1)
            model.upkeep.add(model.newest)
        assert store.open().version == model.newest
        for version in r.sample(gone, min(2, len(gone))):
            with pytest.raises(errors.SnapshotExpiredError):
                store.open(version=version)

    @rule(r=RANDOM, how=st.sampled_from(["version", "tag", "timestamp", "array", "later"]))
    def look_back(self, r: Random, how: str) -> None:
        """The whole tree at any version that is kept, by its number, its tag or its time."""
        store = r.choice(self.stores)
        model = store.model
        version = r.choice(sorted(model.versions))
        if how == "later":
            with pytest.raises(errors.NotFoundError):
                store.open(version=model.newest + r.randint(1, 9))
            return
        if how == "tag" and model.tags:
            name = r.choice(sorted(model.tags))
            version = model.tags[name]
            look(store.open(version=name), model.versions[version])
            return
        tree = model.versions[version]
        arrays = sorted(path for path, node in tree.items() if node.is_array)
        if how in ("timestamp", "array") and arrays:
            path = r.choice(arrays)
            found = store.open(path, version=version)
            assert found.version == version and found.mode == "r"
            look_at_array(found, path, tree[path])
            if how == "timestamp":
                root = store.open(timestamp=found.timestamp)
                assert root.version == version
                look(root, tree)
            with pytest.raises(errors.AccessError):
                found.meta["k"] = 1
            return
        root = store.open(version=version)
        assert root.version == version
        look(root, tree)
        for write in (lambda: root.create("z", SCHEMAS["dense"]), lambda: root.group("z")):
            with pytest.raises(errors.AccessError, match="the past"):
                write()

    @precondition(any_array)
    @rule(r=RANDOM)
    def history(self, r: Random) -> None:
        """An array's history names every commit that changed it, with its message; times grow."""
        store, path = self.array(r)
        number, model = store.model.now[path].number, store.model
        found = store.open(path).history()
        changed = {v for v in model.versions if number in model.touched[v]}
        assert changed <= {v.version for v in found} <= set(model.versions)
        for one in found:
            message = model.messages[one.version]
            assert one.message == message or (message == COPIED and (one.message or "").startswith(COPIED))
        assert [v.timestamp for v in found] == sorted({v.timestamp for v in found})
        named = {(name, v) for name, v in model.tags.items() if v in {one.version for one in found}}
        assert {(name, v.version) for v in found for name in v.tags} == named

    # Copies.

    @rule(r=RANDOM, overwrite=st.booleans())
    def copy_version(self, r: Random, overwrite: bool) -> None:
        """One version of a node, from any store to any other, or within one: one commit there, of new nodes."""
        source, target = r.choice(self.stores), r.choice(self.stores)
        version = r.choice([None, *sorted(source.model.versions), *sorted(source.model.tags)])
        number = source.model.tags.get(version, version)  # type: ignore[call-overload, arg-type]
        tree = source.model.now if number is None else source.model.versions[number]
        path = self.path(r, tree)
        place = self.path(r, target.model.now) if overwrite else self.new_path(r, target.model.now)
        if place == "/" and path in tree and tree[path].is_array:
            return

        def change(trial: Tree) -> None:
            if source is target and (_within(place, path) or _within(path, place)):
                raise Refused(errors.InputError, errors.ExistsError, errors.NotFoundError)
            if path not in tree:
                raise Refused(errors.NotFoundError, errors.ExistsError)
            made = copied(tree, path)
            put(trial, place, made.pop(""), overwrite=overwrite)
            trial.update({place.rstrip("/") + p: node for p, node in made.items()})

        def act() -> Any:
            return gs.copy(
                source.uri,
                target.uri,
                path=path,
                target_path=place,
                version=version,
                overwrite=overwrite,
                context=source.context,
                target_context=target.context,
            )

        found = self.attempt(target, change, act, message=COPIED)
        if found is not None:
            between = f"{kind_of(source.uri)} to {kind_of(target.uri)}"
            event("copy", between if source is not target else "within a store")
            assert found.path == place and found.version == target.model.newest
        assert source.open().version == source.model.newest

    @rule(r=RANDOM, upto=st.booleans())
    def copy_history(self, r: Random, upto: bool) -> None:
        """A store with all its versions, to a place where there is none; it goes on as a store of its own."""
        if len(self.stores) >= STORES_MAX:
            return
        source, target = r.choice(self.stores), self.new_store(r)
        version = r.choice(sorted(source.model.versions)) if upto else None
        contexts = {"context": source.context, "target_context": target.context}
        gs.copy(source.uri, target.uri, version=version, history=True, **contexts)
        target.model = _until(source.model, version or source.model.newest)
        self.stores.append(target)
        event("history", f"{kind_of(source.uri)} to {kind_of(target.uri)}")
        assert target.open().tags == target.model.tags
        for number, tree in target.model.versions.items():
            look(target.open(version=number), tree)
        again = gs.copy(source.uri, target.uri, version=version, history=True, **contexts)
        assert again.stats == {"versions_copied": 0, "objects_copied": 0, "bytes_copied": 0}

    @precondition(any_array)
    @rule(r=RANDOM)
    def copy_out(self, r: Random) -> None:
        """An array at a version as a store of its own, which is gone again when it is deleted."""
        source, path = self.array(r)
        versions = [v for v, tree in source.model.versions.items() if path in tree and tree[path].is_array]
        version, target = r.choice(versions), self.new_store(r)
        found = gs.copy(
            source.uri, target.uri, path=path, version=version, context=source.context, target_context=target.context
        )
        look_at_array(found, "/", source.model.versions[version][path])
        assert found.version == 1 and (found.key_id is not None) == target.sealed
        assert not found.verify()["damage"]
        gs.delete(target.uri, context=target.context)
        assert not gs.exists(target.uri, context=target.context)
        with pytest.raises(errors.NotFoundError):
            target.open()

    @rule(r=RANDOM)
    def delete_store(self, r: Random) -> None:
        """A store that is deleted is gone, and its place is free."""
        if len(self.stores) < 2 or r.random() < 0.5:
            return
        store = r.choice(self.stores)
        gs.delete(store.uri, context=store.context)
        assert not gs.exists(store.uri, context=store.context)
        self.stores.remove(store)
        self.handles = [held for held in self.handles if held[0] is not store]
        with pytest.raises(errors.NotFoundError):
            gs.delete(store.uri, context=store.context)

    @rule(r=RANDOM)
    def wrong_key(self, r: Random) -> None:
        """A sealed store is opened with its key alone, one that is not sealed without any."""
        store = r.choice(self.stores)
        assert (store.open().key_id is not None) == store.sealed
        others = [gs.Context(key="77" * 32, threads=1), *([gs.Context(threads=1)] if store.sealed else [])]
        for context in others:
            with pytest.raises(errors.AccessError):
                gs.open(store.uri, context=context)
        assert not store.open(mode="r+").verify()["damage"]


class _Nothing:
    """Takes changes that are for the model alone."""

    def write(self, *given: Any, **options: Any) -> None: ...

    write_cells = delete = write


def _within(path: str, other: str) -> bool:
    return path == other or other == "/" or path.startswith(other + "/")


def _remove_what_is_there(tree: Tree, path: str) -> None:
    if path not in tree:
        raise Refused(errors.NotFoundError)
    remove(tree, path)


def _until(model: StoreModel, version: int) -> StoreModel:
    """The model of a copy with the history up to a version."""
    made = copy.deepcopy(model)
    made.versions = {v: tree for v, tree in made.versions.items() if v <= version}
    made.upkeep, made.hiding = ({v for v in some if v <= version} for some in (made.upkeep, made.hiding))
    made.now, made.tags = copy.deepcopy(made.versions[version]), dict(made.tagged[version])
    return made


def _look_inside(r: Random, tx: gs.Transaction, trial: Tree) -> None:
    """What a transaction shows of what it has staged."""
    path = r.choice(sorted(trial))
    assert path in tx and "/nothing" not in tx
    if trial[path].is_array:
        look_at_array(tx[path], path, trial[path])
        return
    lead = path.rstrip("/")
    expected = [(n, f"{lead}/{n}", "array" if c.is_array else "group") for n, c in children(trial, path).items()]
    assert [tuple(entry) for entry in tx.ls(path)] == expected
