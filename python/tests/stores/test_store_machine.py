"""The whole life of stores, at random, beside trees in plain Python: groups and arrays that are made, moved, removed,
copied from store to store, tagged and forgotten; on disk and in memory, sealed and not.

HYPOTHESIS_PROFILE=deep runs very many more cases.
"""

import copy
import os
from random import Random
from typing import Any
from unittest import TestCase

import pytest
from buckets import KINDS
from gate import lives
from group_rules import Store
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant
from places import Anywhere
from tree_model import SCHEMAS, Node, look, parents, put
from version_rules import VersionRules

import gridstone as gs

RANDOM = st.randoms(use_true_random=True)
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
KEY = "09" * 32


class Stores(VersionRules, RuleBasedStateMachine):
    """Some stores; the first one is of the kind that the machine is for."""

    first: str

    def __init__(self) -> None:
        super().__init__()
        self.places = Anywhere()
        self.stores: list[Store] = []
        self.handles: list[tuple[Store, int, Any]] = []
        self.seen: dict[str, int] = {}

    @initialize(r=RANDOM, sealed=st.booleans())
    def begin(self, r: Random, sealed: bool) -> None:
        """One store to begin with, and often another of any kind."""
        self.stores = [self.new_store(r, self.first, sealed)]
        if r.random() < 0.7:
            self.stores.append(self.new_store(r))
        for store in self.stores:
            assert not gs.exists(store.uri, context=store.context)
            assert gs.group(store.uri, context=store.context, mode="a").version == 1
            store.model.now = {"/": Node("group")}
            store.model.commit(1)
            for _ in range(r.choice([0, 3, 6])):
                self._begin_with(r, store)

    def _begin_with(self, r: Random, store: Store) -> None:
        """An array, and groups above it, from the beginning."""
        trial, node = copy.deepcopy(store.model.now), Node(r.choice(sorted(SCHEMAS)))
        path = self.new_path(r, trial)
        if path not in trial and not any(trial[above].is_array for above in parents(path) if above in trial):
            put(trial, path, node)
            gs.create(store.uri, SCHEMAS[node.kind], path=path, context=store.context)
            store.follow(trial, None, node.number)

    def new_store(self, r: Random, kind: str | None = None, sealed: bool | None = None) -> Store:
        """A place where there is no store yet."""
        sealed = r.random() < 0.4 if sealed is None else sealed
        durability = "full" if r.random() < 0.1 else "close"
        context = gs.Context("64MiB", r.choice([1, 2]), durability=durability, key=KEY if sealed else None)
        return Store(self.places(kind or r.choice(KINDS)), context, sealed)

    def teardown(self) -> None:
        try:
            damage = [gs.verify(store.uri, context=store.context)["damage"] for store in self.stores]
            if any(damage):
                pytest.fail(f"damage: {damage}")
        finally:
            self.places.clear()

    @invariant()
    def shows_what_was_done(self) -> None:
        """After every step each store that has changed is looked at as a whole."""
        for store in self.stores:
            if self.seen.get(store.uri) != store.model.newest:
                self.seen[store.uri] = store.model.newest
                root = store.open()
                assert (root.version, root.tags) == (store.model.newest, store.model.tags)
                look(root, store.model.now)


class OnDisk(Stores):
    """Begins in a folder."""

    first = "local"


class InMemory(Stores):
    """Begins in memory."""

    first = "memory"


def _lives(machine: type[Stores], number: int) -> type[TestCase]:
    case = machine.TestCase
    case.settings = settings(
        max_examples=lives(number),
        stateful_step_count=60 if DEEP else 30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    return case


for _name, _machine in (("TestOnDisk", OnDisk), ("TestInMemory", InMemory)):
    # Very many lives come in parts, which can be run again by themselves and end before the guard against hangs does.
    for _part in range(25 if DEEP else 1):
        _copy = type(f"{_machine.__name__}Part{_part}", (_machine,), {})
        globals()[f"{_name}Part{_part}" if DEEP else _name] = _lives(_copy, 200)
