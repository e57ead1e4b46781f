"""Promise: whatever C calls with, it gets a status: no function crashes, hangs, or puts a result where it fails."""

import os
import random
import sys
from pathlib import Path

import pytest
from c_programs import Installed, run

HERE = Path(__file__).parent
DEEP = "GRIDSTONE_TEST_DEEP" in os.environ
CALLS = 20_000 if DEEP else 1_500


def seed() -> int:
    """That of the run, which a failure shows; else a new one."""
    return int(os.environ.get("GRIDSTONE_TEST_SEED") or random.SystemRandom().randrange(1_000_000))


@pytest.mark.parametrize("threads", [1, 4])
def test_bad_arguments_give_statuses(threads: int, installed: Installed, tmp_path: Path) -> None:
    library = installed.prefix / "lib" / "libgridstone.so"
    header = installed.prefix / "include" / "gridstone.h"
    command = [sys.executable, "-X", "faulthandler", HERE / "misuse.py", library, header]
    said = run([*command, seed(), CALLS // threads, threads], tmp_path, timeout=600).stdout.decode()
    counted = {int(status): int(times) for status, times in (pair.split(":") for pair in said.split())}
    # The draws reach what works, wrong arguments and wrong handles; all of them are many.
    assert min(counted[status] for status in (0, 1, 16)) > CALLS // 20, said
