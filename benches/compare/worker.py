"""One fresh process of the benchmark: `python worker.py JSON`, started by `harness`. Prints its figures as JSON."""

import json
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

from inputs import Size
from plan import PLAN, STORES, Case
from systems.base import System
from task import Task, WrongResultError


def main() -> None:
    """Builds the one store, or runs the one (case, system), that it is asked for."""
    asked = json.loads(sys.argv[1])
    folder = Path(asked["folder"])
    shutil.rmtree(folder / "scratch", ignore_errors=True)
    (folder / "scratch").mkdir(parents=True)
    try:
        answer = _WORK.get(asked["do"], _run)(asked, folder)
    except Exception as error:
        kind = "wrong result" if isinstance(error, WrongResultError) else type(error).__name__
        answer = {"error": f"{kind}: {error}"}
    finally:
        shutil.rmtree(folder / "scratch", ignore_errors=True)
    print(json.dumps(answer))


def _build(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    system = next(s for c in PLAN if c.store == asked["store"] for s in c.systems if s.name == asked["system"])
    system.prepare(2)
    task = Task(folder, Size(asked["scale"]), system, check=True)
    store = task.store(asked["store"])
    store.parent.mkdir(parents=True, exist_ok=True)
    STORES[asked["store"]](task, store)
    return {}


def _run(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    case, task = _prepared(asked, folder)
    return case.run(task)


def _profile(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Runs the case again and again until its clock has run for so long: medians of the runs."""
    case, task = _prepared(asked, folder)
    samples, clocked = [], 0.0
    while clocked < asked["seconds"]:
        sample = case.run(task)
        samples.append(sample)
        clocked += sample["seconds"] * sample.get("operations", {}).get("count", 1)
        shutil.rmtree(task.scratch)
        task.scratch.mkdir()
    return {name: statistics.median(s[name] for s in samples) for name in ("seconds", "cpu_seconds")}


def _prepared(asked: dict[str, Any], folder: Path) -> tuple[Case, Task]:
    case = next(c for c in PLAN if c.key == asked["case"])
    system: System = next(s for s in case.systems if s.name == asked["system"])
    system.bare = case.bare
    if case.threads == case.processes == 1:
        system.confine(0)
    if not case.bare:
        system.prepare(case.threads)
    return case, Task(folder, Size(asked["scale"]), system, asked["do"] == "check", case.threads, case.processes)


_WORK = {"build": _build, "profile": _profile}


if __name__ == "__main__":
    main()
