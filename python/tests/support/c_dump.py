"""What the program `native/dump.c` is asked, and the cells that it gives."""

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

Cell = bytes | None
ROOM = 1 << 20
ROW, ANY, GLOBAL = 0, 4, 3


@dataclass(frozen=True)
class Asked:
    """A read: the columns are names, widths (0: values vary in length), and whether values may be null."""

    store: str
    path: str
    version: int
    columns: Sequence[tuple[str, int, bool]]
    order: int = ROW
    box: str = "whole"
    ends: Sequence[str] = ()
    room: int = ROOM

    def line(self) -> str:
        words = [self.store, self.path, self.version, self.order, self.room, self.box, len(self.ends), *self.ends]
        words += [word for name, width, nullable in self.columns for word in (name, width, int(nullable))]
        assert not any("\t" in str(word) or "\n" in str(word) for word in words)
        return "\t".join(map(str, words)) + "\n"


@dataclass
class Column:
    """The parts of a column, one of each portion."""

    values: list[bytes] = field(default_factory=list)
    offsets: list[np.ndarray] = field(default_factory=list)
    validity: list[np.ndarray] = field(default_factory=list)


@dataclass
class Answer:
    portions: list[int]
    columns: dict[str, Column]

    def cells(self, name: str, width: int) -> list[Cell]:
        """The values of a column, each as its bytes."""
        column, cells = self.columns[name], []
        for place, count in enumerate(self.portions):
            values = column.values[place]
            ends = column.offsets[place] if width == 0 else np.arange(count + 1) * width
            assert ends[0] == 0 and ends[-1] == len(values) and (np.diff(ends.astype(np.int64)) >= 0).all()
            valid = column.validity[place] if column.validity else np.ones(count, np.uint8)
            assert np.isin(valid, (0, 1)).all()
            bounds = zip(ends[:-1].tolist(), ends[1:].tolist(), valid.tolist(), strict=True)
            cells += [values[first:last] if is_valid else None for first, last, is_valid in bounds]
        return cells


def dumped(program: Path, environment: dict[str, str], asked: Sequence[Asked]) -> list[Answer]:
    """The answers, of one process."""
    lines = "".join(one.line() for one in asked).encode()
    done = subprocess.run([program], input=lines, capture_output=True, env=environment)
    assert done.returncode == 0, (done.returncode, done.stderr.decode(errors="replace"))
    answers, rest = [], memoryview(done.stdout)
    for one in asked:
        answer, rest = _parsed(one, rest)
        answers.append(answer)
    assert len(rest) == 0
    return answers


def _parsed(asked: Asked, data: memoryview) -> tuple[Answer, memoryview]:
    """The answer that some output begins with, and the output behind it."""
    at = 0

    def take(count: int) -> bytes:
        nonlocal at
        at += count
        assert at <= len(data)
        return bytes(data[at - count : at])

    answer = Answer([], {name: Column() for name, *_ in asked.columns})
    while count := struct.unpack("<Q", take(8))[0]:
        answer.portions.append(count)
        for name, width, nullable in asked.columns:
            column = answer.columns[name]
            (filled,) = struct.unpack("<Q", take(8))
            column.values.append(take(filled))
            if width == 0:
                column.offsets.append(np.frombuffer(take(8 * (count + 1)), np.uint64))
            if nullable:
                column.validity.append(np.frombuffer(take(count), np.uint8))
    return answer, data[at:]
