"""Tags, vacuum and copies in the life of an array: rules for the machine of `test_state_machine`."""

from random import Random
from typing import Any

import pytest
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import rule
from model import Model, State
from places import Anywhere, kind_of

import gridstone as gs
from gridstone import errors

RANDOM = st.randoms(use_true_random=True)
TAGS = ["kept", "été"]


class KeepingRules:
    """What the machine keeps, forgets, and copies to other stores, where its life may go on."""

    a: gs.Array
    reader: gs.Array
    uri: str
    key: str | None
    places: Anywhere
    kinds: tuple[str, ...]
    model: Model
    schema: gs.Schema
    second: list[int]
    seconds: dict[int, list[int]]
    unlisted: set[int]
    tags: dict[str, int]

    def _passed(self, version: int) -> None:
        """The model follows a commit that touched no array."""
        self.model.commit(version)
        self.unlisted.add(version)
        assert self.a.refresh() == version  # type: ignore[attr-defined]

    @rule(r=RANDOM, name=st.sampled_from(TAGS), away=st.booleans())
    def tag(self, r: Random, name: str, away: bool) -> None:
        """Names for versions; each opens what it names."""
        if away and name in self.tags:
            assert gs.untag(self.uri, name, context=self.a.context) == self.tags.pop(name)
        else:
            version = r.choice(sorted(self.model.versions))
            if self.tags.get(name) == version:
                return
            assert gs.tag(self.uri, name, version, replace=True, context=self.a.context) == version
            self.tags[name] = version
        self._passed(self.model.newest + 1)
        assert self.a.tags == self.tags
        for name, version in self.tags.items():
            old = self.a.at(version=name)
            assert old.version == version
            self.look(old, self.model.versions[version], r)  # type: ignore[attr-defined]

    @rule(r=RANDOM, versions=st.sampled_from([1, 2, 5]), age=st.sampled_from(["0s", "1d"]))
    def vacuum(self, r: Random, versions: int, age: str) -> None:
        """What was forgotten is told; all that is kept, from the oldest tag on, is as it was."""
        seen = self.reader.version
        done = self.a.vacuum(versions=versions, safety_age=age)
        if done.hidden:
            # Fragments of this array or of the second one: it may be in the array's history.
            self.model.commit(done.newest)
            if done.newest not in {version.version for version in self.a.history()}:
                self.unlisted.add(done.newest)
        assert done.oldest <= min([self.model.newest, *self.tags.values()])
        assert done.oldest_before <= min(self.model.versions)  # The second array was there before the first.
        event("vacuum", "forgot" if done.versions else "nothing to forget")
        gone = [version for version in self.model.versions if version < done.oldest]
        for version in gone:
            del self.model.versions[version], self.model.messages[version]
        if done.committed is not None:
            self._passed(done.committed)
        for version in r.sample(gone, min(1, len(gone))):
            with pytest.raises(errors.SnapshotExpiredError):
                self.a.at(version=version)
        version = r.choice(sorted(self.model.versions))
        self.look(self.a.at(version=version), self.model.versions[version], r)  # type: ignore[attr-defined]
        assert self.reader.version == seen
        if seen < done.oldest:
            self.reader.refresh()

    # Copies.

    def _place(self, r: Random) -> tuple[str, str | None]:
        """A place for a store of one of the machine's kinds, and a key or none."""
        return self.places(r.choice(self.kinds)), r.choice([None, "5a" * 32, "a5" * 32])

    @rule(r=RANDOM)
    def copy_a_version(self, r: Random) -> None:
        """One version in another store, of any kind and under any key: its cells, schema and metadata."""
        version = r.choice(sorted(self.model.versions))
        state: State = self.model.versions[version]
        uri, key = self._place(r)
        context = gs.Context(r.choice(["8MiB", "1GiB"]), 1, durability="close", key=key)
        named = [name for name, v in self.tags.items() if v == version]
        options: dict[str, Any] = {"context": self.a.context, "target_context": context}
        made = gs.copy(self.uri, uri, path="/main", target_path="/x", version=(named or [version])[0], **options)
        try:
            assert isinstance(made, gs.Array) and made.path == "/x" and (made.key_id is not None) == (key is not None)
            assert made.schema == self.model.shapes.get(state.shape, (self.schema,))[0]
            assert dict(made.meta) == state.meta and not made.verify()["damage"]
            for _ in range(3):
                self.look(made, state, r)  # type: ignore[attr-defined]
            event("copy", f"{kind_of(self.uri)} to {kind_of(uri)}")
        finally:
            gs.delete(uri, context=context)

    @rule(r=RANDOM)
    def move_to_a_copy(self, r: Random) -> None:
        """The store with all its versions is copied to another place, and life goes on there."""
        uri, self.key = self._place(r)
        old, old_context = self.uri, self.a.context
        context = self.context(r)  # type: ignore[attr-defined]
        gs.copy(old, uri, history=True, context=old_context, target_context=context)
        gs.delete(old, context=old_context)
        self.uri = uri
        self.a = gs.open(uri, path="/main", mode="r+", context=context)  # type: ignore[assignment]
        self.reader = gs.open(uri, path="/main", context=context)  # type: ignore[assignment]
        assert self.a.version == self.model.newest and self.a.tags == self.tags
        event("history", f"{kind_of(old)} to {kind_of(uri)}")
        for version in r.sample(sorted(self.model.versions), min(3, len(self.model.versions))):
            found = self.a.at(version=version)
            assert dict(found.meta) == self.model.versions[version].meta
            self.look(found, self.model.versions[version], r)  # type: ignore[attr-defined]
