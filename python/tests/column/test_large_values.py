"""Values of a mebibyte by the hundred in one tile: blocks have fewer cells then, and everything goes on as before."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate import AT_GATE

import gridstone as gs

pa = pytest.importorskip("pyarrow")

MIB = 1 << 20
SIZE = MIB // 4 if AT_GATE else MIB
"""Of a value: more than four blocks of them are a tile, where a limit of cells alone would make two."""
COUNT = 1_100


@functools.cache
def repeated(letter: int, count: int) -> bytes:
    return bytes([letter]) * count


def of_row(row: int) -> bytes:
    """The value of a row; every hundredth is short."""
    return repeated(row % 31, SIZE if row % 100 else 7)


def written(count: int) -> Any:
    values = np.empty(count, object)
    for row in range(count):
        values[row] = of_row(row)
    return values


def check(array: gs.Array, count: int = COUNT) -> None:
    """By parts, so that not all of it is in memory at once."""
    for low in range(0, count, 200):
        for row, found in enumerate(array[low : low + 200], start=low):
            assert found == of_row(row), row


def blocks_of(array: gs.Array) -> int:
    return array.verify().blocks


def test_one_dense_tile_of_more_than_a_block_holds(tmp_path: Path) -> None:
    uri = str(tmp_path / "large.gs")
    schema = gs.Schema([gs.Dim("i", (0, COUNT - 1))], [gs.Attr("v", "bytes", filters="zstd:1")])
    array = gs.create(uri, schema)
    array[...] = written(COUNT)
    check(array)
    # A cell takes a block of at most 64 MiB besides the largest value, also with a budget below that.
    small = gs.open(uri, context=gs.Context(memory_budget=32 * MIB, threads=1))
    assert isinstance(small, gs.Array) and small[COUNT - 1] == of_row(COUNT - 1)

    array.write_cells({"i": np.arange(3)}, {"v": written(3)})
    array[10:20] = written(20)[10:20]
    report = array.consolidate("all")
    assert (report.fragments_before, report.fragments_after, report.overtaken) == (3, 1, 0)
    array.refresh()
    check(array)
    assert blocks_of(array) >= COUNT * SIZE // (66 * MIB)

    target = tmp_path / "large.arrow"
    assert gs.io.to_feather(array, target) == COUNT
    with pa.memory_map(str(target)) as source:
        reader = pa.ipc.open_file(source)
        row = 0
        for batch in (reader.get_batch(number) for number in range(reader.num_record_batches)):
            for found in batch.column("v"):
                assert found.as_buffer().equals(pa.py_buffer(of_row(row)))
                row += 1
    assert row == COUNT


def test_a_sparse_array_of_large_values(tmp_path: Path) -> None:
    """A tile of 1,100 cells was one block of 1,024 and one of 76, the first of 1 GiB."""
    uri = str(tmp_path / "large.gs")
    schema = gs.Schema(
        [gs.Dim("i", (0, 10 * COUNT))], [gs.Attr("v", "bytes", filters="zstd:1", nullable=True)], sparse=True
    )
    array = gs.create(uri, schema)
    array.write_cells({"i": np.arange(COUNT)[::-1]}, {"v": written(COUNT)[::-1]})
    assert blocks_of(array) >= COUNT * SIZE // (66 * MIB)
    for low in range(0, COUNT, 200):
        cells = array.read((slice(low, low + 200),))
        rows = range(low, min(low + 200, COUNT))
        assert all(found == of_row(row) for found, row in zip(cells["v"], rows, strict=True))
