"""The comparison benchmark: the command finds it, checks before it times, names what is missing and what fails."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "benches" / "compare"
TINY = ("--scale", "0.0001", "--repeats", "1", "--systems", "gridstone,h5py")


def gridstone(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs `gridstone bench` in `folder`."""
    command = [sys.executable, "-m", "gridstone", "bench", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


ONLY = "D1b-field,D2-1k,D3c-warm,S2a-10k,S2c,S3a-close,M1,M1-budget,warmup-second"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run of one case of each kind of store: where it wrote, and what it printed."""
    out = tmp_path_factory.mktemp("bench") / "out"
    found = gridstone(*TINY, "--only", ONLY, "--out", str(out), "--json", folder=ROOT)
    assert found.returncode == 0, found.stderr
    return out, json.loads(found.stdout)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the benchmark's own modules importable, for one test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PROGRAM))
    yield
    for name in set(sys.modules) - before:
        if str(PROGRAM) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_every_row_is_listed() -> None:
    found = gridstone("--list", "--json", folder=ROOT)
    assert found.returncode == 0, found.stderr
    rows = {case["key"].partition("-")[0] for case in json.loads(found.stdout)}
    dense = {"D1a", "D1b", "D1c", "D2", "D3a", "D3b", "D3c", "D3d", "D4", "D5a", "D5b", "D5c", "D6", "P1"}
    assert rows == dense | {"S1a", "S1b", "S2a", "S2b", "S2c", "S3a", "S3b", "S3c", "O1", "O2", "M1", "warmup"}


def test_rows_and_systems_that_do_not_exist(tmp_path: Path) -> None:
    for arguments in (("--only", "D9"), ("--systems", "abacus"), ("--nonsense",), ("--only", "D1a", "--write-docs")):
        found = gridstone(*arguments, "--out", str(tmp_path), folder=ROOT)
        assert found.returncode == 2 and "Error" in found.stderr


def test_it_measures_and_writes(measured: tuple[Path, dict[str, Any]]) -> None:
    """Systems that are not installed are skipped with a line each."""
    out, results = measured
    assert results == json.loads((out / "results.json").read_text())
    assert [case["key"] for case in results["cases"]] == ONLY.split(",")
    for case in results["cases"]:
        own = [row for row in case["systems"] if row["role"] == "gridstone"]
        assert own and all(len(row["seconds"]["runs"]) == 1 and row["disk_bytes"] > 0 for row in own), case["key"]
    assert all(line.partition(" ")[0] != "gridstone" for line in results["missing"])
    assert "| D3c-warm |" in (out / "results.md").read_text()
    assert not {"inputs", "stores", "scratch"} & {path.name for path in out.iterdir()}


def test_it_tells_which_code_was_measured(measured: tuple[Path, dict[str, Any]]) -> None:
    out, results = measured
    told = results["disclosure"]["code"]
    assert re.fullmatch(r"commit [0-9a-f]{4,40}( with changes)?|unknown", told), told
    assert f"- code: {told}\n" in (out / "results.md").read_text()


def test_it_draws_charts(measured: tuple[Path, dict[str, Any]]) -> None:
    """One for each family of cases, and one of the ratios if there is a peer to compare with."""
    pytest.importorskip("matplotlib", reason="matplotlib draws the charts")
    out, results = measured
    expected = {case["family"].replace(" ", "-") for case in results["cases"]}
    if any(row["role"] == "peer" for case in results["cases"] for row in case["systems"]):
        expected.add("ratios")
    assert {path.stem for path in out.glob("*.png")} == expected
    for path in out.glob("*.png"):
        check_chart(path)


def test_fragments_have_a_chart(modules: None, tmp_path: Path) -> None:
    """Of both rows, the merged state beside the numbers."""
    pytest.importorskip("matplotlib", reason="matplotlib draws the charts")
    import charts

    def case(row: str, name: str, seconds: float) -> dict[str, Any]:
        spread = {"median": seconds, "min": seconds * 0.9, "max": seconds * 1.2}
        figures = {"system": "gridstone, none", "family": "gridstone", "role": "gridstone", "times_best_peer": None}
        return {"key": f"{row}-{name}", "row": row, "family": "read", "title": name,
                "systems": [{**figures, "seconds": spread}]}  # fmt: skip

    cases = [case(row, name, 0.01 * (i + 1)) for row in ("D5a", "S3b") for i, name in enumerate(("0", "10", "merged"))]
    drawn = charts.draw(tmp_path, {"cases": cases})
    assert [path.name for path in drawn] == ["read.png", "fragments.png"]
    for path in drawn:
        check_chart(path)


def check_chart(path: Path) -> None:
    """A PNG of a size for reading, on which something is drawn."""
    import matplotlib.image

    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    pixels = matplotlib.image.imread(path)
    height, width = pixels.shape[:2]
    assert 600 <= width <= 3_000 and 100 <= height <= 20_000, (path.name, width, height)
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 2, path.name


def test_cases_that_no_time_is_left_for_are_named(tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = gridstone(*TINY, "--only", "D3b-row,D3b-column", "--minutes", "0", "--out", str(out), "--json", folder=ROOT)
    assert found.returncode == 0, found.stderr
    results = json.loads(found.stdout)
    assert results["cases"] == []
    assert [line.partition(" ")[0] for line in results["missing"]] == ["D3b-column", "D3b-row"]


def test_a_system_that_fails_is_named(modules: None, tmp_path: Path) -> None:
    """A dense system cannot build a store of cells: no figures, a line for each system, nothing timed."""
    from dataclasses import replace

    from harness import Harness
    from inputs import Size
    from plan import PLAN

    case = next(case for case in PLAN if case.key == "D3b-row")
    wrong = replace(case, store="commits1", needs=("cells",))
    harness = Harness(tmp_path, Size(0.0001), 1, lambda line: None, [wrong], frozenset({"gridstone"}))
    figures = harness.run()
    assert figures[0]["systems"] == [] and any("gridstone" in line for line in harness.failures)


def test_a_wrong_read_is_caught(modules: None, tmp_path: Path) -> None:
    import dense
    from inputs import Inputs, Size
    from plan import PLAN
    from task import Task, WrongResultError

    size, case = Size(0.0001), next(case for case in PLAN if case.key == "D3c-warm")
    system = case.systems[0]
    system.prepare(2)
    task = Task(tmp_path, size, system, check=True)
    store = task.store("dense")
    store.parent.mkdir(parents=True)
    values = Inputs(tmp_path, size).dense()
    system.load(store, values + (values == values.max() // 2), size.tile)
    with pytest.raises(WrongResultError):
        dense.read("all")(task)


def test_reaches_are_judged(modules: None) -> None:
    import reach

    def row(system: str, role: str, seconds: float, size: int) -> dict[str, object]:
        return {"system": system, "role": role, "seconds": {"median": seconds}, "disk_bytes": size}

    rows = {
        "a": [row("gridstone, auto", "gridstone", 1.0, 10), row("gridstone, none", "gridstone", 9.0, 99),
              row("zarr, zstd:3", "peer", 3.0, 9), row("h5py, zstd:3", "peer", 1.5, 20), row("raw", "limit", 0.8, 1)],
        "b": [row("gridstone, auto", "gridstone", 2.0, 10)],
    }  # fmt: skip
    judged = [
        (reach.faster(1.5), 1.5, True),
        (reach.faster(2, "h5py"), 1.5, False),
        (reach.faster(3, "zarr"), 3.0, True),
        (reach.near_limit(1.1), 1.25, False),
        (reach.no_larger(), 10 / 9, False),
        (reach.no_larger_than_best(), 0.5, True),
        (reach.at_most(1000), 1000, True),
        (reach.within_case(0.4, "b"), 0.5, False),
        (reach.scaling(1.8, "b"), 2.0, True),
    ]
    for condition, value, met in judged:
        found = condition.judge(rows, "a")
        assert found["value"] == pytest.approx(value) and found["reached"] is met, condition.text
    assert reach.faster(2).judge(rows, "b")["reached"] is None


def test_the_judged_variant_is_named(modules: None) -> None:
    """Where a row has several variants of Gridstone; a row that is called zstd judges zstd."""
    import report
    from plan import PLAN

    def row(system: str, role: str) -> dict[str, Any]:
        return {"system": system, "role": role, "seconds": {"median": 0.0374}, "times_best_peer": 2.0}

    case = {"key": "D2-zstd-1k", "title": "updates", "reach": [],
            "systems": [row("gridstone, zstd:3", "gridstone"), row("h5py, zstd:3", "peer")]}  # fmt: skip
    assert report._brief(case)[2] == "37.4 ms"
    case["systems"].insert(1, row("gridstone, auto", "gridstone"))
    assert report._brief(case)[2] == "37.4 ms, zstd:3"
    assert report._brief({**case, "systems": []})[2] == "no figure"
    packed = [case for case in PLAN if "-zstd" in case.key or case.row in ("D3d", "warmup")]
    assert packed and {case.systems[0].name for case in packed} == {"gridstone, zstd:3"}


def test_the_state_of_the_code(modules: None, tmp_path: Path) -> None:
    import machine

    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True)

    within = tmp_path / "within"
    within.mkdir()
    (tmp_path / "a.txt").write_text("a")
    assert machine.code(tmp_path) == "unknown"
    git("init")
    git("add", "a.txt")
    git("commit", "-m", "first")
    (tmp_path / "new.txt").write_text("not tracked")
    clean = machine.code(tmp_path)
    assert re.fullmatch(r"commit [0-9a-f]{4,40}", clean)
    (tmp_path / "a.txt").write_text("b")
    assert machine.code(tmp_path) == f"{clean} with changes"
    assert machine.code(within) == "unknown"


def test_a_mean_covers_what_few_commits_do_not(modules: None, tmp_path: Path) -> None:
    """The rows called mean: as many commits for every system, two folds of the log among them."""
    from inputs import MANY
    from meter import Meter
    from plan import PLAN

    means = [case for case in PLAN if case.key.endswith("-mean")]
    assert [case.key for case in means] == ["D5b-mean", "S3a-mean"] and MANY >= 2 * 64
    assert not any(case.reaches for case in means)
    meter = Meter()
    meter.seconds, meter.cpu_seconds = [1.0, 1.0, 4.0], [1.0, 1.0, 1.0]
    assert meter.sample(0, mean=True)["seconds"] == 2.0 and meter.sample(0)["seconds"] == 1.0


def test_only_what_lies_between_the_markers_is_replaced(modules: None) -> None:
    import publish

    text = "a\n<!-- figures: begin -->\n\nold\n\n<!-- figures: end -->\nb\n"
    made = publish.replace(text, "new", "x.md")
    assert made == text.replace("old", "new") and publish.replace(made, "new", "x.md") == made
    with pytest.raises(publish.MarkerError):
        publish.replace(text.replace("end", "and"), "new", "x.md")
    for name in ("README.md", "docs/performance.md"):
        publish.replace((ROOT / name).read_text(encoding="utf-8"), "new", name)


def test_without_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The package alone, away from its source, says where the benchmark is."""
    from gridstone import cli
    from gridstone.cli import bench

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "site-packages" / "gridstone" / "cli" / "bench.py"))
    assert cli.run(["bench", "--list"]) == 1
    assert "get the repository" in capsys.readouterr().err


def test_a_checkout_is_recognised(tmp_path: Path) -> None:
    from gridstone.cli import bench

    other = tmp_path / "other"
    (other / "benches" / "compare").mkdir(parents=True)
    (other / "benches" / "compare" / "__main__.py").write_text("")
    (other / "pyproject.toml").write_text('[project]\nname = "something"\n')
    assert bench._program([tmp_path, other]) is None
    assert bench._program([other, ROOT]) == Path(os.fspath(PROGRAM))
