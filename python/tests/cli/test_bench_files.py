"""The rows of the comparison benchmark about foreign files: what is checked, and how they are judged."""

import shutil
from pathlib import Path
from typing import Any

import pytest


def test_every_system_answers_what_is_asked_of_foreign_files(modules: None, tmp_path: Path) -> None:
    """Each workload is checked beside NumPy, on files with a few cells; a file with other values is found out."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    from inputs import Size
    from plan import PLAN, STORES
    from task import Task, WrongResultError

    cases = [case for case in PLAN if case.row.startswith("H5")]
    size, built, taken = Size(0.0001), set(), tmp_path / "scratch"
    Task(tmp_path, size, None, check=True).inputs.make(["stack", "series", "particles"])
    for case in cases:
        for system in case.systems:
            task = Task(tmp_path, size, system, check=True)
            system.bare = True
            system.prepare(1)
            if case.store and (case.store, system.name) not in built:
                task.store(case.store).parent.mkdir(parents=True, exist_ok=True)
                STORES[case.store](task, task.store(case.store))
                built.add((case.store, system.name))
            shutil.rmtree(taken, ignore_errors=True)
            taken.mkdir()
            assert case.run(task) == {}, (case.key, system.name)
    case = next(case for case in cases if case.key == "H5a")
    with h5py.File(task.inputs.files.stack, "a") as file:
        file["field"][0, 0, 0] += 1_000
    for system in case.systems:
        shutil.rmtree(taken, ignore_errors=True)
        taken.mkdir()
        with pytest.raises(WrongResultError, match="the mean of"):
            case.run(Task(tmp_path, size, system, check=True))


def test_variants_of_gridstone_are_judged_by_each_other(modules: None) -> None:
    """The rows of foreign files: attached beside loaded; the steps of each, and from which on loading has paid."""
    import reach

    def row(system: str, *each: float) -> dict[str, Any]:
        role = "peer" if system == "h5py" else "gridstone"
        return {"system": system, "role": role, "seconds": {"median": sum(each)}, "each": list(each)}

    attached = row("gridstone, attached", 1.0, *[0.5] * 10)
    rows = {
        "a": [attached, row("gridstone, loaded, auto", 2.0, *[0.1] * 10), row("h5py", 0.0, *[1.0] * 10)],
        "late": [row("gridstone, attached", 1.0, *[0.5] * 10), row("gridstone, loaded, auto", 9.0, *[0.1] * 10)],
        "never": [row("gridstone, attached", 1.0, *[0.1] * 10), row("gridstone, loaded, auto", 9.0, *[0.1] * 10)],
        "alone": [attached],
    }
    judged = [
        (reach.sooner(2, "loaded"), 0.5, False),
        (reach.within_variant(3, "loaded"), 2.0, True),
        (reach.no_slower(1.3, "h5py"), 0.6, True),
        (reach.before_the_end("loaded"), 1 / 3, False),
        (reach.crossover("loaded"), 3, True),
    ]
    for condition, value, met in judged:
        found = condition.judge(rows, "a")
        assert found["value"] == pytest.approx(value) and found["reached"] is met, condition.text
        assert condition.judge(rows, "alone")["reached"] is None, "there is nothing to compare with"
    shown = reach.crossover("loaded")
    assert shown.judge(rows, "late")["value"] == 20, "8 s of loading more, 0.4 s less for each"
    assert shown.judge(rows, "never")["value"] is None
    assert "1.000 s + 500 ms each; loaded: 2.000 s + 100 ms" in shown.judge(rows, "a")["remark"]
