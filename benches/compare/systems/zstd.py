"""zstandard alone, by one thread or two: what the machine's cores gain where nothing else is done. Nothing is stored in
the clock: frames stay in memory, and are kept afterwards.
"""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inputs import Array, Box, Shape
from systems.base import DenseHandle, DenseSystem, threads_started

_LEVEL = 3
_BLOCK_BYTES = 1 << 20


class Dense(DenseSystem):
    """Blocks of whole rows, a frame each."""

    family, role, module = "zstd alone", "orientation", "zstandard"
    durability = "nothing is stored in the clock"
    settings = (
        f"python-zstandard, level {_LEVEL}, frames of {_BLOCK_BYTES >> 20} MiB of whole rows, in memory, by as many "
        "Python threads (the GIL is released) as the row says: tells what a second core of this machine gains"
    )

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import zstandard

        zstandard.ZstdDecompressor().decompress(zstandard.ZstdCompressor(level=_LEVEL).compress(b"warm"))
        self.frames: dict[Path, Any] = {}
        self.pool = threads_started(threads)

    def shared(self, work: Callable[[Any, Any], Any], things: Sequence[Any], tool: Callable[[], Any]) -> list[Any]:
        """What the work makes of each thing, by all threads, each with a tool of its own."""
        parts = [things[i :: self.threads] for i in range(self.threads)]
        found: list[Any] = [None] * len(things)

        def one(i: int) -> None:
            own = tool()
            found[i :: self.threads] = [work(own, thing) for thing in parts[i]]

        list(self.pool.map(one, range(self.threads)))
        return found

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        import zstandard

        rows = max(1, _BLOCK_BYTES // values[0].nbytes)
        blocks = [values[at : at + rows] for at in range(0, len(values), rows)]
        frames = self.shared(_compressed, blocks, lambda: zstandard.ZstdCompressor(level=_LEVEL))
        self.frames[folder] = {"rows": rows, "columns": values.shape[1], "frames": frames}

    def keep(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "frames").write_bytes(pickle.dumps(self.frames.pop(folder)))

    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> "_Dense":
        return _Dense(self, **pickle.loads((folder / "frames").read_bytes()))


class _Dense(DenseHandle):
    def __init__(self, system: Dense, rows: int, columns: int, frames: list[bytes]) -> None:
        self.system, self.rows, self.columns, self.frames = system, rows, columns, frames

    def read(self, box: Box) -> Array:
        """Decodes the frames that hold its rows, and takes its columns."""
        import zstandard

        rows, columns = box
        found = np.empty((rows.stop - rows.start, columns.stop - columns.start), np.int32)

        def taken(tool: Any, block: int) -> None:
            whole = np.frombuffer(tool.decompress(self.frames[block]), np.int32).reshape(-1, self.columns)
            first = block * self.rows
            low, high = max(rows.start, first), min(rows.stop, first + len(whole))
            found[low - rows.start : high - rows.start] = whole[low - first : high - first, columns]

        blocks = range(rows.start // self.rows, -(-rows.stop // self.rows))
        self.system.shared(taken, blocks, zstandard.ZstdDecompressor)
        return found


def _compressed(tool: Any, block: Array) -> Any:
    return tool.compress(memoryview(block).cast("B"))
