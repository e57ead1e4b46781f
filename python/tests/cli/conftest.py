"""What the tests of the command line share."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gridstone import cli

PROGRAM = Path(__file__).parents[3] / "benches" / "compare"


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes]):
    """Runs the command line: (exit code, standard output, standard error)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.run([str(a) for a in arguments])
        found = capfdbinary.readouterr()
        return code, found.out.decode(errors="replace"), found.err.decode()

    return run


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the benchmark's own modules importable, for one test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PROGRAM))
    yield
    for name in set(sys.modules) - before:
        if str(PROGRAM) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
