"""What the demonstration found."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError

Tell = Callable[[str], None]


@dataclass
class Outcome:
    """What the demonstration found, in plain values."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    """One per step: name, seconds, and counters."""
    found: list[str] = field(default_factory=list)
    """Sentences, each written after what it says was checked."""
    pictures: list[str] = field(default_factory=list)
    """The files drawn."""
    stores: list[str] = field(default_factory=list)
    """The stores made."""

    @contextmanager
    def step(self, name: str, tell: Tell) -> Iterator[dict[str, Any]]:
        """Times a step; counters are put into the dict it gives."""
        tell(name)
        counters: dict[str, Any] = {}
        begin = time.perf_counter()
        yield counters
        self.steps.append({"step": name, "seconds": time.perf_counter() - begin, **counters})


def check(holds: bool, uri: str, what: str) -> None:
    """An `InputError` unless it holds."""
    if not holds:
        raise InputError(f"{uri!r} does not read back as it was written: {what}; check the store with Array.verify()")
