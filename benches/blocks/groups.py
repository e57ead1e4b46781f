"""How long a question with many groups takes in little memory, and how much memory that is.

    python benches/blocks/groups.py --groups 20000000 --budget 256MiB --how stream

Writes an array with a cell per group, and as many again of random groups, in a temporary folder. Another process asks,
and its greatest resident set is measured from after the imports on.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import gridstone as gs

_PIECE = 2_000_000


def write(folder: Path, groups: int) -> None:
    """Cells whose groups come in no order."""
    dims, attrs = [gs.Dim("x", (0, 2 * groups), dtype="int64")], [gs.Attr("k", "int64"), gs.Attr("v", "int32")]
    array = gs.create(folder / "a.gs", gs.Schema(dims, attrs, sparse=True, capacity=100_000))
    rng = np.random.default_rng(1)
    keys = np.concatenate([rng.permutation(groups), rng.integers(0, groups, groups)])
    with array.writer() as writer:
        for first in range(0, len(keys), _PIECE):
            part = keys[first : first + _PIECE]
            values = (part % 1000).astype("int32")
            writer.append({"x": np.arange(first, first + len(part))}, {"k": part, "v": values})


def ask(folder: Path, groups: int, budget: str, how: str) -> None:
    """Asks, and checks what comes."""
    array = gs.open(folder / "a.gs", context=gs.Context(memory_budget=budget))
    array.aggregate({"n": "count(*)"}, box={"x": (0, 10)})
    before, begun = _peak(), time.perf_counter()
    asked = {"n": "count(*)", "total": "sum(v)"}
    if how == "stream":
        stream = array.aggregate(asked, by="k", stream=True)
        read, rows, cells = time.perf_counter() - begun, 0, 0
        for batch in stream:
            keys = batch["k"].to_numpy()
            assert keys[0] == rows and keys[-1] == rows + len(keys) - 1
            counts = batch["n"].to_numpy()
            assert np.array_equal(batch["total"].to_numpy(), keys % 1000 * counts)
            rows, cells = rows + len(keys), cells + int(counts.sum())
        assert (rows, cells) == (groups, 2 * groups)
        print(f"all cells were read after {read:.1f} s, {stream.stats['bytes_spilled'] / 2**20:.0f} MiB were spilled")
    else:
        made = array.aggregate(asked, by="k", to=folder / "b.gs")
        print(f"{array.stats['bytes_spilled'] / 2**20:.0f} MiB were spilled while cells were read")
        assert made.aggregate({"n": "sum(n)"})["n"][0] == 2 * groups
    took, grown = time.perf_counter() - begun, (_peak() - before) / 2**20
    used = array._context.peak_bytes / 2**20
    print(f"{how}: {groups} groups in {took:.1f} s; the process grew by {grown:.0f} MiB, the budget by {used:.0f} MiB")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Runs both parts in processes of their own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=20_000_000)
    parser.add_argument("--budget", default="256MiB")
    parser.add_argument("--how", choices=["stream", "to"], default="stream")
    parser.add_argument("--part", choices=["write", "ask"])
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.part == "write":
        write(given.folder, given.groups)
    elif given.part == "ask":
        ask(given.folder, given.groups, given.budget, given.how)
    else:
        with tempfile.TemporaryDirectory() as folder:
            for part in ("write", "ask"):
                subprocess.run([sys.executable, *sys.argv, "--part", part, "--folder", folder], check=True)


if __name__ == "__main__":
    main()
