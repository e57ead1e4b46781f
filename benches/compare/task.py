"""One process's part of the benchmark, and what all parts share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inputs import Inputs, Size

Sample = dict[str, Any]


class WrongResultError(Exception):
    """A system gave something other than NumPy."""


@dataclass(frozen=True)
class Task:
    """Where inputs and stores lie, which system works with how many threads, and whether it checks or times."""

    folder: Path
    size: Size
    system: Any
    check: bool
    threads: int = 2
    processes: int = 1

    @property
    def inputs(self) -> Inputs:
        """The input files."""
        return Inputs(self.folder / "inputs", self.size)

    @property
    def scratch(self) -> Path:
        """A folder that goes when the process ends."""
        return self.folder / "scratch"

    def store(self, state: str) -> Path:
        """The store that was built for reading, or to be copied before it is changed."""
        name = "".join(c if c.isalnum() else "_" for c in self.system.kept_as)
        return self.folder / "stores" / name / state


Procedure = Callable[[Task], Sample]
Builder = Callable[[Task, Path], None]


def expect(right: bool, what: str) -> None:
    """Raises a `WrongResultError` that says what differs."""
    if not right:
        raise WrongResultError(what)
