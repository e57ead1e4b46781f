"""Checks first, then times: every (system, workload) in a fresh process, systems interleaved, their order rotated."""

import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inputs import Inputs, Size
from workloads import PLAN, Workload

Say = Callable[[str], None]
Sample = dict[str, Any]

_WORKER = Path(__file__).with_name("worker.py")
_PROCESS_SECONDS_MAX = 900


@dataclass
class Harness:
    """One run of the benchmark in `folder`; `missing` and `failures` say what has no figures, and why."""

    folder: Path
    size: Size
    repeats: int
    say: Say
    workloads: Sequence[Workload] = PLAN
    missing: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def run(self) -> list[dict[str, Any]]:
        """The figures of each workload."""
        try:
            self.say("making the inputs")
            Inputs(self.folder / "inputs", self.size).make()
            usable = self._check()
            return [self._summary(w, usable[w.key], samples) for w, samples in self._time(usable)]
        finally:
            for name in ("inputs", "stores", "scratch"):
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def _present(self, workload: Workload) -> list[Any]:
        found = []
        for system in workload.systems:
            if importlib.util.find_spec(system.module) is not None:
                found.append(system)
                continue
            line = f"{system.module} is not installed: {system.name} is skipped (pip install 'gridstone[bench]')"
            if line not in self.missing:
                self.missing.append(line)
                self.say(line)
        return found

    def _check(self) -> dict[str, list[Any]]:
        """The systems of each workload that are installed and give NumPy's results."""
        usable = {}
        groups = {workload.group for workload in self.workloads}
        for workload in PLAN:
            needed = workload.group in groups and workload.leaves_store
            if workload not in self.workloads and not needed:
                continue
            self.say(f"checking {workload.title(self.size)}")
            usable[workload.key] = [s for s in self._present(workload) if self._right(workload, s)]
        return usable

    def _right(self, workload: Workload, system: Any) -> bool:
        answer = self._process(workload, system, check=True)
        if "error" in answer:
            self.failures.append(f"{workload.title(self.size)}: {system.name}: {answer['error']}")
            self.say(f"FAILED {self.failures[-1]}")
        return "error" not in answer

    def _time(self, usable: dict[str, list[Any]]) -> list[tuple[Workload, dict[str, list[Sample]]]]:
        samples: dict[str, dict[str, list[Sample]]] = {w.key: {} for w in self.workloads}
        for repeat in range(self.repeats):
            for workload in self.workloads:
                self.say(f"repeat {repeat + 1} of {self.repeats}: {workload.title(self.size)}")
                systems = usable[workload.key]
                turn = repeat % max(1, len(systems))
                for system in systems[turn:] + systems[:turn]:
                    answer = self._process(workload, system, check=False)
                    if "error" in answer:
                        self.failures.append(f"{workload.title(self.size)}: {system.name}: {answer['error']}")
                        continue
                    samples[workload.key].setdefault(system.name, []).append(answer)
        return [(w, samples[w.key]) for w in self.workloads]

    def _process(self, workload: Workload, system: Any, *, check: bool) -> Sample:
        asked = {
            "workload": workload.key,
            "system": system.name,
            "folder": str(self.folder),
            "scale": self.size.scale,
            "check": check,
        }
        command = [sys.executable, str(_WORKER), json.dumps(asked)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PROCESS_SECONDS_MAX, check=False)
            answer: Sample = json.loads(done.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            return {"error": f"no answer in {_PROCESS_SECONDS_MAX} s"}
        except (IndexError, json.JSONDecodeError):
            return {"error": f"exit status {done.returncode}: {done.stderr.strip()[-500:]}"}
        return answer

    def _summary(self, workload: Workload, systems: list[Any], samples: dict[str, list[Sample]]) -> dict[str, Any]:
        rows = [_row(s, samples[s.name]) for s in systems if s.name in samples]
        peers = [row["seconds"]["median"] for row in rows if row["role"] == "peer"]
        limits = [row["seconds"]["median"] for row in rows if row["role"] == "limit"]
        for row in rows:
            own = row["seconds"]["median"]
            row["times_best_peer"] = min(peers) / own if peers and row["role"] != "limit" else None
            row["of_limit"] = own / min(limits) if limits else None
        return {"key": workload.key, "title": workload.title(self.size), "systems": rows}


def _row(system: Any, samples: list[Sample]) -> dict[str, Any]:
    seconds = [sample["seconds"] for sample in samples]
    spread = {"median": statistics.median(seconds), "min": min(seconds), "max": max(seconds), "runs": seconds}
    usual = {k: statistics.median(s[k] for s in samples) for k in ("cpu_seconds", "rss_growth_bytes", "disk_bytes")}
    return {"system": system.name, "role": system.role, "seconds": spread, **usual}
