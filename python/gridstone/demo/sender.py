"""A process that appends, run by the demonstration with a store, what it is, and a number.

It says that it is ready, and begins when a line comes, so that several begin at once.
"""

import sys
import time
from collections.abc import Sequence

import numpy as np

from ..stores import store
from . import swell


def buoy(uri: str, number: int) -> None:
    """Appends the blocks of one buoy. The last one is sent twice, as if its first answer had been lost."""
    array = store.open_array(uri, mode="r+")
    random = np.random.default_rng(number)
    _wait()
    # The first block of the first buoy made the array.
    for count in [*range(1 if number == 0 else 0, swell.BLOCKS), swell.BLOCKS - 1]:
        time.sleep(random.exponential(0.01))
        array.append(swell.block(number, count), axis="row", commit_key=f"buoy {number}, block {count}")


def camera(uri: str, frames: int) -> None:
    """Appends frames as they come."""
    array = store.open_array(uri, mode="r+")
    _wait()
    with array.writer(axis="frame", every=swell.TOGETHER, seconds=0.5) as writer:
        for number in range(swell.TOGETHER, frames):
            time.sleep(0.015)
            writer.append(swell.frame(number))


def _wait() -> None:
    print("ready", flush=True)
    if not sys.stdin.readline():
        sys.exit("the demonstration was given up")


def main(arguments: Sequence[str]) -> None:
    """A store, "buoy" or "camera", and the number of the buoy or of frames."""
    uri, kind, number = arguments
    {"buoy": buoy, "camera": camera}[kind](uri, int(number))
