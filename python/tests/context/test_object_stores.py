"""Object stores: options, what is shown and pickled of them, errors; beside a server writers, forks, credentials."""

import multiprocessing
import os
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import buckets
import numpy as np
import pytest

import gridstone as gs
from gridstone import errors

WRITERS, WRITES = 16, 8
WATCHDOG_S = 120
SECRETS = {"key": "AKID", "secret": "hunter2", "token": "hunter3"}
SCHEMA = gs.Schema(
    [gs.Dim("writer", (0, WRITERS - 1), 1), gs.Dim("i", (0, WRITES - 1), 4)], [gs.Attr("v", "int64")], sparse=True
)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that says nothing about object stores."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)
    return monkeypatch


def test_options_are_kept_and_credentials_not_shown() -> None:
    context = gs.Context(storage_options={**SECRETS, "Region": "eu-1", "timeout": 2.5, "anon": False})
    assert context.storage_options == {"key": "AKID", "region": "eu-1", "timeout": "2.5", "anon": "false"}
    shown = repr(context)
    assert "hunter" not in shown and "'secret': '...'" in shown and "eu-1" in shown
    assert "hunter" not in repr(context._given)
    nested = gs.Context(storage_options={"client_kwargs": {"endpoint_url": "http://x"}, "key": None})
    assert nested.storage_options == {"endpoint_url": "http://x"}
    of_obstore = {
        "client_options": {"connect_timeout": timedelta(seconds=2), "timeout": "30s"},
        "retry_config": {"max_retries": 3},
        "region": "r",
    }
    assert gs.Context(storage_options=of_obstore).storage_options == {
        "connect_timeout": "2.0", "timeout": "30s", "retries": "3", "region": "r",
    }  # fmt: skip
    assert gs.exists("mem://nothing", context=gs.Context(storage_options={"retry_config": {}})) is False
    assert gs.Context(storage_options=SECRETS) == gs.Context(storage_options=dict(reversed(SECRETS.items())))
    assert gs.Context(storage_options=SECRETS) != gs.Context(storage_options={**SECRETS, "secret": "other"})
    assert "storage_options" not in repr(gs.Context())


@pytest.mark.parametrize(
    "wrong",
    [
        "region",
        {"region": ["a"]},
        {"client_kwargs": 1},
        {"region": "a", "client_kwargs": {"region": "b"}},
        {"client_options": {"timeout": 1}, "client_kwargs": {"timeout": 2}},
        {"retry_config": {"max_retries": 1, "backoff": {"base": 2}}},
        {"retry_config": {"max_retries": 1}, "retries": 2},
    ],
)
def test_options_of_the_wrong_shape_are_refused(wrong: object) -> None:
    with pytest.raises(errors.InputError, match=r"storage.option"):
        gs.Context(storage_options=wrong)  # type: ignore[arg-type]


def test_an_unknown_option_names_those_there_are() -> None:
    with pytest.raises(errors.InputError, match=r"endpont_url.*endpoint_url"):
        gs.exists("s3://box/a", context=gs.Context(storage_options={"endpont_url": "http://x"}))
    with pytest.raises(errors.InputError, match=r"account_key.*s3://"):
        gs.exists("s3://box/a", context=gs.Context(storage_options={"account_key": "x"}))


@pytest.mark.parametrize("uri", ["s3://box", "s3:///key", "gs://", "az://box/", "s3://box/a?b=1", "s3://box/a//b"])
def test_a_uri_names_bucket_and_key(uri: str) -> None:
    with pytest.raises(errors.InputError, match="://bucket/key"):
        gs.open(uri)


def test_credentials_are_not_pickled(bare: pytest.MonkeyPatch) -> None:
    context = gs.Context(storage_options={**SECRETS, "endpoint_url": "http://127.0.0.1:9", "retries": 0})
    bytes_ = pickle.dumps(context)
    assert b"hunter" not in bytes_ and b"AKID" not in bytes_
    back = pickle.loads(bytes_)
    assert back.storage_options == {"endpoint_url": "http://127.0.0.1:9", "retries": "0"}
    assert back != context and "'secret': '...'" in repr(back)
    assert pickle.loads(pickle.dumps(back)) == back
    with pytest.raises(errors.AccessError, match=r"secret, token .* never pickled.*AWS_SECRET_ACCESS_KEY"):
        gs.open("s3://box/a", context=back)
    bare.setenv("AWS_ACCESS_KEY_ID", "AKID")
    bare.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    with pytest.raises(errors.StorageError, match="endpoint_url"):
        gs.open("s3://box/a", context=back)
    public = gs.Context(storage_options={"anon": True, "region": "eu-1"})
    assert pickle.loads(pickle.dumps(public)) == public


def test_a_store_that_is_not_reached_says_so(bare: pytest.MonkeyPatch) -> None:
    options = {**SECRETS, "endpoint_url": "http://127.0.0.1:9", "retries": 1}
    with pytest.raises(errors.StorageError, match=r"s3://box was not reached: check endpoint_url") as caught:
        gs.open("s3://box/a", context=gs.Context(storage_options=options))
    assert "hunter" not in str(caught.value)


def test_options_reach_the_server(bucket_uri: str, bare: pytest.MonkeyPatch) -> None:
    context = gs.Context(storage_options=buckets.options())
    gs.array(bucket_uri, np.arange(10), context=context)
    assert gs.open(bucket_uri, context=context)[3] == 3
    bucket, scheme = "/".join(bucket_uri.split("/")[:3]), bucket_uri.split(":")[0]
    wrong = gs.Context(storage_options=buckets.options_of_a_stranger())
    with pytest.raises(errors.AccessError, match=f"access to {bucket} was refused"):
        gs.open(bucket_uri, context=wrong)
    missing = bucket_uri.replace(bucket, f"{scheme}://no-such-bucket")
    with pytest.raises(errors.NotFoundError, match=rf"there is no {scheme}://no-such-bucket"):
        gs.array(missing, np.arange(10), context=context)
    with pytest.raises(errors.NotFoundError, match="no-such-bucket"):
        gs.open(missing, context=context)
    gs.delete(bucket_uri, context=context)
    assert not gs.exists(bucket_uri, context=context)


def test_large_fragments_are_sent_in_parts_and_read_in_ranges(bucket_uri: str) -> None:
    values = np.random.default_rng(5).integers(0, 2**62, (2_000, 1_500))
    a = gs.array(bucket_uri, values, tile=(500, 500))
    assert a.nbytes > 2 * (8 << 20)
    again = gs.open(bucket_uri)
    assert np.array_equal(again[700:900, 1_100:1_400], values[700:900, 1_100:1_400])
    assert again[1_999, 1_499] == values[1_999, 1_499]
    assert np.array_equal(again[...], values)
    assert again.verify()["damage"] == []


def commit_cells(uri: str, writer: int) -> list[int]:
    """One writer's commits, one cell each; the versions that they made."""
    a = gs.open(uri, mode="r+", context=gs.Context("64MiB", 1))
    return [a.write_cells({"writer": [writer], "i": [i]}, [1_000 * writer + i]) for i in range(WRITES)]


def check_cells(uri: str) -> None:
    a = gs.open(uri)
    found = a.read()
    expected = [1_000 * writer + i for writer in range(WRITERS) for i in range(WRITES)]
    assert sorted(found["v"].tolist()) == expected
    assert a.verify()["damage"] == []


def test_sixteen_threads_lose_nothing(bucket_uri: str) -> None:
    gs.create(bucket_uri, SCHEMA)
    with ThreadPoolExecutor(WRITERS) as pool:
        made = list(pool.map(lambda writer: commit_cells(bucket_uri, writer), range(WRITERS), timeout=WATCHDOG_S))
    assert all(versions == sorted(set(versions)) for versions in made)
    check_cells(bucket_uri)


def test_sixteen_processes_lose_nothing(bucket_uri: str) -> None:
    gs.create(bucket_uri, SCHEMA)
    with multiprocessing.get_context("spawn").Pool(WRITERS) as pool:
        made = pool.starmap_async(commit_cells, [(bucket_uri, writer) for writer in range(WRITERS)]).get(WATCHDOG_S)
    versions = [version for of_one in made for version in of_one]
    assert sorted(versions) == list(range(2, WRITERS * WRITES + 2)), "every commit is a version of its own"
    check_cells(bucket_uri)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_store_is_used_on_both_sides_of_a_fork(bucket_uri: str) -> None:
    a = gs.array(bucket_uri, np.arange(200_000).reshape(400, 500), tile=(100, 100))
    assert a[5, 5] == 2_505
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(WATCHDOG_S)
            assert a[7, 7] == 3_507 and gs.open(bucket_uri)[399, 499] == 199_999
            a[0, 0] = 77
            status = 0
        finally:
            os._exit(status)
    assert a[8, 8] == 4_008, "the parent goes on meanwhile"
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    a.refresh()
    assert a[0, 0] == 77
