"""Loads read the next file while what came before is written: in order, bounded, and with the same outcome."""

import gzip
import threading
import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from places import Stores

import gridstone as gs
from gridstone import io
from gridstone.io import readahead as ahead
from gridstone.io.rejects import Rejected
from gridstone.io.table import sources
from gridstone.write.writer import Writer

WATCHDOG_S = 30
ONE, TWO = gs.Context(threads=1), gs.Context(threads=2)


def helpers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("gridstone-")]


def side_by_side(streams: list[Callable[[], Iterator[int]]], lanes: int, room: int) -> Generator[int, None, None]:
    return ahead.side_by_side(streams, lanes, room, lambda _: 1)


@pytest.mark.parametrize(("lanes", "room"), [(0, 1), (1, 1), (1, 3), (2, 4), (3, 9), (4, 0), (9, 90)])
def test_items_come_in_order_and_few_at_a_time(lanes: int, room: int) -> None:
    made: list[int] = []

    def numbers(first: int) -> Iterator[int]:
        for i in range(first, first + 10):
            made.append(i)
            yield i

    found = side_by_side([partial(numbers, first) for first in range(0, 50, 10)], lanes, room)
    for taken, i in enumerate(found):
        # Of each lane what its part of the room holds, and one more.
        assert i == taken and len(made) <= taken + 1 + lanes * (room // max(lanes, 1) + 1)
        time.sleep(0.001)
    assert sorted(made) == list(range(50)) and helpers() == []


def test_streams_that_come_next_are_made_meanwhile() -> None:
    """The first stream waits until the second has come to its end."""
    done = threading.Event()

    def first() -> Iterator[int]:
        assert done.wait(WATCHDOG_S), "the second stream is not made beside the first"
        yield 0

    def second() -> Iterator[int]:
        yield from (1, 2, 3)
        done.set()

    assert list(side_by_side([first, second], 2, 20)) == [0, 1, 2, 3] and helpers() == []


@pytest.mark.parametrize("lanes", [0, 1, 2, 3])
def test_an_exception_comes_behind_the_items_before_it(lanes: int) -> None:
    def broken(first: int) -> Iterator[int]:
        yield from range(first, first + 3)
        if first == 3:
            raise gs.errors.InputError("here")

    found = []
    with pytest.raises(gs.errors.InputError, match="here"):
        for i in side_by_side([partial(broken, first) for first in (0, 3, 6)], lanes, 20):
            found.append(i)
    assert found == [0, 1, 2, 3, 4, 5] and helpers() == []


def test_who_stops_early_leaves_no_thread_and_no_file_open() -> None:
    open_streams: list[int] = []

    def numbers() -> Iterator[int]:
        open_streams.append(1)
        try:
            yield from range(1_000_000)
        finally:
            open_streams.pop()

    for taken in (0, 1, 5):
        found = side_by_side([numbers] * 3, 2, 4)
        for _ in range(taken):
            next(found)
        found.close()
        assert helpers() == [] and open_streams == []
    with pytest.raises(ZeroDivisionError):
        for i in side_by_side([partial(range, 9), partial(range, 9)], 2, 4):  # type: ignore[list-item]
            i // 0
    assert helpers() == []


FILES, ROWS = 5, 20_000
SCHEMA = gs.Schema(
    [gs.Dim("x", (0, FILES * ROWS // 3)), gs.Dim("y", (0, 99), 10)],
    [gs.Attr("v", "float64"), gs.Attr("s", "string", nullable=True)],
    sparse=True,
    duplicates=True,
)


def tables() -> list[Any]:
    """Rows of which many share a place, so that the order in which they are loaded shows."""
    rng, made = np.random.default_rng(7), []
    for file in range(FILES):
        v = file * ROWS + np.arange(ROWS)
        s = pa.array([None if i % 7 == 0 else f"{file}-{i}" for i in range(ROWS)])
        made.append(pa.table({"x": v // 3, "y": rng.integers(0, 100, ROWS), "v": v / 8, "s": s}))
    return made


def written(folder: Path, form: str, rows: int = 3_000) -> list[Path]:
    """The tables as files, in groups of so many rows; of CSV some are compressed."""
    paths = []
    for i, table in enumerate(tables()):
        path = folder / f"{i}.{form}"
        if form == "parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=rows)
        elif form == "feather":
            pyarrow.feather.write_feather(table, path, chunksize=rows)
        else:
            lines = [",".join(["x", "y", "v", "s"])]
            lines += [f"{x},{y},{v!r},{s or ''}" for x, y, v, s in zip(*table.to_pydict().values(), strict=True)]
            data = "\n".join(lines).encode()
            path = path.with_suffix(".csv.gz") if i % 2 else path
            path.write_bytes(gzip.compress(data, 1) if i % 2 else data)
        paths.append(path)
    return paths


def load(form: str, uri: Any, paths: list[Path], context: gs.Context, **options: Any) -> gs.Array:
    by = {"csv": io.from_csv, "parquet": io.from_parquet, "feather": io.from_feather}
    if form == "csv":
        options |= {"block_bytes": 100_000}
    return by[form](uri, paths, context=context, **options)


@pytest.mark.parametrize("form", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("told", [True, False], ids=["schema", "inferred"])
def test_several_files_load_as_with_one_thread(tmp_path: Path, stores: Stores, form: str, told: bool) -> None:
    paths = written(tmp_path, form)
    options: dict[str, Any] = {"schema": SCHEMA} if told else {"dims": ["x", "y"]}
    one, two = (load(form, stores(f"ahead-{n}"), paths, c, overwrite=True, **options) for n, c in enumerate((ONE, TWO)))
    assert one.schema == two.schema
    found = two.read().to_arrow()
    assert found.equals(one.read().to_arrow()) and found.num_rows == FILES * ROWS
    places = found.select(["x", "y"]).to_pandas().apply(tuple, axis=1)
    values = found["v"].to_pylist()
    again = [i for i in range(1, len(values)) if places[i] == places[i - 1]]
    assert len(again) > 100 and all(values[i] > values[i - 1] for i in again), (
        "cells of a place are in order of the rows"
    )
    kept = load(form, stores("ahead-first"), paths, TWO, overwrite=True, schema=unique(), dedup="first")
    assert kept.read(attrs="v").to_arrow().equals(first_of(found)) and helpers() == []


def unique() -> gs.Schema:
    return gs.Schema(SCHEMA.dims, SCHEMA.attrs, sparse=True)


def first_of(found: Any) -> Any:
    """The first row of each place, without text."""
    frame = found.select(["x", "y", "v"]).to_pandas().drop_duplicates(["x", "y"], keep="first")
    return pa.Table.from_pandas(frame, preserve_index=False).cast(gs.Schema(SCHEMA.dims, SCHEMA.attrs[:1]).to_arrow())


@pytest.mark.parametrize("form", ["csv", "parquet", "feather"])
def test_the_next_file_is_read_while_the_one_before_is_written(
    tmp_path: Path, stores: Stores, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer waits at the first rows until another file has been opened, which happens on another thread."""
    paths = written(tmp_path, form, ROWS)
    if form != "csv":  # a piece per file
        monkeypatch.setattr(sources, "_PIECE_ROWS", ROWS)
    opened = threading.Event()
    append, plain_open = Writer.append_columns, Path.open

    def waiting(self: Writer, *given: Any) -> None:
        assert opened.wait(WATCHDOG_S), "nothing is read while the writer writes"
        append(self, *given)

    def watched(path: Path) -> None:
        if path == paths[1] and threading.current_thread() is not threading.main_thread():
            opened.set()

    def opening(self: Path, *given: Any, **more: Any) -> Any:
        watched(self)
        return plain_open(self, *given, **more)

    plain = sources.Scratch.plain

    def unpacked(self: Any, path: Path) -> Path:
        watched(path)
        return plain(self, path)

    monkeypatch.setattr(Writer, "append_columns", waiting)
    monkeypatch.setattr(Path, "open", opening)
    monkeypatch.setattr(sources.Scratch, "plain", unpacked)
    uri = stores(f"ahead-overlap-{form}")
    options = {"block_bytes": 1 << 20} if form == "csv" else {}
    by = {"csv": io.from_csv, "parquet": io.from_parquet, "feather": io.from_feather}
    array = by[form](uri, paths, schema=SCHEMA, context=TWO, overwrite=True, **options)
    assert len(array.read()) == FILES * ROWS


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_wrong_first_is_told(tmp_path: Path, stores: Stores, threads: int) -> None:
    """A file that cannot be read hides no mistake in a row before it, however far ahead the files are read."""
    context = gs.Context(threads=threads)
    paths = written(tmp_path, "csv")
    paths[0].write_bytes(paths[0].read_bytes() + b"\nno,0,0,\n")
    paths[1].write_bytes(paths[1].read_bytes()[:-30])
    for block_bytes in (1_000, 100_000, None):
        with pytest.raises(gs.errors.InputError, match=rf"0\.csv, line {ROWS + 2}, column 'x'"):
            io.from_csv(stores("wrong"), paths, schema=SCHEMA, context=context, block_bytes=block_bytes)
    assert not gs.exists(stores("wrong"))
    rejected: list[Rejected] = []
    with pytest.raises(gs.errors.InputError, match=r"1\.csv\.gz cannot be decompressed"):
        io.from_csv(stores("wrong"), paths, schema=SCHEMA, context=context, on_error="collect", rejected=rejected)
    assert not gs.exists(stores("wrong")) and helpers() == []
    with pytest.raises(gs.errors.InputError, match=r"4\.parquet, row 17, column 'y'.* outside the domain"):
        parquet = written(tmp_path, "parquet")
        table = pyarrow.parquet.read_table(parquet[4])
        y = table["y"].to_pylist()
        y[17] = 100
        pyarrow.parquet.write_table(table.set_column(1, "y", pa.array(y)), parquet[4])
        io.from_parquet(stores("wrong"), parquet, schema=SCHEMA, context=context)
    assert not gs.exists(stores("wrong")) and helpers() == []
