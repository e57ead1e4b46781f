"""The demonstration: what it says is what its stores hold."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import gridstone as gs
from gridstone import cli, errors
from gridstone.demo import appends, days, swell
from gridstone.demo import run as demo_run

pytest.importorskip("matplotlib")
ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("GRIDSTONE_TEST_DATA") or ROOT.parent / "shared" / "data") / "ais"


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch):
    """Runs the demonstration with a small chart: (exit code, standard output, standard error)."""
    module = __import__("sys").modules[demo_run.__module__]
    monkeypatch.setattr(module, "SIDE", 300)
    monkeypatch.setattr(module, "UPDATES", 500)

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.run(["demo", *(str(a) for a in arguments)])
        found = capfdbinary.readouterr()
        return code, found.out.decode(), found.err.decode()

    return run


def test_made_up_days_grow_the_domain_and_processes_append(tmp_path: Path, call) -> None:
    out = tmp_path / "demo"
    code, text, err = call("--out", out, "--cells", "20000", "--json")
    assert code == 0, err
    told = json.loads(text)
    assert [Path(picture).name for picture in told["pictures"]] == [
        "positions.png", "tiles.png", "days.png", "chart.png", "heights.png", "appends.png",
    ]  # fmt: skip
    assert all(Path(picture).read_bytes().startswith(b"\x89PNG") for picture in told["pictures"])
    steps = {step["step"]: step for step in told["steps"]}
    assert steps["read a harbour"]["cells"] > steps["read open sea"]["cells"] > 0

    ships = gs.open(out / "ais.gs")
    assert gs.open(out / "ais-backup.gs").version == ships.version == 4
    assert steps["halve the speeds of one ship"]["cells"] > 0
    before = ships.at(version=2)
    assert ships.schema.duplicates and (len(before.read()), len(ships.read())) == (20_000, 25_000)
    assert ships.domain[0][1] > before.domain[0][1] + 20 and "Draft" not in before.schema_names
    assert ships.schema.attr("Draft").nullable

    spectra = gs.open(out / "swell.gs")
    sent = [row.tobytes() for b in range(swell.BUOYS) for n in range(swell.BLOCKS) for row in swell.block(b, n)]
    assert sorted(row.tobytes() for row in spectra[...]) == sorted(sent)
    assert spectra.at(version=2).shape == (swell.ROWS, swell.BINS)
    film = gs.open(out / "film.gs")
    np.testing.assert_array_equal(film[...], [swell.frame(number) for number in range(swell.FRAMES)])
    assert " squares of half a degree have positions; " in (squares := told["found"].pop(0)), squares
    assert "of 20,000. The index alone counted " in squares, squares
    starts = ["Day 2: 5,000 rows in one commit; the domain grew: LON", "20,000 positions are of 2026-03-01."]
    starts += ["The chart has 500 lit cells"]
    starts += ["heights.npy is an array", "heights.npy grew by 250 rows", "A Dataset of 30 days is a group"]
    starts += [f"{swell.BUOYS} processes appended at once", f"A reader saw {swell.FRAMES} frames"]
    assert all(s.startswith(start) for s, start in zip(told["found"], starts, strict=True)), told["found"]


def test_one_file_of_the_users_own(tmp_path: Path, call) -> None:
    file = tmp_path / "one.csv"
    random = np.random.default_rng(5)
    places = random.normal((10, 50), 1, (3_000, 2))
    file.write_text("LON,LAT,SOG\n" + "".join(f"{x:.4f},{y:.4f},1\n" for x, y in places))
    code, text, err = call("--out", tmp_path / "demo", "--data", file)
    assert code == 0 and "read a harbour" in text and "Day 2" not in text and "days.png" not in text, err
    assert "768 rows" in text and len(gs.open(tmp_path / "demo" / "ais.gs").read()) == 3_000


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no folder {DATA}; set GRIDSTONE_TEST_DATA to the one above it")
def test_a_folder_of_real_days_is_loaded_in_the_order_of_time(tmp_path: Path, call) -> None:
    names = [file.name for file in days.files_of(DATA)]
    assert [name[:4] for name in names] == ["Virg", "NYHa", "AIS_"]
    code, text, err = call("--out", tmp_path / "demo", "--data", DATA)
    assert code == 0, err
    assert "Day 2: 8,689 rows" in text and "Day 3: 99,999 rows" in text
    a = gs.open(tmp_path / "demo" / "ais.gs")
    widths = [a.at(version=v).domain[1][1] - a.at(version=v).domain[1][0] for v in (2, 3, 4)]
    assert widths == sorted(set(widths)) and a.at(version=2).schema_names == ["MMSI", "BaseDateTime"]


def test_a_folder_without_csv_files(tmp_path: Path, call) -> None:
    (tmp_path / "data").mkdir()
    code, _, err = call("--out", tmp_path / "demo", "--data", tmp_path / "data")
    assert code == 2 and "no CSV file" in err
    with pytest.raises(errors.InputError, match="empty"):
        days.files_of([])


def test_files_that_do_not_tell_the_time_come_by_name(tmp_path: Path) -> None:
    texts = {"b.csv": "LON,LAT\n1,2\n", "a.csv": "LON,LAT\n", "0.csv": "LON,LAT,BaseDateTime\n", "c.txt": ""}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert [file.name for file in days.files_of(tmp_path)] == ["0.csv", "a.csv", "b.csv"]


def test_a_process_that_fails_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(errors.GridstoneError, match=r"status 1: .*no-store"):
        appends._together([appends._sender(str(tmp_path / "no-store.gs"), "buoy", 1)])


def test_rows_that_come_twice_or_not_are_noticed(tmp_path: Path) -> None:
    uri = str(tmp_path / "swell.gs")
    blocks = [swell.block(b, n) for b in range(swell.BUOYS) for n in range(swell.BLOCKS)]
    for wrong in (blocks[1:], [*blocks, blocks[3]], [blocks[1], blocks[0], *blocks[2:]]):
        shutil.rmtree(uri, ignore_errors=True)
        with pytest.raises(errors.InputError, match=r"did not come|out of order"):
            appends._senders(gs.array(uri, np.concatenate(wrong)))
