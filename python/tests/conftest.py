"""What the tests share: profiles of Hypothesis, places for stores, real data."""

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from buckets import BUCKET, variables_of
from hypothesis import HealthCheck, settings

import gridstone as gs

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
settings.register_profile("ci", max_examples=60, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("gate", settings.get_profile("ci"), derandomize=True)
settings.register_profile("deep", max_examples=3_000, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A shell without job control has what runs in its background ignore interrupts, which tests send themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


if BUCKET:
    os.environ |= variables_of(BUCKET)


@pytest.fixture(params=["local", "memory", "bucket"])
def store_uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place for a store: in a folder, in memory, and in a bucket where there is a server."""
    if request.param == "bucket":
        uri = request.getfixturevalue("bucket_uri")
    else:
        uri = str(tmp_path / "a.gs") if request.param == "local" else f"mem://{uuid.uuid4()}"
    yield uri
    if request.param != "local" and gs.exists(uri):
        gs.delete(uri)


@pytest.fixture
def bucket_uri() -> str:
    """A fresh place in a bucket."""
    if not BUCKET:
        pytest.skip("no object store: GRIDSTONE_TEST_BUCKET is not set; cargo xtask s3 -- COMMAND starts a server")
    return f"{BUCKET}/python/{uuid.uuid4()}"


@pytest.fixture
def memory_uri() -> str:
    """A fresh place in memory, for examples of Hypothesis."""
    return f"mem://{uuid.uuid4()}"


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real files: GRIDSTONE_TEST_DATA, or shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("GRIDSTONE_TEST_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set GRIDSTONE_TEST_DATA to its folder")
    return folder
