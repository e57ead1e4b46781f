"""What the tests share: profiles of Hypothesis, places for stores, real data."""

import contextlib
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from buckets import BUCKET, KINDS, variables_of
from hypothesis import HealthCheck, is_hypothesis_test, settings
from places import Stores

with contextlib.suppress(ImportError):
    # Its filters are registered first: those that netCDF4 brings are of another HDF5 library.
    import hdf5plugin  # noqa: F401

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
settings.register_profile("ci", max_examples=60, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("gate", settings.get_profile("ci"), max_examples=30, derandomize=True)
settings.register_profile("deep", max_examples=3_000, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A shell without job control has what runs in its background ignore interrupts, which tests send themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Output in a pipe is as wide as its content unless COLUMNS is set, which pytest-xdist does in its workers.
os.environ.pop("COLUMNS", None)


if BUCKET:
    os.environ |= variables_of(BUCKET)


# A commit to a bucket is some requests: of the examples of Hypothesis it gets a twelfth, of the cases of a test five.
BUCKET_EXAMPLES = 12
BUCKET_EXAMPLES_MIN = 3
BUCKET_CASES = 5
DEEP = "GRIDSTONE_TEST_DEEP" in os.environ


def pytest_report_header() -> str:
    absent = "none: GRIDSTONE_TEST_BUCKET is not set; cargo xtask s3 -- COMMAND starts a server"
    return f"stores in folders, in memory, in the bucket {BUCKET or absent}"


@pytest.fixture
def stores_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Stores]]:
    """Gives places of the kind that is asked for."""
    given: list[Stores] = []

    def of(kind: str) -> Stores:
        if kind == "bucket":
            root = f"{request.getfixturevalue('bucket_uri')}/{len(given)}"
        else:
            root = str(tmp_path_factory.mktemp("stores")) if kind == "local" else f"mem://{uuid.uuid4()}"
        given.append(Stores(kind, root))
        return given[-1]

    yield of
    for places in given:
        places.clear()


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, stores_of: Callable[[str], Stores]) -> Stores:
    """Places for stores: in a folder, in memory, and in a bucket where there is a server.

    What looks at the files of a store takes `tmp_path` instead.
    """
    return stores_of(request.param)


@pytest.fixture
def store_uri(stores: Stores) -> str:
    """A place for a store on each of these."""
    return stores("store")


@pytest.fixture
def between_processes(stores: Stores) -> None:
    """For tests that open a store in other processes, which do not share memory."""
    if stores.kind == "memory":
        pytest.skip("stores in memory are those of one process")


def _on_bucket(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and "bucket" in callspec.id.replace("-to-", "-").split("-")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves to the bucket, of a test with more than BUCKET_CASES cases, one in N: the first, and every N-th."""
    if DEEP:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if _on_bucket(item):
            cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    left_out = set()
    for of_test in cases.values():
        # An odd step does not leave out a whole column of cases that differ in two ways.
        step = -(-len(of_test) // BUCKET_CASES) | 1
        left_out |= {item for place, item in enumerate(of_test) if place % step}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fewer examples on the bucket. Hypothesis binds settings when it decorates, so they are exchanged for the call."""
    if not (_on_bucket(item) and is_hypothesis_test(item.obj)):
        return (yield)
    test, usual = item.obj, item.obj._hypothesis_internal_use_settings
    few = max(usual.max_examples // BUCKET_EXAMPLES, BUCKET_EXAMPLES_MIN)
    test._hypothesis_internal_use_settings = settings(usual, max_examples=few)
    try:
        return (yield)
    finally:
        test._hypothesis_internal_use_settings = usual


@pytest.fixture
def bucket_uri() -> str:
    """A fresh place in a bucket."""
    if not BUCKET:
        pytest.skip("no object store: GRIDSTONE_TEST_BUCKET is not set; cargo xtask s3 -- COMMAND starts a server")
    return f"{BUCKET}/python/{uuid.uuid4()}"


@pytest.fixture
def memory_uri() -> str:
    """A fresh place in memory, for what is the same in every store."""
    return f"mem://{uuid.uuid4()}"


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real files: GRIDSTONE_TEST_DATA, or shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("GRIDSTONE_TEST_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set GRIDSTONE_TEST_DATA to its folder")
    return folder
