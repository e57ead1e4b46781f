"""Checks first, then times: every (system, case) in a fresh process, systems interleaved, their order rotated."""

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inputs import Inputs, Size
from plan import STORE_NEEDS, Case
from reach import no_limits
from systems.base import System
from task import Sample

Say = Callable[[str], None]

WORKER = Path(__file__).with_name("worker.py")
"""What a process of the benchmark runs."""
_PROCESS_SECONDS_MAX = 900
_THREADS = ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS", "BLOSC_NTHREADS", "GRIDSTONE_THREADS")
"""What libraries read before any setting of theirs can be made."""


@dataclass
class Harness:
    """One run of the benchmark in `folder`; `missing` and `failures` say what has no figures, and why."""

    folder: Path
    size: Size
    repeats: int
    say: Say
    cases: Sequence[Case]
    families: frozenset[str] = frozenset()
    """The systems wanted, by family; none: all."""
    minutes: float | None = None
    """No further case is begun after so long; None: all are."""
    missing: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _built: dict[tuple[str, str], bool] = field(default_factory=dict)
    _answers: dict[tuple[str, str, str], Sample] = field(default_factory=dict)
    """What processes said that several cases share."""

    def run(self) -> list[dict[str, Any]]:
        """The figures of each case."""
        try:
            self._clear()  # what a run that was stopped has left
            self.say("making the inputs")
            Inputs(self.folder / "inputs", self.size).make(
                need for case in self.cases for need in (*case.needs, *STORE_NEEDS.get(case.store, ()))
            )
            end = None if self.minutes is None else time.monotonic() + self.minutes * 60
            figures = []
            for case in self.cases:
                if end is not None and time.monotonic() > end:
                    self._miss(f"{case.key} was not measured: the {self.minutes:g} minutes were over")
                    continue
                usable = [s for s in self._wanted(case) if self._usable(case, s)]
                figures.append(self._summary(case, usable, self._time(case, usable)))
                self._tell(figures[-1])
            return figures
        finally:
            self._clear()

    def _clear(self) -> None:
        for name in ("inputs", "stores", "scratch"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _wanted(self, case: Case) -> list[System]:
        self.say(f"checking {case.key}: {case.title(self.size)}")
        wanted = [s for s in case.systems if not self.families or s.family in self.families or not s.ranked]
        return [system for system in wanted if self._installed(system)]

    def _installed(self, system: System) -> bool:
        needed = [system.module, *system.also]
        if system.module == "h5py" and "zstd" in system.variant:
            needed.append("hdf5plugin")
        for module in needed:
            if importlib.util.find_spec(module) is None:
                self._miss(f"{module} is not installed: {system.name} is skipped (pip install 'gridstone[bench]')")
                return False
        return True

    def _miss(self, line: str) -> None:
        if line not in self.missing:
            self.missing.append(line)
            self.say(line)

    def _usable(self, case: Case, system: System) -> bool:
        """Whether its store could be built, and it gives NumPy's results."""
        if case.store and not self._build(case, system):
            return False
        answer = self._answer(case, system, "check")
        return not self._failed(f"{case.key}, {case.title(self.size)}: {system.name}", answer)

    def _build(self, case: Case, system: System) -> bool:
        key = (case.store, system.kept_as)
        if key not in self._built:
            answer = self._process({"do": "build", "store": case.store, "system": system.name}, 2)
            self._built[key] = not self._failed(f"the store {case.store!r} of {system.name}", answer)
        return self._built[key]

    def _failed(self, what: str, answer: Sample) -> bool:
        if "error" in answer:
            self.failures.append(f"{what}: {answer['error']}")
            self.say(f"FAILED {self.failures[-1]}")
        return "error" in answer

    def _time(self, case: Case, systems: list[System]) -> dict[str, list[Sample]]:
        """The samples of each system: once around for each repeat, begun by another one each time."""
        samples: dict[str, list[Sample]] = {}
        for repeat in range(self.repeats):
            self.say(f"repeat {repeat + 1} of {self.repeats}: {case.key}: {case.title(self.size)}")
            turn = repeat % max(1, len(systems))
            for system in systems[turn:] + systems[:turn]:
                answer = self._answer(case, system, f"time {repeat}")
                if not self._failed(f"{case.key}, {case.title(self.size)}: {system.name}", answer):
                    samples.setdefault(system.name, []).append(answer)
        return samples

    def _answer(self, case: Case, system: System, what: str) -> Sample:
        """What a process of its own finds; the cases of one group share it, and each takes its part."""
        asked = {"do": what.partition(" ")[0], "case": case.key, "system": system.name}
        if not case.group:
            return self._process(asked, case.threads)
        key = (case.group, system.name, what)
        if key not in self._answers:
            self._answers[key] = self._process(asked, case.threads)
        answer = self._answers[key]
        part: Sample = answer if "error" in answer else answer["parts"][case.part]
        return part

    def _tell(self, figure: dict[str, Any]) -> None:
        """Says what was found at once: a run takes hours, and may be stopped."""
        for row in figure["systems"]:
            seconds, growth = row["seconds"]["median"], row["rss_growth_bytes"] / 1e6
            self.say(f"{figure['key']}: {row['system']}: {seconds * 1e3:.3f} ms, peak {growth:.1f} MB")

    def _process(self, asked: dict[str, Any], threads: int) -> Sample:
        asked = {**asked, "folder": str(self.folder), "scale": self.size.scale}
        command = [sys.executable, str(WORKER), json.dumps(asked)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_PROCESS_SECONDS_MAX,
                check=False,
                env=self.environment(threads),
            )
            answer: Sample = json.loads(done.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            return {"error": f"no answer in {_PROCESS_SECONDS_MAX} s"}
        except (IndexError, json.JSONDecodeError):
            return {"error": f"exit status {done.returncode}: {done.stderr.strip()[-500:]}"}
        return answer

    def environment(self, threads: int) -> dict[str, str]:
        """The variables of a process of so many threads."""
        environment = {**os.environ, **{name: str(threads) for name in _THREADS}}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # imports are compiled once, by the check, as for a user
        return environment

    def _summary(self, case: Case, systems: list[System], samples: dict[str, list[Sample]]) -> dict[str, Any]:
        rows = [_row(s, samples[s.name]) for s in systems if s.name in samples]
        peers = [row["seconds"]["median"] for row in rows if row["role"] == "peer"]
        for row in rows:
            own = row["seconds"]["median"]
            row["times_best_peer"] = min(peers) / own if peers and row["role"] in ("gridstone", "peer") else None
        title = case.title(self.size)
        return {"key": case.key, "row": case.row, "family": case.family, "title": title, "systems": rows}


def judge(cases: Sequence[Case], figures: list[dict[str, Any]]) -> None:
    """Adds to each case's figures what it was to reach, whether it did, and which of its limits are none."""
    rows = {figure["key"]: figure["systems"] for figure in figures}
    for case, figure in zip(cases, figures, strict=True):
        figure["reach"] = [reach.judge(rows, case.key) for reach in case.reaches]
        figure["no_limits"] = no_limits(figure["systems"])


def _row(system: System, samples: list[Sample]) -> dict[str, Any]:
    seconds = [sample["seconds"] for sample in samples]
    spread = {"median": statistics.median(seconds), "min": min(seconds), "max": max(seconds), "runs": seconds}
    usual = {k: statistics.median(s[k] for s in samples) for k in ("cpu_seconds", "rss_growth_bytes", "disk_bytes")}
    told = {"system": system.name, "family": system.family, "role": system.role, "seconds": spread, **usual}
    return {**told, **_operations(samples), **_reads(samples), **_each(samples)}


def _operations(samples: list[Sample]) -> dict[str, Any]:
    """How single operations differ, where a process times several: the extremes of all runs, a median percentile."""
    found = [sample["operations"] for sample in samples if "operations" in sample]
    if not found:
        return {}
    p90 = statistics.median(one["p90"] for one in found)
    low, high = min(one["min"] for one in found), max(one["max"] for one in found)
    return {"operations": {"count": found[0]["count"], "min": low, "p90": p90, "max": high}}


def _each(samples: list[Sample]) -> dict[str, Any]:
    """The steps of what is timed in all: the time of each; medians of the runs."""
    if "each" not in samples[0]:
        return {}
    return {"each": [statistics.median(times) for times in zip(*(one["each"] for one in samples), strict=True)]}


def _reads(samples: list[Sample]) -> dict[str, Any]:
    """A process that warms up: the read at which it is at full speed, and the time of each; medians of the runs."""
    if "reads" not in samples[0]:
        return {}
    each = [statistics.median(times) for times in zip(*(sample["reads"] for sample in samples), strict=True)]
    return {"read": statistics.median(sample["read"] for sample in samples), "reads": each}
