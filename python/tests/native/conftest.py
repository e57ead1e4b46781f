"""The installed C interface: that of GRIDSTONE_C_PREFIX, which `make test` sets, or one that is installed here."""

import os
from pathlib import Path

import pytest
from c_programs import Installed, install


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The C interface under a prefix."""
    given = os.environ.get("GRIDSTONE_C_PREFIX")
    return Installed(Path(given)) if given else install(tmp_path_factory.mktemp("c") / "prefix")
