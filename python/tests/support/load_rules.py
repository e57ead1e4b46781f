"""Loads into the machine's own array, whatever its schema and domain have become: a rule for the machine of
`test_state_machine`.
"""

import shutil
import tempfile
from abc import abstractmethod
from pathlib import Path
from random import Random
from typing import Any

import drawing
import numpy as np
import pyarrow as pa
import pytest
from drawing import Window
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from model import Model, Place, Plain, coordinates, shaped

import gridstone as gs
from gridstone import io
from gridstone.column import datatype as dtypes
from gridstone.io.numpy import dense

RANDOM = st.randoms(use_true_random=True)


class LoadRules:
    """What the machine loads into its array beside what is there."""

    a: gs.Array
    uri: str
    model: Model
    schema: gs.Schema
    windows: list[Window]

    @abstractmethod
    def committed(self, version: int, message: str | None = None) -> None:
        """The model follows a commit."""

    @abstractmethod
    def columns(self, r: Random, count: int, subset: bool = False) -> dict[str, list[Plain]]:
        """Values of all attributes, or of some."""

    def is_dense(self) -> bool:
        return not self.schema.sparse

    @precondition(is_dense)
    @rule(r=RANDOM, how=st.sampled_from(["npy", "npz"]))
    def load_arrays(self, r: Random, how: str) -> None:
        """`from_npy` and `from_npz` into a box."""
        self.load_box(r, how)

    def load_box(self, r: Random, how: str) -> None:
        """Loads a file of values, cut along the tiles, in pieces that may be smaller than these."""
        attrs = [attr for attr in self.schema.attrs if attr.dtype == "string" or not dtypes.is_var(attr.dtype)]
        if not attrs:
            return
        if how == "npy":
            attrs = [r.choice(attrs)]
        bounds = drawing.box(r, self.windows)
        if r.random() < 0.5:
            bounds = [(w.values[0], w.values[-1]) for w in self.windows]
        where, shape = self.model.places(bounds), tuple(hi - lo + 1 for lo, hi in bounds)
        # NumPy's files have no nulls, and its texts do not end in NUL.
        pools = [[v for v in drawing.values_of(attr) if v is not None] for attr in attrs]
        pools = [[v for v in found if not (isinstance(v, str) and v.endswith("\0"))] or [""] for found in pools]
        if any(attr.categories and "" in found for attr, found in zip(attrs, pools, strict=True)):
            return
        columns = {a.name: r.choices(found, k=len(where)) for a, found in zip(attrs, pools, strict=True)}
        arrays = {attr.name: _for_file(attr, columns[attr.name], shape) for attr in attrs}
        box = drawing.box_form(r, self.windows, bounds)
        folder = Path(tempfile.mkdtemp(prefix="gridstone-machine-"))
        options: dict[str, Any] = {"path": "/main", "context": self.a.context, "message": how, "box": box}
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(dense, "_PIECE_BYTES", r.choice([1, 40, 300, 8 << 20]))
                if how == "npy":
                    np.save(folder / "a.npy", next(iter(arrays.values())))
                    made = io.from_npy(self.uri, folder / "a.npy", name=attrs[0].name, **options)
                else:
                    np.savez(folder / "a.npz", **arrays)
                    made = io.from_npz(self.uri, folder / "a.npz", sparse=False, **options)
        finally:
            shutil.rmtree(folder)
        self._loaded(made, where, columns, how)

    @rule(r=RANDOM)
    def load_table(self, r: Random) -> None:
        """`from_arrow`: cells in any order with their coordinates."""
        where = list(dict.fromkeys(drawing.places(r, self.windows, r.choice([1, 5, 40]))))
        if not all(drawing.fits_arrow(d, [p[i] for p in where]) for i, d in enumerate(self.schema.dims)):
            return
        columns = self.columns(r, len(where))
        dims = {d.name: coordinates(d, [p[i] for p in where]) for i, d in enumerate(self.schema.dims)}
        made = {name: drawing._arrow_column(self.schema.dim(name).dtype, found) for name, found in dims.items()}
        for name, found in columns.items():
            dtype = self.schema.attr(name).dtype
            made[name] = drawing._arrow_column(dtype, shaped(dtype, found, (len(where),)))
        table = pa.table(made)
        batches = pa.Table.from_batches(table.to_batches(r.choice([1, 7, 1_000])))
        options: dict[str, Any] = {"path": "/main", "context": self.a.context, "message": "table"}
        self._loaded(io.from_arrow(self.uri, batches, **options), where, columns, "table")

    def _loaded(self, made: gs.Array, where: list[Place], columns: dict[str, list[Plain]], how: str) -> None:
        self.model.put(where, columns)
        assert self.a.refresh() == made.version
        self.committed(made.version, how)
        event("load into the array itself", how)


def _for_file(attr: gs.Attr, values: list[Plain], shape: tuple[int, ...]) -> Any:
    """Values as NumPy's files hold them: texts of fixed width."""
    found = shaped(attr.dtype, values, shape)
    return found.astype("U") if attr.dtype == "string" else found
