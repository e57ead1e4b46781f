"""What else happens to a labelled array: handles that lag, transactions, copies, merges, versions that go.

Rules for the machine of `test_label_machine`.
"""

import pickle
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import rule
from label_looks import look, look_from_outside
from label_model import Listed, Refused, State
from label_rules import RANDOM, LabelRules
from places import Anywhere

import gridstone as gs
from gridstone import errors


class Failed(Exception):
    """A transaction is given up."""


class LifeRules(LabelRules):
    """`late` is a second handle, which follows in some rules, and by what it commits."""

    late: gs.Array
    places: Anywhere
    uri: str
    context: gs.Context
    key: str | None

    @property
    def seen(self) -> State:
        """What the second handle shows."""
        return self.states[self.late.version]

    # A handle that lags.

    @rule(r=RANDOM)
    def late_looks(self, r: Random) -> None:
        """It shows its version, and the newest one once it follows."""
        look(self.late, self.seen, r)
        self.late.refresh()
        assert self.late.version == self.newest
        look(self.late, self.seen, r)

    @rule(r=RANDOM)
    def late_appends(self, r: Random) -> None:
        """A block through a handle that lags lies behind the newest end; labels and sides have to fit what is there."""
        before = self.seen
        if [column.name for column in before.columns] != [column.name for column in self.now.columns]:
            self.late.refresh()  # A block that is made anew has no values for an attribute of another name.
            return
        call, change = self.stage_append(r, self.late, before)
        event(f"late append {'lags' if self.late.version < self.newest else 'has seen all'}")
        self.attempt(call, self._as_seen(change))

    def _as_seen(self, change: Callable[[State], Any]) -> Callable[[State], Any]:
        """A change by the names that the second handle knows. What that shows refuses it, or what is there now."""
        before = self.seen

        def made(trial: State) -> Any:
            change(before.copy())
            names = [part.name for part in trial.parts]
            for part, seen in zip(trial.parts, before.parts, strict=True):
                part.name = seen.name
            changed = change(trial)
            for part, name in zip(trial.parts, names, strict=True):
                part.name = name
            return changed

        return made

    @rule(r=RANDOM, by_positions=st.booleans())
    def late_writes(self, r: Random, by_positions: bool) -> None:
        """Positions, ends and names are those of the version that the handle shows."""
        if by_positions:
            self.attempt(*self._staged_as_seen(self.stage_assign, r))
        elif self.has_room():
            self.attempt(*self._staged_as_seen(self.stage_box, r))

    def _staged_as_seen(self, stage: Callable[..., Any], r: Random) -> tuple[Callable[[], Any], Callable[[State], Any]]:
        call, change = stage(r, self.late, self.seen)
        return call, self._as_seen(change)

    @rule(r=RANDOM)
    def late_alters(self, r: Random) -> None:
        """Labels through a handle that lags: a conflict if the schema changed, or a list has not all positions."""
        before = self.seen
        call, change = self.stage_alter(r, self.late, before)

        def judged(trial: State) -> bool:
            mine = before.copy()
            kept = [axis.labels for axis in mine.axes]
            if change(mine) is False:
                return False
            relabelled = [
                (old, new, axis)
                for old, new, axis, labels in zip(before.axes, mine.axes, trial.axes, kept, strict=True)
                if new.labels is not labels
            ]
            if trial.schemas != before.schemas or any(
                isinstance(new.labels, Listed) and (old.low, old.high) != (axis.low, axis.high)
                for old, new, axis in relabelled
            ):
                raise Refused(errors.ConflictError)
            for _, new, axis in relabelled:
                axis.labels = new.labels
            for one, other in zip(trial.parts, mine.parts, strict=True):
                one.name = other.name
            trial.schemas = mine.schemas
            return True

        mine = before.copy()
        with suppress(Refused):
            change(mine)
        if any(isinstance(axis.labels, Listed) and not axis.labels.is_settled for axis in mine.axes):
            self.late.refresh()  # It would have to be asked whether these are at steps.
            return
        self.attempt(call, judged)

    # Transactions.

    @rule(r=RANDOM, end=st.sampled_from(["commit", "commit", "raise", "conflict"]))
    def transaction(self, r: Random, end: str) -> None:
        """An append and a change of labels are one version or none; another append that came first is a conflict."""
        trial, axes = self.now.copy(), []
        other: State | None = None
        try:
            with gs.transaction(self.uri, context=self.context) as tx:
                staged = tx["/"]
                stages = [self.stage_append, self.stage_alter, self.stage_box, self.stage_append]
                for stage in r.sample(stages, r.randint(1, 3)):
                    before = trial
                    trial = self._staged(r, staged, trial, stage)
                    if stage == self.stage_append:
                        axes += self._appended(before, trial)
                assert self.a.version == self.newest
                if end == "raise":
                    raise Failed
                if end == "conflict" and axes:
                    other = self._append_meanwhile(r, r.choice(axes))
        except Failed:
            assert self.a.refresh() == self.newest
            return
        except errors.ConflictError:
            assert other is not None
            event("transaction", "conflict")
            self.now = other
            self.followed(self.newest + 1)
            return
        assert other is None, "two appends saw the same end"
        if tx.version is not None and tx.version > self.newest:
            self.now = trial
            self.followed(tx.version)

    def _appended(self, before: State, after: State) -> list[int]:
        """The axis that a block was appended along where others see the end, too."""
        sides = zip(self.now.axes, before.axes, after.axes, strict=True)
        return [
            place
            for place, (there, old, new) in enumerate(sides)
            if (there.low, there.high) == (old.low, old.high) and old.size != new.size
        ]

    def _staged(self, r: Random, staged: gs.Array, trial: State, stage: Callable[..., Any]) -> State:
        """One change in a transaction, which sees it at once, or sees it refused."""
        call, change = stage(r, staged, trial)
        after = trial.copy()
        try:
            change(after)
        except Refused as refused:
            with pytest.raises(refused.kinds):
                pytest.fail(f"version {call()}: {refused} was expected")
            after = trial
        else:
            call()
        self.settle(staged, after)
        look(staged, after, r)
        return after

    def _append_meanwhile(self, r: Random, axis: int) -> State:
        """Another handle appends along an axis."""
        other, trial = gs.open(self.uri, mode="r+", context=self.context), self.now.copy()
        call, change = self.stage_append(r, other, trial, axis)
        try:
            if change(trial) is False:
                raise Failed
        except Refused:
            raise Failed from None
        call()
        return trial

    # What changes nothing.

    @rule(strategy=st.sampled_from(["all", "all", "tiered", "updates"]))
    def consolidate(self, strategy: str) -> None:
        """Merges fragments, those of labels too."""
        self.a.consolidate(strategy)
        self._passed()

    def _passed(self) -> None:
        """Commits may have been made that changed nothing."""
        for version in range(self.newest + 1, self.a.refresh() + 1):
            self.states[version] = self.now.copy()

    @rule(r=RANDOM, versions=st.sampled_from([1, 3]))
    def vacuum(self, r: Random, versions: int) -> None:
        """Old versions go; those that stay are as they were."""
        seen = self.late.version
        done = self.a.vacuum(versions=versions, safety_age="0s")
        self._passed()
        gone = [version for version in self.states if version < done.oldest]
        for version in gone:
            del self.states[version]
        if gone:
            with pytest.raises(errors.SnapshotExpiredError):
                self.a.at(version=r.choice(gone))
        if seen < done.oldest:
            self.late.refresh()

    @rule(r=RANDOM, how=st.sampled_from(["close", "pickle", "group"]))
    def reopen(self, r: Random, how: str) -> None:
        """The array is opened again, or pickled and back."""
        if how == "pickle" and self.key is None:
            self.a = pickle.loads(pickle.dumps(self.a))
            return
        if how == "close":
            self.a.close()
        self.a = gs.open(self.uri, mode="r+", context=self.context)

    @rule(r=RANDOM)
    def look_back(self, r: Random) -> None:
        """A version that was shows what it showed."""
        version = r.choice(sorted(self.states))
        is_opened = r.random() < 0.5
        old = gs.open(self.uri, version=version, context=self.context) if is_opened else self.a.at(version=version)
        assert old.version == version
        look(old, self.states[version], r)

    @rule(r=RANDOM)
    def look_outside(self, r: Random) -> None:
        """xarray and Arrow get what there is."""
        look_from_outside(self.a, self.now)

    @rule(r=RANDOM, goes_on=st.booleans())
    def copy(self, r: Random, goes_on: bool) -> None:
        """A copy of a version, or of all with which life goes on."""
        uri = self.places("memory")
        if goes_on:
            gs.copy(self.uri, uri, history=True, context=self.context, target_context=self.context)
            self.uri = uri
            self.a = gs.open(uri, mode="r+", context=self.context)
            self.late = gs.open(uri, mode="r+", context=self.context)
            return
        version = r.choice(sorted(self.states))
        made = gs.copy(self.uri, uri, version=version, context=self.context, target_context=self.context)
        assert isinstance(made, gs.Array)
        look(made, self.states[version], r)
        gs.delete(uri, context=self.context)
