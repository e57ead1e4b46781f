"""What is readable is read: `damaged="skip"` leaves out damaged blocks and lost files, and says what it left out."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs
from gridstone.cli import run
from gridstone.errors import AccessError, CorruptionError, InputError, UnsupportedError

CALM = gs.Context(durability="close", cache=0)


def grid(path: Path, context: gs.Context = CALM) -> gs.Array:
    """Two dense fragments in files, the newer over the upper half, and two attributes, one nullable."""
    schema = gs.Schema(
        [gs.Dim("y", (0, 299), 100), gs.Dim("x", (0, 299), 100)],
        [gs.Attr("v", "int64", fill=-1, filters="none"), gs.Attr("w", "float64", nullable=True, filters="none")],
    )
    a = gs.create(path, schema, context=context)
    numbers = np.arange(90_000).reshape(300, 300)
    a.write({"v": numbers, "w": numbers / 2})
    a.write({"v": numbers[:150] + 1_000_000, "w": numbers[:150] * 2.0}, {"y": (0, 149)})
    return a


def table(path: Path) -> gs.Array:
    schema = gs.Schema([gs.Dim("x", (0, 99_999))], [gs.Attr("v", "int64", filters="none")], sparse=True, capacity=5_000)
    a = gs.create(path, schema, context=CALM)
    x = np.arange(50_000)
    a.write_cells({"x": x}, x * 3)
    return a


def file_of(a: gs.Array, place: int) -> Path:
    return Path(a.uri) / "_data" / f"{a.fragments.column('id')[place].as_py()}.frag"


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def fresh(path: Path) -> gs.Array:
    found = gs.open(path, context=gs.Context(durability="close", cache=0))
    assert isinstance(found, gs.Array)
    return found


def holes(damage: tuple[gs.Skipped, ...], shape: tuple[int, int], name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    mask = np.zeros(shape, bool)
    for part in damage:
        if part.attribute in (None, name):
            (y0, y1), (x0, x1) = part.box["y"], part.box["x"]
            mask[y0 : y1 + 1, x0 : x1 + 1] = True
    return mask


@pytest.mark.parametrize("at", range(5_000, 700_000, 61_111))
def test_a_dense_box_around_a_damaged_block(tmp_path: Path, at: int) -> None:
    a = grid(tmp_path / "a")
    whole = a.read().to_numpy()
    flip(file_of(a, 1), at)
    b = fresh(tmp_path / "a")
    with pytest.raises(CorruptionError):
        b.read()
    with pytest.raises(CorruptionError):
        b[...]
    with pytest.warns(gs.DamageWarning, match="damaged part"):
        found = b.read(damaged="skip")
    assert found.damage and found.stats["regions_skipped"] == len(found.damage)
    for name, blank in (("v", -1), ("w", None)):
        mask = holes(found.damage, (300, 300), name)
        assert not mask[150:].any(), "the older fragment is whole"
        values = found[name]
        assert np.array_equal(np.ma.getdata(values)[~mask], np.ma.getdata(whole[name])[~mask])
        if blank is None:
            assert np.ma.getmaskarray(values)[mask].all() and not np.ma.getmaskarray(values)[~mask].any()
        else:
            assert (values[mask] == blank).all(), "what lay there before is not shown"
    one = found.damage[0]
    assert one.fragment == a.fragments.column("id")[1].as_py() and "fragment" in one.reason


def test_nothing_damaged_costs_and_says_nothing(tmp_path: Path) -> None:
    a = grid(tmp_path / "a")
    flip(file_of(a, 1), 5_000)
    b = fresh(tmp_path / "a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        below = b.read({"y": (150, 299)}, damaged="skip")
        assert below.damage == () and below.stats["regions_skipped"] == 0
        assert (
            list(b.scan({"y": (150, 299)}, damaged="skip")) and b.scan({"y": (150, 299)}, damaged="skip").damage == ()
        )
    assert np.array_equal(below["v"], a.read({"y": (150, 299)})["v"])


def test_a_lost_file(tmp_path: Path) -> None:
    a = table(tmp_path / "a")
    a.write_cells({"x": [7, 60_000]}, [1, 2])
    file_of(a, 0).unlink()
    with pytest.warns(gs.DamageWarning):
        found = fresh(tmp_path / "a").read(damaged="skip")
    assert found["x"].tolist() == [7, 60_000] and found["v"].tolist() == [1, 2]
    (one,) = found.damage
    assert (one.attribute, one.tile, one.cells, one.box) == (None, None, 50_000, {"x": (0, 49_999)})


def test_sparse_cells_streams_and_conditions(tmp_path: Path) -> None:
    a = table(tmp_path / "a")
    flip(file_of(a, 0), 300_000)
    b = fresh(tmp_path / "a")
    with pytest.warns(gs.DamageWarning):
        found = b.read(damaged="skip")
    (one,) = found.damage
    low, high = one.box["x"]
    kept = np.setdiff1d(np.arange(50_000), np.arange(low, high + 1))
    assert 0 < high - low < 5_000 and one.attribute in ("x", "v")
    assert np.array_equal(found["x"], kept) and np.array_equal(found["v"], kept * 3)
    for order in ("row", "any"):
        with pytest.warns(gs.DamageWarning):
            stream = b.scan(order=order, batch_bytes=50_000, damaged="skip")
        assert stream.damage == found.damage
        assert np.array_equal(stream.to_numpy()["x"], kept)
    with pytest.warns(gs.DamageWarning):
        chosen = b.read(where="v >= 30", damaged="skip")
    assert np.array_equal(chosen["x"], kept[kept >= 10]) and chosen.damage == found.damage
    out = np.zeros(3, np.int64)
    with pytest.raises(InputError, match="damaged is one of"):
        b.read(damaged="ignore")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="dense"):
        b.read({"x": (0, 2)}, out=out, damaged="skip")


def test_into_the_callers_array(tmp_path: Path) -> None:
    a = grid(tmp_path / "a")
    flip(file_of(a, 1), 5_000)
    out = np.zeros((300, 300), np.int64)
    with pytest.warns(gs.DamageWarning):
        found = fresh(tmp_path / "a").read(attrs="v", out=out, damaged="skip")
    assert np.array_equal(out, found["v"]) and (out == -1).sum() == holes(found.damage, (300, 300), "v").sum()


def test_a_wrong_key_is_no_damage(tmp_path: Path) -> None:
    keyed = gs.Context(durability="close", cache=0, key=bytes(range(32)))
    a = grid(tmp_path / "a", keyed)
    data = file_of(a, 1)
    with pytest.raises(AccessError):
        gs.open(tmp_path / "a", context=gs.Context(key=bytes(32)))
    flip(data, 9_000)
    found = gs.open(tmp_path / "a", context=gs.Context(cache=0, key=bytes(range(32))))
    assert isinstance(found, gs.Array)
    with pytest.warns(gs.DamageWarning):
        assert found.read(damaged="skip").damage
    # A file that was sealed with another key.
    other = grid(tmp_path / "b", gs.Context(durability="close", cache=0, key=bytes(32)))
    data.write_bytes(file_of(other, 1).read_bytes())
    found = gs.open(tmp_path / "a", context=gs.Context(cache=0, key=bytes(range(32))))
    assert isinstance(found, gs.Array)
    with pytest.raises(AccessError):
        found.read(damaged="skip")


@pytest.mark.parametrize(
    ("form", "read"),
    [
        ("csv", lambda file: np.loadtxt(file, skiprows=1, delimiter=",", dtype=np.int64)[:, 1]),
        ("npz", lambda file: np.load(file)["v"]),
    ],
)
def test_the_command_line_exports_what_is_readable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, read: Callable[[Path], Any]
) -> None:
    a = table(tmp_path / "a")
    flip(file_of(a, 0), 300_000)
    target = tmp_path / f"out.{form}"
    uri = str(tmp_path / "a")
    assert run(["export", uri, str(target)]) != 0 and not target.exists()
    capsys.readouterr()
    assert run(["export", uri, str(target), "--damaged", "skip"]) == 0
    told = capsys.readouterr().err
    assert "damaged part was left out" in told
    with pytest.warns(gs.DamageWarning):
        kept = fresh(tmp_path / "a").read(damaged="skip")["v"]
    assert np.array_equal(read(target), kept)


def test_the_command_line_reads_what_is_readable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = table(tmp_path / "a")
    flip(file_of(a, 0), 300_000)
    uri = str(tmp_path / "a")
    assert run(["read", uri, "--json"]) != 0
    capsys.readouterr()
    assert run(["read", uri, "--json", "--damaged", "skip"]) == 0
    out = capsys.readouterr()
    with pytest.warns(gs.DamageWarning):
        kept = fresh(tmp_path / "a").read(damaged="skip")["x"].tolist()
    assert [json.loads(line)["x"] for line in out.out.splitlines()] == kept
    assert "damaged part was left out" in out.err


def test_a_record_missing_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "a"
    a = gs.array(path, np.arange(10), context=CALM)
    stale = gs.open(path, mode="r+", context=CALM)
    for i in range(9):
        a[i] = 100 + i
    assert isinstance(stale, gs.Array)
    record = path / "_log" / f"{stale.version + 1:020}"
    kept = record.read_bytes()
    record.unlink()
    for attempt in (lambda: gs.open(path), lambda: gs.open(path, mode="r+"), stale.refresh):
        with pytest.raises(CorruptionError, match=r"is missing.*gridstone repair"):
            attempt()
    assert not record.exists()
    assert any(record.name in found["object"] for found in gs.verify(path)["damage"])
    repaired = gs.repair(path, dry_run=False)
    assert any(record.name in found["object"] for found in repaired.remaining)
    old = gs.open(path, version=stale.version)
    assert isinstance(old, gs.Array) and old[...].tolist() == list(range(10))
    record.write_bytes(kept)
    assert fresh(path)[...].tolist() == [*range(100, 109), 9]


def test_damage_where_nobody_looks_is_not_told(tmp_path: Path) -> None:
    """Outside of all boxes, and where a condition selects nothing; of one box that holds the damage it is."""
    a = table(tmp_path / "a")
    # Many places, so that some lie in blocks of values and not beside them.
    for at in range(100_000, 140_000, 1_000):
        flip(file_of(a, 0), at)
    b = fresh(tmp_path / "a")
    with pytest.warns(gs.DamageWarning):
        found = b.read(damaged="skip")
    lost = [part.box["x"] for part in found.damage]
    apart = [(0, 10), (49_990, 49_999)]
    assert lost and all(not (lo <= low <= hi or low <= lo <= high) for lo, hi in lost for low, high in apart)
    with warnings.catch_warnings():
        warnings.simplefilter("error", gs.DamageWarning)
        some = b.scan([{"x": ends} for ends in apart], damaged="skip")
        assert len(some.to_numpy()["v"]) == 21 and some.damage == ()
        none = b.scan(where="x > 5 and x < 3", damaged="skip")
        assert len(none.to_numpy()["v"]) == 0 and none.damage == ()
