"""What other libraries and files are given of an array, and what comes back of it: rules for the machine of
`test_state_machine`.
"""

import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import drawing
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from drawing import Window
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from model import Bounds, Model, Place, Plain, Row, as_arrow_shows, coordinates, plain, stored, unplain
from places import Anywhere
from wheres import condition

import gridstone as gs
from gridstone import errors, io
from gridstone.column import arrow_types
from gridstone.column import datatype as dtypes

RANDOM = st.randoms(use_true_random=True)
Rows = list[tuple[Place, Row]]
GRID_CELLS_MAX = 3_000
TABLES: dict[str, tuple[Any, Any]] = {
    "parquet": (io.to_parquet, io.from_parquet),
    "feather": (io.to_feather, io.from_feather),
}


class ExportRules:
    """What the machine hands to Arrow, pandas, polars, SciPy, pydata/sparse and files, and loads again."""

    a: gs.Array
    model: Model
    schema: gs.Schema
    windows: list[Window]
    places: Anywhere
    kinds: tuple[str, ...]

    # What is asked for.

    def _asked(self, r: Random, order: str, *, filtered: bool = False) -> tuple[Bounds, dict[str, Any], Rows]:
        """A box, the arguments of its read, and the cells in it, perhaps those of a condition."""
        bounds = drawing.box(r, self.windows)
        if r.random() < 0.5:
            bounds = [(w.values[0], w.values[-1]) for w in self.windows]
        asked: dict[str, Any] = {"box": drawing.box_form(r, self.windows, bounds)}
        rows = self._inside([bounds], order)  # type: ignore[attr-defined]
        if filtered:
            asked["where"], judge = condition(r, self.windows, self.schema.attrs)
            rows = [(place, row) for place, row in rows if judge(place, row) is True]
        return bounds, asked, rows

    def _check_rows(self, columns: dict[str, list[Any]], rows: Rows, names: list[str], shown: Any) -> None:
        """Columns in plain form against cells in order, whose values a library shows in a form of its own."""
        assert list(zip(*(columns[d.name] for d in self.schema.dims), strict=True)) == [place for place, _ in rows]
        for name in names:
            assert columns[name] == shown(self.model.dtypes[name], [row[name] for _, row in rows]), name

    # In memory.

    @rule(r=RANDOM, how=st.sampled_from(["arrow", "capsule", "pandas", "polars"]), streamed=st.booleans())
    def frames(self, r: Random, how: str, streamed: bool) -> None:
        """Tables and data frames of results and streams hold the cells that NumPy's columns do."""
        order = r.choice(["row", "col", "global"])
        bounds, asked, rows = self._asked(r, order, filtered=r.random() < 0.3)
        names = r.sample(self.a.schema_names, r.randint(1, len(self.schema.attrs)))
        if not self.in_arrow(bounds) or (how == "polars" and not self._fits_polars(rows, names)):  # type: ignore[attr-defined]
            return
        found: Any = self.a.read(attrs=names, order=order, **asked)
        if streamed:
            found = self.a.scan(attrs=names, order=order, batch_bytes=r.choice([1, 400, "64MiB"]), **asked)
        event("frames", how)
        if how == "pandas":
            self._check_pandas(found.to_pandas(), rows, names)
            return
        if how == "polars":
            frame = found.to_polars()
            assert frame.columns == [*self.a.dims, *names] and frame.height == len(rows)
            table = frame.to_arrow()
            for place, name in enumerate(table.column_names):
                dtype = self.model.dtypes.get(name) or self.schema.dim(name).dtype
                if dtypes.is_time(dtype):
                    column = _without_dictionary(table.column(name)).cast(arrow_types.type_of(dtype))
                    table = table.set_column(place, name, column)
        elif how == "arrow":
            table = found.to_arrow()
        else:
            table = pa.RecordBatchReader.from_stream(found).read_all()
        if how != "polars":
            assert table.schema.equals(self.schema._arrow_of(names), check_metadata=True)
        self._check_rows(self.arrow_columns(table), rows, names, as_arrow_shows)  # type: ignore[attr-defined]

    def _fits_polars(self, rows: Rows, names: list[str]) -> bool:
        """Whether polars, which has no seconds, has room for the times in milliseconds."""
        ticks = [c for place, _ in rows for d, c in zip(self.schema.dims, place, strict=True) if d.dtype[-3:] == "[s]"]
        for name in names:
            base = dtypes.base_of(self.model.dtypes[name])
            if base.endswith("[s]"):
                ticks += [row[name] for _, row in rows if isinstance(row[name], int)]
                attr = self.schema.attr(name)
                ticks += [v for v in drawing.values_of(attr) if isinstance(v, int)] if attr.categories else []
        return all(abs(tick) < 2**53 for tick in ticks)

    def _check_pandas(self, frame: Any, rows: Rows, names: list[str]) -> None:
        assert list(frame.columns) == [*self.a.dims, *names] and len(frame) == len(rows)
        for axis, dim in enumerate(self.schema.dims):
            for place, cell in zip((place for place, _ in rows), frame[dim.name], strict=True):
                value = repr(place[axis]) if dtypes.is_float(dim.dtype) else place[axis]
                assert in_pandas(dim.dtype, value, cell), dim
        for name in names:
            for value, cell in zip((row[name] for _, row in rows), frame[name], strict=True):
                assert in_pandas(self.model.dtypes[name], value, cell), (name, value, cell)

    # Grids and matrices.

    def has_grids(self) -> bool:
        return not any(d.is_text or dtypes.is_float(d.dtype) for d in self.schema.dims)

    @precondition(has_grids)
    @rule(r=RANDOM, streamed=st.booleans())
    def grids(self, r: Random, streamed: bool) -> None:
        """`to_dense` of cells: the last one at a place, else a fill, or null."""
        bounds, asked, rows = self._asked(r, "row", filtered=r.random() < 0.5 or not self.schema.sparse)
        shape = tuple(hi - lo + 1 for lo, hi in bounds)
        where = self.model.places(bounds) if np.prod(np.array(shape, object)) <= GRID_CELLS_MAX else None
        if where is None:
            return
        attr = r.choice(self.schema.attrs)
        fill: Any = None
        if r.random() < 0.5:
            fill = r.choice([v for v in drawing.values_of(attr) if v != "NaT"])
        blank = self.model.blank(attr) if fill is None else fill
        given = None if fill is None else drawing._as_fill(attr.dtype, fill)
        cells = {place: row[attr.name] for place, row in rows}
        wanted = [cells.get(place, blank) for place in where]
        found: Any = self.a.read(attrs=attr.name, **asked)
        if streamed:
            found = self.a.scan(attrs=attr.name, order="row", **asked)
        made = found.to_dense(given)
        assert made.shape[: len(shape)] == shape
        assert plain(attr.dtype, made) == wanted
        event("to_dense", "with fill" if given is not None else "without fill")

    def is_matrix(self) -> bool:
        return self.has_grids() and any(_is_number(attr) for attr in self.schema.attrs)

    @precondition(is_matrix)
    @rule(r=RANDOM, repeats=st.sampled_from(["last", "first", "sum", "error"]), streamed=st.booleans())
    def matrices(self, r: Random, repeats: str, streamed: bool) -> None:
        """`to_scipy` and `to_sparse`: zero or fill where there is no cell; nulls are refused."""
        if self.schema.duplicates and r.random() < 0.5:
            self._repeat_a_place(r)
        bounds, asked, rows = self._asked(r, "row", filtered=r.random() < 0.3)
        shape = tuple(hi - lo + 1 for lo, hi in bounds)
        if np.prod(np.array(shape, object)) > GRID_CELLS_MAX:
            return
        attr = r.choice([attr for attr in self.schema.attrs if _is_number(attr)])
        matrix = len(shape) == 2 and dtypes.base_of(attr.dtype) != "float16" and r.random() < 0.7
        found: Any = self.a.read(attrs=attr.name, **asked)
        listed = found.shape is None
        if streamed:
            found, listed = self.a.scan(attrs=attr.name, order="row", **asked), True
        make = found.to_scipy if matrix else found.to_sparse
        cells: dict[Place, list[Plain]] = {}
        for place, row in rows:
            cells.setdefault(place, []).append(row[attr.name])
        repeated = any(len(values) > 1 for values in cells.values())
        if any(None in values for values in cells.values()) or (repeated and repeats == "error"):
            with pytest.raises(errors.InputError):
                make(attr.name, repeats=repeats)
            event("matrix", "refused")
            return
        if repeats == "sum" and repeated and attr.dtype[:1] not in ("i", "u", "b"):
            return  # The order in which floats are added up is nobody's promise.
        made = make(attr.name if r.random() < 0.5 else None, repeats=repeats)
        empty = np.zeros(1, attr.dtype) if matrix else np.array([attr.fill], attr.dtype)
        grid = np.broadcast_to(empty, shape).copy() if shape else empty
        for place, values in cells.items():
            at = tuple(c - lo for c, (lo, _) in zip(place, bounds, strict=True))
            grid[at] = _one_of(attr.dtype, values, repeats)
        assert made.shape == shape and made.dtype == np.dtype(attr.dtype)
        shown = made.toarray() if matrix else made.todense()
        assert plain(attr.dtype, shown) == plain(attr.dtype, grid) or _same_but_zeros(shown, grid)
        if listed:
            assert made.nnz == len(cells) or not matrix
        event("matrix", "scipy" if matrix else "sparse")
        if matrix:
            self._matrix_there_and_back(r, made, asked, attr, with_file=not listed or repeats == "last")

    def _matrix_there_and_back(
        self, r: Random, made: Any, asked: dict[str, Any], attr: gs.Attr, *, with_file: bool
    ) -> None:
        """SciPy's matrix as an array, and the cells as a Matrix Market file, which keeps the last of a place."""
        folder, uri = Path(tempfile.mkdtemp(prefix="gridstone-machine-")), self.places(r.choice(self.kinds))
        try:
            back = io.from_scipy(uri, made, context=self.a.context)
            found = back.read().to_scipy(repeats="error")
            assert found.shape == made.shape and found.dtype == made.dtype
            assert _same_but_zeros(found.toarray(), made.toarray())
            if with_file and "where" not in asked and attr.dtype in ("int32", "int64", "float64"):
                stored = self.a.read(asked["box"], attr.name).to_scipy().nnz
                assert io.to_mtx(self.a, folder / "a.mtx", asked["box"], attr.name) == stored
                gs.delete(uri, context=self.a.context)
                back = io.from_mtx(uri, folder / "a.mtx", context=self.a.context)
                assert _same_but_zeros(back.read().to_scipy().toarray(), made.toarray())
                event("matrix", "file")
        finally:
            shutil.rmtree(folder)
            if gs.exists(uri, context=self.a.context):
                gs.delete(uri, context=self.a.context)

    def _repeat_a_place(self, r: Random) -> None:
        """Several cells at each of some places, which else are rare."""
        where = drawing.places(r, self.windows, 4) * 2
        columns = self.columns(r, len(where))  # type: ignore[attr-defined]
        given = {name: unplain(self.schema.attr(name).dtype, values) for name, values in columns.items()}
        coords = {d.name: coordinates(d, [p[i] for p in where]) for i, d in enumerate(self.schema.dims)}
        version = self.a.write_cells(coords, given)
        self.model.put(where, columns)
        self.committed(version)  # type: ignore[attr-defined]

    # To files and back.

    @rule(r=RANDOM, how=st.sampled_from(["arrow", "stream", "parquet", "feather", "csv", "pandas", "polars"]))
    def tables_there_and_back(self, r: Random, how: str) -> None:
        """What is written as a table and loaded into another store is what was there."""
        order = r.choice(["row", "col", "global"])
        bounds, asked, rows = self._asked(r, order)
        names = sorted(
            r.sample(self.a.schema_names, r.randint(1, len(self.schema.attrs))), key=self.a.schema_names.index
        )
        if not rows or not self._can_go(how, bounds, rows, names):
            return
        folder, uri = Path(tempfile.mkdtemp(prefix="gridstone-machine-")), self.places(r.choice(self.kinds))
        schema = self._part(names)
        try:
            if how == "csv" and not _is_text(self.schema, rows, names):
                with pytest.raises(errors.InputError, match="as text"):
                    io.to_csv(self.a, folder / "a.csv", attrs=names, order=order, **asked)
                assert list(folder.iterdir()) == []
                event("table", "csv refused")
                return
            back = self._there_and_back(r, how, folder, uri, schema, (asked["box"], names, order))
            event("table", how)
            assert back.schema == schema and back.version >= 2
            self._check_copy(back, bounds, rows, names, nan_is_null=how == "pandas")
        finally:
            shutil.rmtree(folder)
            if gs.exists(uri, context=self.a.context):
                gs.delete(uri, context=self.a.context)

    def _part(self, names: list[str]) -> gs.Schema:
        """The schema with these attributes alone."""
        return self._made_of(attrs=[self.schema.attr(name) for name in names])  # type: ignore[attr-defined]

    def _can_go(self, how: str, bounds: Bounds, rows: Rows, names: list[str]) -> bool:
        """Whether the library or format has room for these values."""
        if not self.in_arrow(bounds):  # type: ignore[attr-defined]
            return False
        if how in ("polars", "parquet") and not self._fits_polars(rows, names):
            return False
        if how == "pandas":
            return self._fits_polars(rows, names)
        return how != "csv" or _has_years(self.schema, rows, names)

    def _there_and_back(
        self, r: Random, how: str, folder: Path, uri: str, schema: gs.Schema, what: tuple[Any, list[str], str]
    ) -> gs.Array:
        (box, names, order), context = what, self.a.context
        if how in TABLES:
            write, load = TABLES[how]
            write(self.a, folder / "a", box, names, order=order, compression=r.choice(["zstd", "lz4", "none"]))
            return load(uri, folder / "a", context=context)  # type: ignore[no-any-return]
        if how == "csv":
            target, delimiter = folder / r.choice(["a.csv", "a.csv.gz", "a.csv.zst"]), r.choice([",", ";", "\t"])
            io.to_csv(self.a, target, box, names, order=order, delimiter=delimiter)
            block = r.choice([None, 1, 50])
            return io.from_csv(uri, target, schema=schema, delimiter=delimiter, block_bytes=block, context=context)
        if how == "arrow":
            return io.from_arrow(uri, io.to_arrow(self.a, box, names, order=order, batch_bytes=500), context=context)
        if how == "stream":
            return io.from_arrow(uri, self.a.scan(box, names, order=order), schema=schema, context=context)
        found = self.a.read(box, names, order=order)
        if how == "pandas":
            return io.from_pandas(uri, found.to_pandas(), schema=schema, context=context)
        frame = found.to_polars()
        return io.from_polars(uri, frame.lazy() if r.random() < 0.3 else frame, schema=schema, context=context)

    def _check_copy(self, back: gs.Array, bounds: Bounds, rows: Rows, names: list[str], nan_is_null: bool) -> None:
        """Another array against the cells that it was made of."""
        pairs = {
            w.dim.name: tuple(drawing.key_value(w.dim, c) for c in b) for w, b in zip(self.windows, bounds, strict=True)
        }
        found = back.read(pairs).to_numpy()
        if self.schema.sparse:
            rows = sorted(rows, key=lambda cell: cell[0])
            columns = self.numpy_columns(found)  # type: ignore[attr-defined]
            assert list(zip(*(columns[d.name] for d in self.schema.dims), strict=True)) == [place for place, _ in rows]
        else:
            columns = {name: plain(self.model.dtypes[name], values) for name, values in found.items()}
            rows = sorted(rows, key=lambda cell: cell[0])
        for name in names:
            # What a cell that was never written shows is rounded only once it is written.
            wanted = [stored(self.schema.attr(name), row[name]) for _, row in rows]
            if nan_is_null:
                wanted = drawing._as_pandas_means(self.schema.attr(name), wanted)
            assert columns[name] == wanted, (name, self.schema.attr(name))

    @rule(r=RANDOM, how=st.sampled_from(["npy", "npz"]))
    def numpy_files_there_and_back(self, r: Random, how: str) -> None:
        """`.npy` of a box, `.npz` of a box or of columns of cells; nulls and what varies in length are refused."""
        bounds, asked, rows = self._asked(r, "row")
        if not self.in_arrow(bounds):  # type: ignore[attr-defined]
            return  # Columns of cells are loaded by way of Arrow.
        folder, uri = Path(tempfile.mkdtemp(prefix="gridstone-machine-")), self.places(r.choice(self.kinds))
        names = [attr.name for attr in self.schema.attrs if attr.dtype == "string" or not dtypes.is_var(attr.dtype)]
        texts = [attr.name for attr in self.schema.attrs if attr.dtype == "string"]
        padded = any(_ends_in_nul(row[name]) for _, row in rows for name in texts)
        file = folder / f"a.{how}"
        try:
            if self.schema.sparse and how == "npy":
                self._sparse_grid(r, file, bounds, asked["box"], rows)
            elif len(names) < len(self.schema.attrs):
                varying = [n for n in self.a.schema_names if n not in names]
                with pytest.raises(errors.UnsupportedError, match="Python objects"):
                    io.to_npz(self.a, file, asked["box"], varying)
                event("numpy file", "what varies is refused")
            elif padded:
                with pytest.raises(errors.InputError, match=r"nulls|NUL"):
                    io.to_npz(self.a, file, asked["box"])
                assert list(folder.iterdir()) == []
                event("numpy file", "texts that end in NUL are refused")
            elif any(None in row.values() for _, row in rows):
                with pytest.raises(errors.InputError, match="nulls"):
                    io.to_npz(self.a, file, asked["box"])
                assert list(folder.iterdir()) == []
                event("numpy file", "nulls are refused")
            else:
                back = self._numpy_there_and_back(how, file, uri, asked["box"], bool(rows))
                if back is not None:
                    event("numpy file", how)
                    self._check_copy(back, bounds, rows, names if how == "npz" else names[:1], nan_is_null=False)
        finally:
            shutil.rmtree(folder)
            if gs.exists(uri, context=self.a.context):
                gs.delete(uri, context=self.a.context)

    def _numpy_there_and_back(self, how: str, file: Path, uri: str, box: Any, any_rows: bool) -> gs.Array | None:
        context = self.a.context
        if self.schema.sparse:
            assert io.to_npz(self.a, file, box) == [*self.a.dims, *self.a.schema_names]
            return io.from_npz(uri, file, schema=self.schema, sparse=True, context=context) if any_rows else None
        if how == "npz":
            assert io.to_npz(self.a, file, box, compressed=False) == self.a.schema_names
            gs.create(uri, self.schema, context=context)
            return io.from_npz(uri, file, box=box, context=context)
        name = self.a.schema_names[0]
        io.to_npy(self.a, file, box, name)
        gs.create(uri, self._part([name]), context=context)
        return io.from_npy(uri, file, box=box, context=context)

    def _sparse_grid(self, r: Random, file: Path, bounds: Bounds, box: Any, rows: Rows) -> None:
        """`to_npy` of a sparse array is what `to_dense` shows, with a value for what is empty or null."""
        shape = [hi - lo + 1 for lo, hi in bounds] if self.has_grids() else []
        fixed = [attr for attr in self.schema.attrs if attr.dtype == "string" or not dtypes.is_var(attr.dtype)]
        if not shape or not fixed or np.prod(np.array(shape, object)) > GRID_CELLS_MAX:
            return
        attr = r.choice(fixed)
        fill = r.choice([v for v in drawing.values_of(attr) if v != "NaT"])
        if attr.dtype == "string" and any(map(_ends_in_nul, [fill, *(row[attr.name] for _, row in rows)])):
            with pytest.raises(errors.InputError, match="NUL"):
                io.to_npy(self.a, file, box, attr.name, fill=fill)
            return
        io.to_npy(self.a, file, box, attr.name, fill=drawing._as_fill(attr.dtype, fill))
        cells = {place: row[attr.name] for place, row in rows}
        wanted = [fill if (value := cells.get(p, fill)) is None else value for p in self.model.places(bounds)]
        found = np.load(file)
        assert plain(attr.dtype, found) == wanted
        event("numpy file", "npy of cells")


def _ends_in_nul(value: Plain) -> bool:
    """Whether NumPy's texts of fixed width would drop the end of a value."""
    return isinstance(value, str) and value.endswith("\0")


def in_pandas(dtype: str, value: Plain, cell: Any) -> bool:
    """Whether pandas shows a value in plain form so."""
    if value is None or value == "NaT":
        return (
            cell is None
            or cell is pd.NaT
            or cell is pd.NA
            or (isinstance(cell, float) and cell != cell)
            or cell != cell
        )
    if isinstance(value, tuple):
        flat = np.ravel(cell) if dtypes.shape_of(dtype) else cell
        base = dtypes.base_of(dtype)
        parts = [complex(*one) for one in flat] if dtypes.is_complex(base) and np.ndim(flat[:1]) == 2 else flat
        return len(parts) == len(value) and all(map(in_pandas, [base] * len(value), value, parts))
    if dtypes.is_float(dtype):
        return repr(float(cell)) == value
    if dtypes.is_complex(dtype):
        return repr(complex(cell)) == value
    if dtypes.is_time(dtype):
        kind = np.datetime64 if dtype.startswith("datetime") else np.timedelta64
        found = cell.asm8 if hasattr(cell, "asm8") else kind(cell)
        return int(found.astype(dtype).view(np.int64)) == value
    if dtypes.is_fixed_bytes(dtype):
        return bytes(cell.rstrip(b"\0")) == value
    return not (isinstance(value, int) and isinstance(cell, float)) and bool(cell == value)


def _without_dictionary(column: Any) -> Any:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _is_number(attr: gs.Attr) -> bool:
    return dtypes.is_primitive(attr.dtype) and not dtypes.is_time(attr.dtype)


def _one_of(dtype: str, values: list[Plain], repeats: str) -> Any:
    """Of the values at one place the one to show."""
    found = unplain(dtype, values)
    if repeats == "sum" and len(values) > 1:
        return np.logical_or.reduce(found) if dtype == "bool" else np.add.reduce(found, dtype=found.dtype)
    return found[0 if repeats == "first" else -1]


def _same_but_zeros(found: Any, grid: Any) -> bool:
    """Whether two arrays differ by nothing but signs of zeros, which adding up zero loses."""
    return bool(np.array_equal(found, grid, equal_nan=found.dtype.kind in "fc"))


def _is_text(schema: gs.Schema, rows: Rows, names: list[str]) -> bool:
    """Whether all bytes among the values are text, as CSV needs it."""
    for name in names:
        if dtypes.base_of(schema.attr(name).dtype).startswith("bytes"):
            for _, row in rows:
                try:
                    (row[name] or b"").decode()  # type: ignore[union-attr]
                except UnicodeDecodeError:
                    return False
    return True


def _has_years(schema: gs.Schema, rows: Rows, names: list[str]) -> bool:
    """Whether all datetimes are of years of four digits, as ISO texts have them, and can be read again."""
    kinds = [(d.dtype, [place[i] for place, _ in rows]) for i, d in enumerate(schema.dims)]
    kinds += [(schema.attr(n).dtype, [row[n] for _, row in rows]) for n in names]
    for dtype, values in kinds:
        if dtype.startswith("datetime64"):
            seconds = np.timedelta64(1, dtypes.unit_of(dtype)) / np.timedelta64(1, "s")
            # Arrow writes nanoseconds in the first second that 64 bits have, and does not read them.
            if any(isinstance(v, int) and (abs(v) * seconds > 6e10 or abs(v) > 2**63 - 2 * 10**9) for v in values):
                return False
    return True
