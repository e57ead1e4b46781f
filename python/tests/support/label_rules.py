"""Changes of a labelled array by one handle that sees all: rules for the machine of `test_label_machine`."""

from abc import abstractmethod
from collections.abc import Callable
from random import Random
from typing import Any

import label_drawing
import numpy as np
import pytest
import xarray as xr
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from label_drawing import SIDE_MAX, as_given, numpy_of
from label_model import SMALL, Axis, Given, Listed, Refused, State, Steps

import gridstone as gs
from gridstone import errors

RANDOM = st.randoms(use_true_random=True)
CELLS_MAX = 250


class LabelRules(RuleBasedStateMachine):
    """`a` writes and has seen all; `now` is the model's present, `states` what it was at each version."""

    a: gs.Array
    now: State
    states: dict[int, State]
    made = 0

    @abstractmethod
    def followed(self, version: int) -> None:
        """The store has come to this version, by one commit or more that changed nothing else."""

    @property
    def newest(self) -> int:
        return max(self.states)

    def attempt(self, call: Callable[[], int | None], change: Callable[[State], Any]) -> bool:
        """Makes a change of the array and of the model, or sees that both refuse it; whether it was made.

        A change of the model gives False where no commit is made.
        """
        trial = self.now.copy()
        try:
            changed = change(trial) is not False
        except Refused as refused:
            with pytest.raises(refused.kinds):
                pytest.fail(f"version {call()}: {refused} was expected")
            assert self.a.refresh() == self.newest
            return False
        version = call()
        if not changed:
            assert version is None or version in self.states
            assert self.a.refresh() == self.newest
            return False
        assert version in (None, self.newest + 1)
        self.now = trial
        self.followed(self.newest + 1)
        return True

    # What is written, as the model and as the array take it.

    def columns(
        self, r: Random, state: State, shape: tuple[int, ...], names: list[str] | None = None
    ) -> tuple[dict[str, Any], Any]:
        """Values of these attributes, or of some, and the same as a user gives them."""
        some = [column for column in state.columns if names is None or column.name in names]
        some = r.sample(some, r.randint(1, len(some))) if names is None else some
        found = {column.name: label_drawing.values(r, column, shape) for column in some}
        given = {column.name: numpy_of(column, found[column.name]) for column in some}
        is_bare = len(state.columns) == 1 and r.random() < 0.7
        return found, given[some[0].name] if is_bare else given

    def block(
        self, r: Random, state: State, axis: int | None
    ) -> tuple[int, list[int], dict[str, Any], Any, Given | None] | None:
        """An axis, the lengths of a block to append along it, its values, these as given, and its labels."""
        if axis is None:
            axis = r.randrange(len(state.axes)) if r.random() < 0.4 else 0
        own, lengths = state.axes[axis], list(state.shape)
        lengths[axis] = count = r.choice([1, 1, 2, 3])
        if own.size + count > SIDE_MAX[len(state.axes)] + 3:
            return None
        found, given = self.columns(r, state, tuple(lengths))
        if count == 1 and len(lengths) > 1 and all(lengths) and r.random() < 0.4:
            # One position may leave out the axis.
            columns = {column.name: column for column in state.columns}
            given = {name: numpy_of(columns[name], np.take(one, 0, axis)) for name, one in found.items()}
        return axis, lengths, found, given, label_drawing.more_labels(r, own, count)

    def stage_append(
        self, r: Random, a: gs.Array, state: State, axis: int | None = None
    ) -> tuple[Callable[[], int], Callable[[State], Any]]:
        """An append as the handle `a` makes it, which shows `state`; and what it does to any other state."""
        block = self.block(r, state, axis)
        if block is None:
            return (lambda: a.version), (lambda trial: False)
        axis, lengths, found, given, more = block
        own = state.axes[axis]
        named = r.choice([axis, axis - len(lengths), own.name])
        labels = None if more is None else as_given(r, more)
        if (
            lengths[axis] == 1 == (0 if labels is None else len(labels))
            and r.random() < 0.3
            and not np.ma.isMaskedArray(labels)
        ):
            labels = labels[0]

        def change(trial: State) -> None:
            if more is not None and len(more.values) != lengths[axis]:
                raise Refused(errors.InputError)
            typed = more if more is None or own.labels is None else more.typed(own.labels.dtype)
            trial.append(axis, lengths, found, typed)

        if r.random() < 0.2:
            there = self._in_xarray(r, a, state, axis, found, more)
            if there is not None:
                event("append of xarray")
                return (lambda: a.append(there, named)), change
        event(f"append {'with' if labels is not None else 'without'} labels to {type(own.labels).__name__}")
        return (lambda: a.append(given, named, labels=labels)), change

    @staticmethod
    def _in_xarray(
        r: Random, a: gs.Array, state: State, axis: int, found: dict[str, Any], more: Given | None
    ) -> xr.DataArray | xr.Dataset | None:
        """A block with its labels and those beside it, its dimensions in any order; None if xarray has no such."""
        columns, own = {column.name: column for column in state.columns}, state.axes[axis]
        if any(None in one.ravel().tolist() for one in found.values()) or (more is not None and None in more.values):
            return None
        if more is not None and (len(more.values) != next(iter(found.values())).shape[axis] or own.labels is None):
            return None  # It has no types of times as coarse as ours, and no labels but one for each position.
        labelled = [one.name for one in state.axes if one.labels is not None and one is not own]
        coords = {name: a.to_xarray().coords[name] for name in labelled}
        if more is not None:
            coords[own.name] = (own.name, more.numpy())
        made = xr.Dataset({name: (state.names, numpy_of(columns[name], one)) for name, one in found.items()}, coords)
        made = made.transpose(*r.sample(state.names, len(state.names)))
        return made[state.columns[0].name] if len(state.columns) == 1 and r.random() < 0.5 else made

    def stage_box(self, r: Random, a: gs.Array, state: State) -> tuple[Callable[[], int], Callable[[State], Any]]:
        """A box that is written, often beyond the ends."""
        bounds = label_drawing.box(r, state, 0.4)
        found, given = self.columns(r, state, tuple(high - low + 1 for low, high in bounds))
        form, grow = label_drawing.box_form(r, state, bounds), r.random() < 0.5

        def change(trial: State) -> None:
            trial.check_reach(bounds, grow)
            trial.reach(bounds)
            trial.put(bounds, found)

        return (lambda: a.write(given, form, grow=grow)), change

    def stage_alter(self, r: Random, a: gs.Array, state: State) -> tuple[Callable[[], int], Callable[[State], Any]]:
        """Other labels along some dimensions, other names, or both."""
        labels: dict[str, Given | None] = {}
        renamed: dict[str, str] = {}
        if r.random() < 0.8:
            for axis in r.sample(state.axes, r.randint(1, len(state.axes))):
                labels[axis.name] = self._all_labels(r, axis)
        if not labels or r.random() < 0.3:
            renamed = self._names(r, state)
        given = {name: None if found is None else as_given(r, found) for name, found in labels.items()}

        def change(trial: State) -> bool:
            changed = [trial.relabel(name, found) for name, found in labels.items()]
            trial.rename(renamed)
            if any(changed) or renamed:
                trial.schemas += 1
            return any(changed) or bool(renamed)

        options = {"rename": renamed} if renamed else {}
        return (lambda: a.alter(**({"labels": given} if given else {}), **options)), change  # type: ignore[arg-type]

    def _all_labels(self, r: Random, axis: Axis) -> Given | None:
        chance = r.random()
        if chance < 0.15:
            return None
        if chance < 0.4 or not axis.size:
            return label_drawing.pair(r, axis.size)
        return label_drawing.labels(r, axis.size + r.choice([0] * 9 + [1]))

    def _names(self, r: Random, state: State) -> dict[str, str]:
        self.made += 1
        axis = r.choice(state.axes)
        if r.random() < 0.3 and len(state.axes) > 1:
            first, second = r.sample(state.names, 2)
            return {first: second, second: first}
        if r.random() < 0.2:
            return {r.choice(state.columns).name: f"v{self.made}"}
        return {axis.name: f"d{self.made}x"}

    # Rules.

    @rule(r=RANDOM, times=st.sampled_from([1, 2, 3]))
    def append(self, r: Random, times: int) -> None:
        """`append(x, axis, labels=)`: with the labels that the axis takes, or with others, which changes nothing."""
        for _ in range(times):
            self.attempt(*self.stage_append(r, self.a, self.now))

    @rule(r=RANDOM)
    def write_box(self, r: Random) -> None:
        """`write(x, box)`: beyond open ends it grows, beyond closed ones only with `grow=True`."""
        if self.has_room():
            self.attempt(*self.stage_box(r, self.a, self.now))

    @rule(r=RANDOM, grow=st.booleans())
    def write_cells(self, r: Random, grow: bool) -> None:
        """`write_cells` at some coordinates, beyond the ends too."""
        if not self.has_room():
            return
        boxes = [label_drawing.box(r, self.now, 0.3) for _ in range(r.randint(1, 3))]
        where = list(dict.fromkeys(tuple(low for low, _ in box) for box in boxes))
        coords = {
            axis.name: np.array([label_drawing.coordinate(axis, place[n]) for place in where])
            for n, axis in enumerate(self.now.axes)
        }
        found, _ = self.columns(r, self.now, (len(where),))
        given = {name: numpy_of(self.now.columns[self.now.column(name)], one) for name, one in found.items()}
        around = [(min(ends), max(ends)) for ends in zip(*where, strict=True)]

        def change(trial: State) -> None:
            trial.check_reach(around, grow)
            trial.reach(around)
            for row, place in enumerate(where):
                trial.put([(one, one) for one in place], {name: one[row] for name, one in found.items()})

        self.attempt(lambda: self.a.write_cells(coords, given, grow=grow), change)

    def has_room(self) -> bool:
        """Whether the array may grow."""
        return max(axis.size for axis in self.now.axes) < SIDE_MAX[len(self.now.axes)] + 3

    @rule(r=RANDOM)
    def assign(self, r: Random) -> None:
        """`a[…] = x` by positions from either end, which never grows."""
        self.attempt(*self.stage_assign(r, self.a, self.now))

    def stage_assign(
        self, r: Random, a: gs.Array, state: State
    ) -> tuple[Callable[[], int | None], Callable[[State], Any]]:
        """Positions of `state`, which are coordinates of any other one."""
        if 0 in state.shape:
            return (lambda: None), (lambda trial: False)
        column, key, bounds = r.choice(state.columns), [], []
        for axis in state.axes:
            first = r.randrange(axis.size)
            stop = r.randint(first + 1, axis.size)
            end = r.choice([stop, stop - axis.size]) if stop < axis.size else r.choice([None, stop, stop + 3])
            key.append(slice(r.choice([first, first - axis.size]), end))
            bounds.append((axis.low + first, axis.low + stop - 1))
        found = label_drawing.values(r, column, tuple(high - low + 1 for low, high in bounds))

        def call() -> None:
            a[column.name][tuple(key)] = numpy_of(column, found)

        return call, lambda trial: trial.put(bounds, {column.name: found})

    @rule(r=RANDOM)
    def delete(self, r: Random) -> None:
        """Deletes a box: its cells are as if never written, its labels stay. Open ends reach as far as the type."""
        if 0 in self.now.shape:
            self.attempt(lambda: self.a.delete((...,)), lambda trial: True)
            return
        bounds = label_drawing.box(r, self.now, 0.0)
        form = label_drawing.box_form(r, self.now, bounds) or (...,)
        self.attempt(lambda: self.a.delete(form), lambda trial: trial.delete(bounds))

    @rule(r=RANDOM)
    def alter(self, r: Random) -> None:
        """`alter(labels=, rename=)`: other labels, or none, and other names, in one commit."""
        self.attempt(*self.stage_alter(r, self.a, self.now))

    @rule(r=RANDOM, by_shape=st.booleans())
    def resize(self, r: Random, by_shape: bool) -> None:
        """Positions at either end, which have no labels if these are in a list."""
        if not self.has_room():
            return
        place = r.randrange(len(self.now.axes))
        axis = self.now.axes[place]
        bounds = [(one.low, one.high) for one in self.now.axes]
        if by_shape:
            size = axis.size + r.choice([1, 2])
            bounds[place] = (axis.low, axis.low + size - 1) if axis.size else axis.behind(size)
            shape = [size if n == place else None for n in range(len(bounds))]
            call = lambda: self.a.resize(shape)  # noqa: E731
        else:
            low, high = (axis.low, axis.high) if axis.size else (axis.low, axis.low)
            bounds[place] = (low - r.choice([0, 1, 3]), high + r.choice([0, 1, 2]))
            ends = tuple(label_drawing.coordinate(axis, end) for end in bounds[place])
            call = lambda: self.a.resize({axis.name: ends})  # noqa: E731
        wanted = [axis.reaching(*bounds[n]) if n == place else bounds[n] for n, axis in enumerate(self.now.axes)]
        is_same = wanted == [(one.low, one.high) for one in self.now.axes]
        self.attempt(call, lambda trial: False if is_same else _reach_one(trial, place, bounds[place]))

    @rule(r=RANDOM, every=st.sampled_from([1, 2, 3]))
    def frames(self, r: Random, every: int) -> None:
        """A writer of frames, each with its label where the axis has a list of them."""
        state = self.now
        if not self.has_room() or not all(state.shape[1:]):
            return
        axis, count = state.axes[0], r.randint(1, 4)
        is_labelled = isinstance(axis.labels, Listed) or (axis.labels is None and not axis.size and r.random() < 0.5)
        dtype = axis.labels.dtype if axis.labels is not None else None
        more = label_drawing.labels(r, count, dtype) if is_labelled else None
        one = (1, *state.shape[1:])
        names = [column.name for column in r.sample(state.columns, r.randint(1, len(state.columns)))]
        frames = [self.columns(r, state, one, names) for _ in range(count)]
        with self.a.writer(axis=r.choice([0, axis.name]), every=every) as writer:
            for n, (_, given) in enumerate(frames):
                writer.append(given, label=None if more is None else Given(more.dtype, [more.values[n]]).numpy())
        for first in range(0, count, every):
            some = [found for found, _ in frames[first : first + every]]
            values = {name: np.concatenate([found[name] for found in some]) for name in names}
            part = None if more is None else Given(more.dtype, more.values[first : first + every])
            self.now = self.now.copy()
            self.now.append(0, [len(some), *state.shape[1:]], values, part)
            self.followed(self.newest + 1)

    def settle(self, a: gs.Array, state: State) -> None:
        """Labels at equal steps of types whose ends are near may be in a list: the array is asked."""
        for axis in state.axes:
            there = axis.labels
            if isinstance(there, Listed) and not there.is_settled:
                there.is_settled = True
                assert there.dtype in SMALL
                if "in a list" not in repr(a.dim(axis.name)):
                    first, second = (there.found[axis.low + n] for n in range(2))
                    axis.labels = Steps(there.dtype, first, second - first, axis.low)


def _reach_one(trial: State, place: int, ends: tuple[int, int]) -> None:
    """The domain reaches further along one dimension."""
    axis = trial.axes[place]
    if all(one.size for n, one in enumerate(trial.axes) if n != place):
        trial.reach([ends if n == place else (one.low, one.high) for n, one in enumerate(trial.axes)])
        return
    axis.low, axis.high = axis.reaching(*ends)
    trial.cells = [np.full(trial.shape, column.blank, object) for column in trial.columns]
