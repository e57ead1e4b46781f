"""What a context in C is given, a log and options of a bucket, and what is asked: by floats, by time, for an errno."""

import errno
import json
import uuid
from pathlib import Path

import numpy as np
import pytest
from buckets import BUCKET, options
from c_programs import C, Installed, run

import gridstone as gs


@pytest.fixture(scope="module")
def program(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("context") / "context"
    return installed.compile("gcc", Path(__file__).parent / "context.c", made, C)


def check(program: Path, installed: Installed, uri: str, folder: Path, *pairs: str, **variables: str) -> None:
    """Runs the program; compares what it found, what it stored and what was logged."""
    too_long = folder / ("n" * 300) / "store.gs"
    environment = {
        name: value for name, value in installed.environment().items() if not name.startswith(("AWS_", "AZ"))
    }
    said = run([program, uri, folder / "log", too_long, *pairs], folder, env=environment | variables).stdout.decode()
    # Cells: all, those at both ends of a box, none between them. Each commit by its time, and just before it.
    assert said.splitlines() == ["3 2 0", "2 1", "3 2", "4 3", f"1 {errno.ENAMETOOLONG}"]

    events = [line.split("\t") for line in (folder / "log").read_text(encoding="utf-8").splitlines()]
    assert all(len(event) == 4 and int(event[0]) in (10, 20, 30) for event in events)
    assert all(isinstance(json.loads(details), dict) for _, _, _, details in events)
    assert sum(topic == "commit" for _, topic, _, _ in events) >= 4, events


def test_a_store_of_floats_with_a_log(program: Path, installed: Installed, tmp_path: Path) -> None:
    uri = str(tmp_path / "floats.gs")
    check(program, installed, uri, tmp_path)
    stored = gs.open(uri)
    found = stored.read().to_numpy()
    assert found["x"].tolist() == [0.0, 1 / 3.0, 2 / 3.0] and found["v"].tolist() == [0, 1, 2]
    assert found["y"].tolist() == (np.arange(3, dtype=np.float32) + np.float32(0.1)).tolist()
    x, y = stored.schema.dims
    assert (x.domain, x.tile, y.domain, str(y.dtype)) == ((-10.0, 10.5), 2.5, (-1e3, 1e3), "float32")


@pytest.mark.skipif(BUCKET is None, reason="no object store: GRIDSTONE_TEST_BUCKET is not set")
def test_a_store_in_a_bucket_by_options(program: Path, installed: Installed, tmp_path: Path) -> None:
    uri = f"{BUCKET}/c/{uuid.uuid4().hex}.gs"
    pairs = [word for pair in options().items() for word in pair]
    try:
        check(program, installed, uri, tmp_path, *pairs)
        assert gs.open(uri).read().to_numpy()["v"].tolist() == [0, 1, 2]
    finally:
        if gs.exists(uri):
            gs.delete(uri)
