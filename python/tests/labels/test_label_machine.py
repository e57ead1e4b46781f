"""The whole life of a labelled dense array, at random, beside a model in plain Python: ends that are open or closed,
labels of every kind, appends, writes beyond the ends, other labels and names, handles that lag, transactions.

HYPOTHESIS_PROFILE=deep runs very many more cases.
"""

import os
from pathlib import Path
from random import Random
from unittest import TestCase

import label_drawing
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant
from label_life import LifeRules
from label_looks import look
from label_model import plain
from label_rules import RANDOM
from places import Anywhere

import gridstone as gs
from gridstone.errors import InputError

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


class Labelled(LifeRules):
    """One array."""

    def __init__(self) -> None:
        super().__init__()
        self.places = Anywhere()
        self.looked: tuple[str, int] | None = None

    @initialize(r=RANDOM, ndim=st.integers(1, 3), kind=st.sampled_from(["memory", "memory", "local"]))
    def create(self, r: Random, ndim: int, kind: str) -> None:
        """Starts with an array of any ends, labelled or not, sealed or not."""
        self.r, self.uri = r, self.places(kind)
        self.key = "5a" * 32 if r.random() < 0.2 else None
        self.context = gs.Context("64MiB", r.choice([1, 2]), durability="close", key=self.key)
        self.now, self.states = label_drawing.state(r, ndim), {}
        self.a = gs.create(self.uri, label_drawing.schema(r, self.now), context=self.context)
        self.followed(self.a.version)
        self.late = gs.open(self.uri, mode="r+", context=self.context)

    def followed(self, version: int) -> None:
        """The store has come to this version."""
        self.a.refresh()
        self.settle(self.a, self.now)
        self.states[version] = self.now.copy()

    def teardown(self) -> None:
        try:
            if hasattr(self, "a") and self.a.verify()["damage"]:
                pytest.fail("damage")
        finally:
            self.places.clear()

    @invariant()
    def shows_what_was_done(self) -> None:
        """After every step that changed something the array is looked at from all sides."""
        assert self.a.version == self.newest
        if self.looked != (self.uri, self.newest):
            self.looked = (self.uri, self.newest)
            look(self.a, self.now, self.r)


def _lives(machine: type[Labelled]) -> type[TestCase]:
    """Twice as many lives as the profile has examples, or a part of very many."""
    case = machine.TestCase
    case.settings = settings(
        max_examples=300 if DEEP else 2 * settings.default.max_examples,
        stateful_step_count=50 if DEEP else 20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    return case


# Very many lives come in parts, which can be run again by themselves and end before the guard against hangs does.
for _part in range(10 if DEEP else 1):
    _copy = type(f"LabelledPart{_part}", (Labelled,), {})
    globals()[f"TestLabelledPart{_part}" if DEEP else "TestLabelled"] = _lives(_copy)


# What it has found.


def line(name: str, labels: object, domain: tuple[int | None, int | None] = (0, 2)) -> gs.Array:
    dim = gs.Dim("x", domain, tile=2, labels=labels)
    return gs.create(f"mem://label-machine-{name}", gs.Schema([dim], [gs.Attr("v", "int8")]))


@pytest.mark.parametrize("labels", [[100, 110, 120], [-100, -110, -120]], ids=["rising", "falling"])
def test_a_label_that_the_type_has_no_more_room_for_is_not_chosen(labels: list[int]) -> None:
    a = line(f"room-{labels[0]}", np.array(labels, "int8"))
    a.resize(x=(-30, 4))
    sign = 1 if labels[0] > 0 else -1
    held = [sign * n for n in range(-120, 130, 10)]
    assert a.dim("x").labels.tolist() == [None] * 8 + held + [None] * 2  # type: ignore[union-attr]
    for beyond in (sign * 130, -sign * 130):
        with pytest.raises(KeyError, match=f"the nearest is {beyond // 13 * 12}"):
            a.sel(x=beyond)
    assert a.sel(x=[sign * 126, -sign * 127], method="nearest").labels["x"].tolist() == [sign * 120, -sign * 120]
    assert a.sel(x=slice(sign * 110, sign * 1_000)).shape == (2,)
    assert a.sel(x=slice(sign * 110, None)).shape == (4,), "an open end takes positions without a label"
    assert a.sel(x=slice(None, -sign * 120)).shape == (9,)


def test_an_empty_dimension_with_an_open_low_end_is_resized_to_as_many_positions_as_were_asked_for() -> None:
    for domain, wanted in (((None, 5), (2, 5)), ((5, None), (5, 8)), ((None, None), (0, 3))):
        a = line(f"resized-{domain[0]}-{domain[1]}", None, domain)
        a.resize((4,))
        assert a.domain == (wanted,) and a.shape == (4,)
        b = line(f"appended-{domain[0]}-{domain[1]}", None, domain)
        b.append([1, 2, 3, 4])
        assert b.domain == (wanted,), "as an append does"


def test_a_block_may_lack_labels_whatever_type_those_of_the_dimension_have() -> None:
    gap = np.ma.array([9, 0], mask=[False, True])
    for name, labels, more, wanted in (
        ("floats", [1.0, 1.5, 7.0], gap, [9.0, None]),
        ("none", [1.0, 1.5, 7.0], [None, None], [None, None]),
        ("integers", [1, 5, 6], np.array([2.0, np.nan]), [2, None]),
        ("small", np.array([1, 5, 6], "uint8"), np.ma.array([9, 300], mask=[False, True]), [9, None]),
        ("days", np.array(["2026-03-01", "2026-03-05", "2026-03-06"], "M8[D]"), ["2026-03-09", None], [20521, None]),
        ("texts", ["a", "b", "c"], [None, None], [None, None]),
    ):
        a = line(f"gaps-{name}", labels)
        kind = a.dim("x").labels.dtype  # type: ignore[union-attr]
        a.append([1, 2], labels=more)
        found = a.dim("x").labels
        assert found is not None and found.dtype == kind and plain(found)[3:] == wanted, name
    with pytest.raises(InputError, match=r"2\.5 at row 1"):
        line("gaps-row", [1, 5, 6]).append([1, 2], labels=np.ma.array([0.0, 2.5], mask=[True, False]))


def test_an_xarray_that_only_counts_brings_no_labels() -> None:
    for labels in ([0, 1, 2], [5, 1, 9], ["a", "b", "c"], None):
        bare = xr.DataArray(np.ones((2, 2)), dims=["x", "y"], name="v")
        for number, block in enumerate((bare, bare.to_dataset(), bare.assign_coords(y=[7, 3]))):
            dims = [gs.Dim("x", (0, 2), labels=labels), gs.Dim("y", (0, 1), labels=[7, 3])]
            a = gs.create(f"mem://label-machine-bare-{labels}-{number}", gs.Schema(dims, [gs.Attr("v", "int8")]))
            if labels in ([0, 1, 2], None):
                a.append(block)
                assert plain(a.dim("x").labels if labels else np.arange(5)) == [0, 1, 2, 3, 4]
                continue
            with pytest.raises(InputError, match="give theirs with labels="):
                a.append(block)
            a.append(block, labels=labels[:2])
            assert plain(a.dim("x").labels) == labels + labels[:2]


def test_an_xarray_beside_labels_of_which_some_are_missing_is_appended() -> None:
    for name, labels in (
        ("floats", [1.0, np.nan, 7.0]),
        ("texts", ["a", None, "c"]),
        ("integers", np.ma.array([1, 2, 4], mask=[False, True, False])),
        ("days", np.array(["2026-03-01", "NaT", "2026-03-05"], "M8[D]")),
    ):
        dims = [gs.Dim("t", (0, 1), labels=["p", "q"]), gs.Dim("x", (0, 2), labels=labels)]
        a = gs.create(f"mem://label-machine-beside-{name}", gs.Schema(dims, [gs.Attr("v", "int8")]))
        block = a.to_xarray()[:1].assign_coords(t=["r"])
        a.append(block)
        assert plain(a.dim("t").labels) == ["p", "q", "r"]
        with pytest.raises(InputError, match="the block has the labels"):
            a.append(block[:, ::-1].roll(x=1, roll_coords=True))


def test_a_list_of_floats_may_lack_some_as_one_of_integers_may() -> None:
    for given, wanted in (([None, 2.5, 7], [None, 2.5, 7.0]), ([1, None, 7], [1, None, 7])):
        a = line(f"lacking-{given[1]}", given)
        assert plain(a.dim("x").labels) == wanted


def test_a_block_that_makes_a_list_of_labels_is_placed_again_after_another_change_of_the_schema(tmp_path: Path) -> None:
    for name, labels, more in (("none", None, ["a"]), ("steps", [1, 2], [7])):
        dims = [gs.Dim("t", (0, None) if labels is None else (0, 1), labels=labels), gs.Dim("x", (0, 2))]
        a = gs.create(tmp_path / name, gs.Schema(dims, [gs.Attr("v", "int8")]))
        late = gs.open(tmp_path / name, mode="r+")
        a.alter(rename={"x": "y"})
        late.append(np.ones((1, 3), "int8"), labels=more)
        assert plain(late.dim("t").labels) == [*(labels or []), *more]
        assert [dim.name for dim in late.schema.dims] == ["t", "y"]


def test_steps_that_pass_their_type_become_a_list_that_lacks_some() -> None:
    a = line("beyond", np.array([100, 110, 120], "int8"))
    a.resize(x=(0, 4))
    a.append(np.array([1], "int8"), labels=np.array([3], "int8"))
    assert plain(a.dim("x").labels) == [100, 110, 120, None, None, 3]
