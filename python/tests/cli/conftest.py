"""The command line, as tests call it."""

import pytest

from gridstone import cli


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes]):
    """Runs the command line: (exit code, standard output, standard error)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.run([str(a) for a in arguments])
        found = capfdbinary.readouterr()
        return code, found.out.decode(errors="replace"), found.err.decode()

    return run
