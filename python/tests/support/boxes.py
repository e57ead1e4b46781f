"""Lists of boxes in the life of an array: rules for the machine of `test_state_machine`."""

from random import Random
from typing import Any

import drawing
from drawing import Window
from hypothesis import strategies as st
from hypothesis.stateful import rule
from model import Bounds, Model, Place, Plain
from wheres import condition

import gridstone as gs

RANDOM = st.randoms(use_true_random=True)


def holds(bounds: Bounds, place: Place) -> bool:
    """Whether a place lies in a box."""
    return all(lo <= c <= hi for c, (lo, hi) in zip(place, bounds, strict=True))


class BoxRules:
    """What the state machine does with lists of boxes."""

    a: gs.Array
    model: Model
    schema: gs.Schema
    windows: list[Window]

    def _boxes(self, r: Random) -> tuple[list[Bounds], list[Any]]:
        """Boxes that may overlap, and the forms that callers write them in."""
        all_bounds = [drawing.box(r, self.windows) for _ in range(r.choice([0, 1, 2, 2, 3, 6]))]
        forms = [drawing.box_form(r, self.windows, bounds) for bounds in all_bounds]
        return all_bounds, [dict() if form is None else form for form in forms]

    def _inside(self, all_bounds: list[Bounds], order: str) -> list[tuple[Place, dict[str, Plain]]]:
        """The cells that lie in any of the boxes, in this order."""
        if not all_bounds:
            return []
        around = [
            (min(b[i][0] for b in all_bounds), max(b[i][1] for b in all_bounds)) for i in range(len(self.windows))
        ]
        if self.schema.sparse:
            rows = self.model.rows(self.model.now, around, order)
        else:
            places = self.model.places(around, order)
            columns = {name: self.model.dense(self.model.now, name, places) for name in self.model.dtypes}
            rows = [(place, {name: found[i] for name, found in columns.items()}) for i, place in enumerate(places)]
        return [(place, row) for place, row in rows if any(holds(bounds, place) for bounds in all_bounds)]

    @rule(r=RANDOM, filtered=st.booleans())
    def read_boxes(self, r: Random, filtered: bool) -> None:
        """`read(box=[…])` and `scan(box=[…])`: each cell once, in the order asked for, with a condition or without."""
        all_bounds, forms = self._boxes(r)
        order = r.choice(["row", "col", "global", "any"])
        names = r.sample(self.a.schema_names, r.randint(1, len(self.schema.attrs)))
        rows = self._inside(all_bounds, order)
        where = None
        if filtered:
            where, judge = condition(r, self.windows, self.schema.attrs)
            rows = [(place, row) for place, row in rows if judge(place, row) is True]
        wanted = [(place, tuple(row[name] for name in names)) for place, row in rows]
        if r.random() < 0.7:
            found = self.a.read(forms, names, where, order)
            assert found.shape is None and len(found) == len(wanted)
            shown = found.to_numpy()
        else:
            shown = self.a.scan(forms, names, where, order, r.choice([1, 300, "64MiB"])).to_numpy()
        self.check_cells(self.numpy_columns(shown), wanted, names, order)  # type: ignore[attr-defined]

    @rule(r=RANDOM)
    def delete_boxes(self, r: Random) -> None:
        """`delete(box=[…])`, and the same with a condition."""
        all_bounds, forms = self._boxes(r)
        if r.random() < 0.6:
            all_bounds, forms = all_bounds[:1], forms[:1]
        form = forms[0] if len(forms) == 1 and r.random() < 0.5 else forms
        version = self.a.delete(form, message="boxes")
        written = self.model.written_places(self.model.now)
        self.model.delete([place for place in written if any(holds(bounds, place) for bounds in all_bounds)])
        if forms:
            self.committed(version, "boxes")  # type: ignore[attr-defined]
        assert version == self.model.newest
