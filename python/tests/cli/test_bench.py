"""The comparison benchmark: the command finds it, checks before it times, names what is missing and what fails."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate import AT_GATE

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "benches" / "compare"
TINY = ("--scale", "0.0001", "--repeats", "1", "--systems", "gridstone,h5py")


def gridstone(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs `gridstone bench` in `folder`."""
    command = [sys.executable, "-m", "gridstone", "bench", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


ONLY = (
    "D1b-field,D2-1k,D3c-warm,D6-none,S2a-10k,S2c,S3a-close,M1,M1-budget,M3-max,Q2,Q3-1,Q6,H5e-open,import,warmup-second,warmup-twentieth,"
    "warmup-full"
)
if AT_GATE:
    # There is another case of the same kind of each of these.
    ONLY = ",".join(key for key in ONLY.split(",") if key not in ("D2-1k", "S2c", "Q3-1"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run of one case of each kind of store: where it wrote, and what it printed."""
    out = tmp_path_factory.mktemp("bench") / "out"
    found = gridstone(*TINY, "--only", ONLY, "--out", str(out), "--json", folder=ROOT)
    assert found.returncode == 0, found.stderr
    return out, json.loads(found.stdout)


def test_every_row_is_listed() -> None:
    found = gridstone("--list", "--json", folder=ROOT)
    assert found.returncode == 0, found.stderr
    rows = {case["key"].partition("-")[0] for case in json.loads(found.stdout)}
    dense = {"D1a", "D1b", "D1c", "D2", "D3a", "D3b", "D3c", "D3d", "D4", "D5a", "D5b", "D5c", "D6", "P1"}
    assert rows == dense | {
        "S1a",
        "S1b",
        "S2a",
        "S2b",
        "S2c",
        "S3a",
        "S3b",
        "S3c",
        "O1",
        "O2",
        "M1",
        *["M2", "M3", "M4", "Q1", "Q2", "Q3", "Q6"],
        *["H5a", "H5b", "H5c", "H5d", "H5e", "H5g", "H5h"],
        *["X1", "X2", "X3", "X4", "X5"],
        "import",
        "warmup",
    }


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
        assert own and all(len(row["seconds"]["runs"]) == 1 for row in own), case["key"]
        assert case["key"] == "import" or all(row["disk_bytes"] > 0 for row in own), case["key"]
    assert all(line.partition(" ")[0] != "gridstone" for line in results["missing"])
    assert "| D3c-warm |" in (out / "results.md").read_text()
    assert not {"inputs", "stores", "scratch"} & {path.name for path in out.iterdir()}


def test_one_process_gives_all_figures_of_warming_up(measured: tuple[Path, dict[str, Any]]) -> None:
    """The time of each read, at which of them a process was at full speed, and what it took until then."""
    import_, second, twentieth, full = (next(r for r in case["systems"] if r["role"] == "gridstone")
                                        for case in measured[1]["cases"][-4:])  # fmt: skip
    reads, number = full["reads"], full["read"]
    assert len(reads) == 20 and 1 <= number <= 20
    assert second["seconds"]["median"] == reads[1] and twentieth["seconds"]["median"] == reads[-1]
    assert full["seconds"]["median"] == pytest.approx(sum(reads[:number]))
    assert 0 < import_["seconds"]["median"] < 60 and import_["rss_growth_bytes"] > 2**20
    assert f"gridstone, zstd:3 (read {number})" in (measured[0] / "results.md").read_text().replace("*", "")


def test_single_operations_are_told(measured: tuple[Path, dict[str, Any]]) -> None:
    """Where a process times several: the quickest, what nine of ten stay below, the slowest."""
    out, results = measured
    cases = {case["key"]: case["systems"] for case in results["cases"]}
    for row in cases["S3a-close"]:
        found = row["operations"]
        assert found["count"] == 5 and found["min"] <= row["seconds"]["median"] <= found["p90"] <= found["max"]
    assert all("operations" not in row for row in cases["D1b-field"])
    assert "| single operations |" in (out / "results.md").read_text()


def test_limits_have_two_threads_where_systems_have(measured: tuple[Path, dict[str, Any]]) -> None:
    case = next(case for case in measured[1]["cases"] if case["key"] == "D6-none")
    limits = {row["system"] for row in case["systems"] if row["role"] == "limit"}
    assert limits == {"raw file", "raw file, two threads", "memcpy", "memcpy, two threads"}


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
        (reach.scaling(1.8, "b", "a"), 2.0, True),
    ]
    for condition, value, met in judged:
        found = condition.judge(rows, "a")
        assert found["value"] == pytest.approx(value) and found["reached"] is met, condition.text
    assert reach.faster(2).judge(rows, "b")["reached"] is None


def _measured(system: str, role: str, seconds: float) -> dict[str, Any]:
    spread = {"median": seconds, "min": seconds, "max": seconds}
    return {"system": system, "role": role, "seconds": spread, "times_best_peer": None, "cpu_seconds": 1.0,
            "rss_growth_bytes": 0, "disk_bytes": 1}  # fmt: skip


def test_a_slow_limit_judges_nothing(modules: None) -> None:
    """A limit that a system beats is none: no verdict, and tables and disclosure say so."""
    import harness
    import report
    from plan import PLAN

    case = next(case for case in PLAN if case.key == "D1a")
    own, peer = _measured("gridstone, none", "gridstone", 0.237), _measured("h5py, none", "peer", 0.328)
    for slow, system in ((0.517, "gridstone, none"), (0.3, "gridstone, none"), (0.2, None)):
        rows = [own, peer, _measured("raw file", "limit", slow)]
        figure = {"key": "D1a", "title": "load", "systems": rows}
        harness.judge([case], [figure])
        found = figure["reach"][0]
        told = "\n".join(
            report.disclosed({"disclosure": {}, "systems": {}, "cases": [figure], "missing": [], "failures": []})
        )
        tables = report.full({"cases": [figure]}) + report.brief({"cases": [figure]})
        if system is None:
            assert found["value"] == pytest.approx(0.237 / 0.2) and found["reached"] is False and "no limit" not in told
            assert "slower than" not in tables
        else:
            assert found["value"] is None and found["reached"] is None
            assert "D1a: raw file is no limit here" in told and f"no limit: slower than {system}" in tables
            assert f"limit slower than {system}" in report.brief({"cases": [figure]})


def test_what_two_cores_gain_is_told_with_the_scaling(modules: None) -> None:
    """Beside what Gridstone gains stands what compression alone gains, in the same run."""
    import reach
    import report
    from plan import PLAN

    def rows(own: float, alone: float) -> list[dict[str, Any]]:
        return [_measured("gridstone, zstd:3", "gridstone", own), _measured("zstd alone", "orientation", alone)]

    cases = {case.key: case for case in PLAN if case.row == "P1"}
    figures = {"P1-load-t1": rows(0.9, 0.6), "P1-load-t2": rows(0.6, 0.4), "P1-load-p2": rows(0.5, 9.0)[:1]}
    for key, value in (("P1-load-t2", 1.5), ("P1-load-p2", 1.8)):
        found = cases[key].reaches[0].judge(figures, key)
        assert found["value"] == pytest.approx(value) and found["remark"] == "zstd alone: 1.50"
        figure = {"key": key, "title": "load", "systems": figures[key], "reach": [found]}
        assert f"{value:.2f} (zstd alone: 1.50)" in report.brief({"cases": [figure]})
    assert reach.scaling(1.8, "P1-load-t1", "P1-load-t2").judge({"P1-load-t1": []}, "P1-load-t1")["remark"] == ""
    alone = {key for key, case in cases.items() if any(s.name == "zstd alone" for s in case.systems)}
    assert alone == {"P1-load-t1", "P1-load-t2", "P1-box-t1", "P1-box-t2"}


@pytest.mark.parametrize("threads", [1, 2])
def test_zstd_alone(modules: None, tmp_path: Path, threads: int) -> None:
    pytest.importorskip("zstandard", reason="zstandard is not installed")
    from systems import zstd

    system = zstd.Dense()
    system.prepare(threads)
    values = np.random.default_rng(1).integers(0, 99, (1_003, 701), np.int32)
    system.load(tmp_path / "a", values, (100, 100))
    assert not (tmp_path / "a").exists(), "nothing is stored in the clock"
    system.keep(tmp_path / "a")
    handle = system.open(tmp_path / "a")
    for box in ((slice(0, 1_003), slice(0, 701)), (slice(372, 378), slice(5, 6)), (slice(1_002, 1_003), slice(0, 701))):
        assert np.array_equal(handle.read(box), values[box])


def test_flat_files(modules: None, tmp_path: Path) -> None:
    """Written in pieces, read in place where rows are whole, by two threads too; else mapped, and no limit."""
    from plan import PLAN
    from systems import raw

    values = np.arange(2_503 * 1_001, dtype=np.int32).reshape(2_503, 1_001)  # more than a piece, and no whole number
    boxes = [(slice(0, 2_503), slice(0, 1_001)), (slice(7, 9), slice(0, 1_001)), (slice(3, 4), slice(0, 1_001)),
             (slice(5, 6), slice(11, 12)), (slice(10, 40), slice(2, 9)),
             (slice(0, 2_503), slice(1_000, 1_001))]  # fmt: skip
    for made in (raw.Dense(), raw.Dense("two threads"), raw.Mapped(), raw.Memory(), raw.Memory("two threads")):
        folder = tmp_path / made.name
        made.prepare(2)
        made.load(folder, values, (100, 100))
        handle = made.open(folder)
        for box in boxes:
            buffer = np.zeros(values[box].shape, np.int32)
            handle.read_into(box, buffer)
            assert np.array_equal(handle.read(box), values[box]) and np.array_equal(buffer, values[box]), (
                made.name,
                box,
            )
        handle.close()
    limits = {case.key for case in PLAN for s in case.systems if s.role == "limit" and s.family == "raw file"}
    assert limits == {"D1a", "D3b-row", "D6-none", "O1-dense"}
    assert all(raw.Mapped().kept_as == s.kept_as for case in PLAN for s in case.systems if s.family == "raw file")


def test_a_flat_file_that_ends_early(modules: None, tmp_path: Path) -> None:
    from systems import raw

    system = raw.Dense()
    system.prepare(2)
    system.load(tmp_path / "a", np.zeros((10, 10), np.int32), (5, 5))
    next((tmp_path / "a").iterdir()).write_bytes(b"short")
    with pytest.raises(EOFError):
        system.open(tmp_path / "a").read((slice(0, 10), slice(0, 10)))


def test_one_thread_of_tensorstore_is_one_core(modules: None) -> None:
    """Its settings alone leave it two; processes beside each other keep to different cores."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("cores cannot be chosen here")
    from systems import tensorstore

    before = os.sched_getaffinity(0)
    kept = []
    for part in (0, 1):
        try:
            tensorstore.Dense("none").confine(part)
            kept.append(os.sched_getaffinity(0))
        finally:
            os.sched_setaffinity(0, before)
    assert [len(cores) for cores in kept] == [1, 1] and (len(before) == 1 or kept[0] != kept[1])


def test_full_speed(modules: None) -> None:
    """The first read that takes at most a tenth more than the median of the last ten."""
    import startup

    assert startup.full_speed([9.0, 5.0, 1.11, 1.1, 3.0, *[1.0] * 15]) == 4
    assert startup.full_speed([1.0] * 20) == 1


def test_warming_up_cold(modules: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page cache is dropped before each read, outside the clock; boxes are alike, and none meets another."""
    import disk
    import startup
    from inputs import Inputs, Size
    from plan import PLAN
    from task import Task

    dropped: list[Path] = []
    monkeypatch.setattr(disk, "forget", dropped.append)
    system, size = PLAN[-1].systems[0], Size(0.0001)
    system.bare = True
    system.prepare(2)
    task = Task(tmp_path, size, system, check=True)
    task.store("dense").parent.mkdir(parents=True)
    system.load(task.store("dense"), Inputs(tmp_path, size).dense(), size.tile)
    for cold, drops in ((False, 0), (True, 20)):
        dropped.clear()
        assert set(startup.warmup(cold=cold)(task)["parts"]) >= {"import", "first", "twentieth", "full"}
        assert len(dropped) == drops
    for scale in (0.0001, 0.02, 1.0):
        boxes, (height, width) = Inputs(tmp_path, Size(scale)).alike(), Size(scale).tile
        seen = [(r.start, c.start) for r, c in boxes]
        assert len({(r % height, c % width) for r, c in seen}) == 1 and len(set(seen)) == len(boxes) == 20
        assert all(
            abs(r - s) >= height or abs(c - d) >= Size(scale).box for r, c in seen for s, d in seen if (r, c) != (s, d)
        )
    assert {case.key for case in PLAN if case.group == "warmup-cold"} == {
        "warmup-cold-first", "warmup-cold-twentieth", "warmup-cold-full"}  # fmt: skip


def test_imports_are_a_row(modules: None) -> None:
    """Of Gridstone, with a limit, and of its peers; NumPy's beside them."""
    from plan import PLAN

    case = next(case for case in PLAN if case.key == "import")
    assert [s.name for s in case.systems] == ["gridstone", "tiledb", "h5py", "zarr", "tensorstore", "duckdb", "numpy"]
    assert [reach.text for reach in case.reaches] == ["≤ 150 ms"] and case.systems[0].role == "gridstone"


def test_an_import_that_fails_is_no_figure(modules: None, tmp_path: Path) -> None:
    import startup
    from inputs import Size
    from systems.package import Package
    from task import Task, WrongResultError

    with pytest.raises(WrongResultError):
        startup.imports(Task(tmp_path, Size(1.0), Package("no_such_package"), check=True))


def test_boxes_of_cells_are_read_from_many_commits_too(modules: None, tmp_path: Path) -> None:
    """S2a: what S1a is judged on, not merged, stands beside what is judged."""
    import gridstone as gs
    from inputs import Size
    from plan import PLAN, STORES
    from task import Task

    for case in (case for case in PLAN if case.row == "S2a"):
        assert case.systems[0].name == "gridstone, auto, one write"
        system = next(s for s in case.systems if s.name == "gridstone, auto, 12 commits")
    task = Task(tmp_path, Size(0.0001), system, check=True)
    task.inputs.make(["cells"])
    system.bare = True
    system.prepare(2)
    task.store("cells").parent.mkdir(parents=True)
    STORES["cells"](task, task.store("cells"))
    with gs.open(task.store("cells")) as array:
        assert len(array.fragments) == 12


def test_duckdb_hands_over_columns_by_the_quickest_way(modules: None) -> None:
    """Few rows and many, by fetchnumpy and by Arrow: the same arrays, each in one piece."""
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from systems import duckdb

    system = duckdb.Cells("sorted, Arrow")
    system.prepare(2)
    engine = system.connect()
    for rows in (10, 300_000):
        engine.execute(f"CREATE OR REPLACE TABLE cells AS SELECT range AS x, range * 2 AS y FROM range({rows})")
        for pool in (None, system.pool):
            found = duckdb.select(engine, "cells", ((0, rows), (0, rows)), pool)
            assert list(found) == ["x", "y"] and all(column.flags.c_contiguous for column in found.values())
            assert np.array_equal(np.sort(found["x"]), np.arange(rows // 2 + 1)), rows
    engine.close()


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


@pytest.mark.usefixtures("modules")
def test_functions_come_under_headings() -> None:
    profiles = importlib.import_module("profiles")
    found = {
        ("[kernel.kallsyms]", "_copy_to_iter"): "copying between page cache and memory",
        ("[kernel.kallsyms]", "clear_page_erms"): "fresh pages",
        ("[kernel.kallsyms]", "do_syscall_64"): "the system, else",
        ("python3.11", "_PyEval_EvalFrameDefault"): "Python and NumPy",
        ("_native.abi3.so", "crc32c::hw_x86_64::crc_u64"): "checksums",
        ("_native.abi3.so", "ZSTD_decompressBlock_internal"): "Zstandard",
        ("_native.abi3.so", "gridstone::query::overlay::LiveOverlay::new"): "updates laid over",
        ("libc.so.6", "__memmove_avx_unaligned_erms"): "moving cells",
        ("_native.abi3.so", "gridstone::query::dense::read_dense"): "the rest of the core",
        ("libm.so.6", "sin"): "else",
    }
    assert {which: profiles.heading(*which) for which in found} == found
    shares = {"checksums": 40.4, "else": 2.9, "moving cells": 56.7}
    table = profiles.markdown([profiles.Profile("D3a", "one tile", "gridstone, none", 0.0012, 1.5, shares, [])])
    assert table.endswith("| D3a | one tile | none | 1.2 ms | 1.50 | moving cells 57 %, checksums 40 % |\n")


def samples() -> bool:
    """Whether `perf` is there and allowed."""
    if shutil.which("perf") is None:
        return False
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-o", os.devnull, "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_profile_says_where_time_goes(tmp_path: Path) -> None:
    if not samples():
        pytest.skip("perf is not there, or not allowed")
    found = gridstone(*TINY, "--only", "D3c-warm,D2-1k", "--profile", "0.02", "--out", str(tmp_path), folder=ROOT)
    assert found.returncode == 0, found.stderr
    profiles = json.loads((tmp_path / "profiles.json").read_text())
    assert [one["key"] for one in profiles] == ["D2-1k", "D3c-warm"]
    for one in profiles:
        assert one["system"] == "gridstone, none" and one["seconds"] > 0 and one["top"]
        assert 95 < sum(one["shares"].values()) < 101
    assert "| D3c-warm |" in (tmp_path / "profiles.md").read_text() and "| D3c-warm |" in found.stdout
