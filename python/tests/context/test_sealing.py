"""Sealed stores: keys in every form, in contexts and in the environment; none in a pickle, a repr or a file."""

import base64
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone import cli
from gridstone.stores.store import open_array

KEY = bytes(range(32))
OTHER = bytes(range(1, 33))
MARKER = b"MARKMARK"
VARIABLES = ("GRIDSTONE_KEY", "GRIDSTONE_KEY_FILE")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def values() -> np.ndarray:
    return np.arange(1_000, dtype=np.int64).reshape(20, 50)


def made(uri: object, key: object = KEY) -> gs.Array:
    array = gs.array(str(uri), values(), context=gs.Context(key=key))
    array.meta["MARKMARK"] = "MARKMARK"
    return array


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


def holds(secret: bytes, data: bytes) -> bool:
    """Whether a secret is in some bytes, as it is or written as text."""
    forms = (secret, secret.hex().encode(), base64.b64encode(secret), repr(secret).encode()[2:-1], secret[4:20])
    return any(form in data for form in forms)


def test_a_sealed_store_shows_nothing_and_reads_as_written(store_uri: str) -> None:
    array = made(store_uri)
    with gs.open(store_uri, mode="r+", context=gs.Context(key=KEY)) as again:
        assert np.array_equal(again[:], values()) and again.meta["MARKMARK"] == "MARKMARK"
        assert again.key_id == array.key_id and len(again.key_id or "") == 32
        again[3, 4] = -1
        assert again.read()["value"][3, 4] == -1
    assert gs.exists(store_uri)
    for path in files(Path(store_uri)):
        data = path.read_bytes()
        assert data.startswith(b"GRIDSEAL") and MARKER not in data and not holds(KEY, data)
    gs.delete(store_uri)
    assert not gs.exists(store_uri)


@pytest.mark.parametrize(
    "key",
    [
        KEY,
        KEY.hex(),
        KEY.hex().upper(),
        base64.b64encode(KEY).decode(),
        base64.urlsafe_b64encode(KEY).decode().rstrip("="),
        lambda key_id: KEY,
        lambda key_id: KEY.hex(),
    ],
)
def test_a_key_has_many_forms(store_uri: str, key: object) -> None:
    made(store_uri, key)
    assert np.array_equal(open_array(store_uri, context=gs.Context(key=KEY))[:], values())
    assert np.array_equal(open_array(store_uri, context=gs.Context(key=key))[:], values())


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), "", "no key", "0" * 63, 7, ["x"], bytearray(32)])
def test_what_is_no_key_is_refused_at_once(key: object) -> None:
    with pytest.raises(gs.errors.InputError, match="key"):
        gs.Context(key=key)


def test_a_missing_wrong_or_needless_key_is_an_access_error(stores: Stores) -> None:
    key_id = made(stores("sealed")).key_id
    gs.array(stores("plain"), values())
    other_id = made(stores("other"), OTHER).key_id
    assert key_id and other_id and key_id != other_id
    with pytest.raises(gs.errors.AccessError, match=rf"sealed with the key {key_id}, and no key was given"):
        gs.open(stores("sealed"))
    with pytest.raises(gs.errors.AccessError, match=rf"{key_id}; the key given is {other_id}"):
        gs.open(stores("sealed"), context=gs.Context(key=OTHER))
    with pytest.raises(gs.errors.AccessError, match="not sealed"):
        gs.open(stores("plain"), context=gs.Context(key=KEY))
    assert open_array(stores("plain")).key_id is None
    assert isinstance(gs.errors.AccessError("x"), PermissionError)


def test_damage_is_not_a_matter_of_keys(tmp_path: Path) -> None:
    made(tmp_path / "a.gs")
    for path in files(tmp_path / "a.gs"):
        if path.name == "latest":
            continue
        whole = path.read_bytes()
        for place in (0, 20, 40, 70, 100, len(whole) - 1):
            bad = bytearray(whole)
            bad[place] ^= 4
            path.write_bytes(bad)
            with pytest.raises(gs.errors.CorruptionError, match=path.name):
                open_array(tmp_path / "a.gs", context=gs.Context(key=KEY))[:]
        path.write_bytes(whole)


def test_a_function_is_asked_once_for_each_key(store_uri: str) -> None:
    asked: list[bytes | None] = []
    safe: dict[str, bytes] = {}

    def key(key_id: bytes | None) -> bytes:
        asked.append(key_id)
        return OTHER if key_id is None else safe[key_id.hex()]

    first = made(store_uri).key_id
    assert first
    safe[first] = KEY
    context = gs.Context(key=key)
    for _ in range(3):
        with gs.open(store_uri, mode="r+", context=context) as array:
            array[0, 0] = 5
    assert asked == [bytes.fromhex(first), None]
    assert open_array(store_uri, context=context).key_id not in (None, first)
    with pytest.raises(gs.errors.AccessError, match=first):
        open_array(store_uri, context=gs.Context(key=OTHER))[:]


def test_a_function_that_fails_is_an_access_error(store_uri: str) -> None:
    made(store_uri)

    def broken(key_id: bytes | None) -> bytes:
        raise LookupError("the safe is shut")

    def stopped(key_id: bytes | None) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(gs.errors.AccessError, match="LookupError: the safe is shut"):
        gs.open(store_uri, context=gs.Context(key=broken))
    for nonsense in (None, 7, bytes(5), "x"):
        with pytest.raises(gs.errors.AccessError, match="returned no key"):
            gs.open(store_uri, context=gs.Context(key=lambda key_id, given=nonsense: given))
    with pytest.raises(KeyboardInterrupt):
        gs.open(store_uri, context=gs.Context(key=stopped))


def test_a_key_is_neither_shown_nor_pickled(store_uri: str, stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    array, plain = made(store_uri), stores()
    gs.array(plain, values()).close()
    contexts = [array.context, gs.Context(key=KEY.hex()), gs.Context(key=lambda key_id: KEY)]
    for context in contexts:
        assert not holds(KEY, repr(context).encode()) and "key=<" in repr(context)
        assert not holds(KEY, pickle.dumps(context))
    assert contexts[0] == contexts[1] != contexts[2] and contexts[0] != gs.Context() != gs.Context(key=OTHER)
    assert hash(contexts[0]) == hash(contexts[1])
    data = pickle.dumps(array)
    assert not holds(KEY, data)
    with pytest.raises(gs.errors.AccessError, match="never pickled: set GRIDSTONE_KEY"):
        pickle.loads(data)
    monkeypatch.setenv("GRIDSTONE_KEY", OTHER.hex())
    with pytest.raises(gs.errors.AccessError, match="the key given is"):
        pickle.loads(data)
    monkeypatch.setenv("GRIDSTONE_KEY", KEY.hex())
    again = pickle.loads(data)
    assert np.array_equal(again[:], values())
    assert np.array_equal(pickle.loads(pickle.dumps(again))[:], values())
    # A context that had a key still demands that stores are sealed.
    with pytest.raises(gs.errors.AccessError, match="not sealed"):
        gs.open(plain, context=again.context)


def test_the_environment_opens_what_is_sealed_and_seals_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gs.array(tmp_path / "plain.gs", values()).close()
    made(tmp_path / "sealed.gs").close()
    (tmp_path / "key").write_bytes(KEY)
    for name, text in zip(VARIABLES, (base64.b64encode(KEY).decode(), str(tmp_path / "key")), strict=True):
        with monkeypatch.context() as patch:
            patch.setenv(name, text)
            context = gs.Context()
            for store in ("plain.gs", "sealed.gs"):
                with gs.open(tmp_path / store, mode="r+", context=context) as array:
                    array[1, 1] = 77
                    assert array[1, 1] == 77 and (array.key_id is None) == (store == "plain.gs")
            fresh = gs.array(tmp_path / f"{name}.gs", values(), context=context)
            assert fresh.key_id is not None
    assert all(not path.read_bytes().startswith(b"GRIDSEAL") for path in files(tmp_path / "plain.gs"))
    assert all(path.read_bytes().startswith(b"GRIDSEAL") for path in files(tmp_path / "sealed.gs"))


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"GRIDSTONE_KEY": ""}, "GRIDSTONE_KEY is set, but gives no key"),
        ({"GRIDSTONE_KEY": "topsecret"}, "GRIDSTONE_KEY is set, but gives no key"),
        ({"GRIDSTONE_KEY_FILE": "/no/such/file"}, "cannot be read"),
        ({"GRIDSTONE_KEY": KEY.hex(), "GRIDSTONE_KEY_FILE": "x"}, "both set"),
    ],
)
def test_a_bad_environment_leaves_nothing_unsealed_by_mistake(
    store_uri: str, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    with pytest.raises(gs.errors.AccessError, match=message) as caught:
        gs.array(store_uri, values(), context=gs.Context())
    assert "topsecret" not in str(caught.value)
    assert not gs.exists(store_uri)


def test_the_command_line_takes_the_key_from_the_environment(tmp_path: Path) -> None:
    store, csv = tmp_path / "a.gs", tmp_path / "a.csv"
    csv.write_text("x,v\n1,MARKMARK\n2,b\n")

    def run(*arguments: object, key: bytes | None = KEY) -> tuple[int, str]:
        environment = {} if key is None else {"GRIDSTONE_KEY": key.hex()}
        command = [sys.executable, "-m", "gridstone", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    assert run("load", store, csv, "--dims", "x")[0] == 0
    assert all(MARKER not in path.read_bytes() for path in files(store))
    for command in (["info"], ["ls"], ["read"], ["history"], ["verify"], ["consolidate"]):
        code, text = run(*command, store)
        assert code == 0, text
        code, text = run(*command, store, key=None)
        assert code == 1 and "no key was given" in text
    assert "MARKMARK" in run("read", store)[1]
    assert "sealed (AES-256-GCM) with the key" in run("info", store)[1]
    assert "not sealed" not in run("info", store)[1]


def test_info_says_what_is_not_sealed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    gs.array(tmp_path / "a.gs", values()).close()
    gs.group(tmp_path / "g.gs", path="/inner", mode="a")
    for store in ("a.gs", "g.gs"):
        assert cli.run(["info", str(tmp_path / store)]) == 0
        assert "not sealed" in capfd.readouterr().out


def test_sealed_stores_work_as_others_do(store_uri: str) -> None:
    context = gs.Context(key=KEY, threads=2)
    schema = gs.Schema([gs.Dim("x", (0, 9_999), 100, "int64")], [gs.Attr("v", "float64")], sparse=True)
    group = gs.group(store_uri, path="/city", context=context, mode="a")
    array = group.create("rain", schema)
    for step in range(70):
        array.write_cells({"x": [step, step + 5_000]}, {"v": [step, -step]})
    assert len(open_array(store_uri, path="/city/rain", version=30, context=context)[:]) == 2 * 28
    array.consolidate()
    array.delete(coords={"x": [5_000]})
    array.meta["unit"] = "mm"
    found = open_array(store_uri, path="/city/rain", context=context)
    assert found.meta["unit"] == "mm" and len(found[:]) == 139 and found.verify()["damage"] == []
    assert group.refreshed().key_id == found.key_id is not None
    assert [entry.path for entry in gs.ls(store_uri, path="/city", context=context)] == ["/city/rain"]


def test_a_copied_store_opens_and_one_with_exchanged_files_does_not(tmp_path: Path) -> None:
    context = gs.Context(key=KEY)
    for name in ("a", "b"):
        gs.array(tmp_path / name, np.random.default_rng(1).random(50_000), context=context).close()
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    assert np.array_equal(
        open_array(tmp_path / "c", context=context)[:], open_array(tmp_path / "a", context=context)[:]
    )
    [mine], [theirs] = (list((tmp_path / name / "_data").iterdir()) for name in ("a", "b"))
    shutil.copy(theirs, mine)
    with pytest.raises(gs.errors.CorruptionError, match="does not fit its seal"):
        open_array(tmp_path / "a", context=gs.Context(key=KEY))[:]
