"""Where Gridstone's time goes, case by case: Linux's `perf` samples the processor while the clock runs, and at no
other time.

A process repeats the case until its clock has run for long enough. Samples are of the processor's time in all threads:
waiting for the device is not in them. Each is put under the first heading of `HEADINGS` whose words its function or
library has.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from harness import WORKER, Harness
from inputs import Inputs
from meter import PERF_VARIABLE
from plan import STORE_NEEDS, Case
from systems.base import System

_HERTZ = 4_999
_SPARE_SECONDS = 300
_SHOWN_PERCENT = 3.0

HEADINGS: tuple[tuple[str, str, str], ...] = (
    (
        "copying between page cache and memory",
        r"\[kernel",
        r"copy_to_iter|copy_from_iter|rep_movs|copy_user|copyin|copyout|memcpy|copy_page",
    ),
    (
        "fresh pages",
        r"\[kernel",
        r"clear_page|clear_huge|fault|alloc_pages|alloc_folio|page_from_freelist|rmap|zap_|unmap|free_unref|free_pages|free_folio|charge|"
        r"lru|folio_add|prep_new|rmqueue|vma|mmap|madvise|pte_|set_pte",
    ),
    ("the system, else", r"\[kernel|\[vdso|\[hypervisor", r""),
    ("Python and NumPy", r"python|numpy|_multiarray|_umath|_ctypes|pandas", r""),
    ("Arrow", r"arrow", r""),
    ("checksums", r"", r"crc32c|crc_fast|xxh3|xxhash"),
    ("Zstandard", r"", r"ZSTD|HUF_|FSE_|HIST_|zstd"),
    ("code without names (Zstandard's assembly)", r"_native", r"^0x"),
    ("other codecs", r"", r"lz4|miniz|inflate|deflate|zlib|LZ4"),
    ("pco", r"", r"\bpco::|[<:]pco::"),
    ("bit packing", r"", r"codec::(for|delta|bits)|bitpack|frame::"),
    ("shuffle", r"", r"shuffle"),
    ("choosing filters", r"", r"codec::auto"),
    ("sorting", r"", r"radix|sort|merge::"),
    ("statistics", r"", r"statistics"),
    ("moving cells", r"", r"memcpy|memmove|memset|move_cells|strided|deliver|gather|slots"),
    ("allocating", r"", r"malloc|free|realloc|calloc|_int_|alloc::|arena"),
    ("boxes and keys", r"", r"::key::|order_key|subarray|mark"),
    ("updates laid over", r"", r"overlay|sorted_copy|ordered_cells"),
    ("log and manifest", r"", r"gridstone::array::|serde|json"),
    ("fragments and their index", r"", r"gridstone::fragment::|stripe"),
)
"""Heading, pattern of the library, pattern of the function."""


@dataclass(frozen=True)
class Profile:
    """One case: the variant, seconds of an operation, cores busy, and the shares of the headings in per cent."""

    key: str
    title: str
    system: str
    seconds: float
    cores: float
    shares: dict[str, float]
    top: list[tuple[str, float]]
    """The functions with the largest shares."""


class Profiler(Harness):
    """Builds and checks as the comparison does, then samples Gridstone's judged variant alone."""

    def profile(self, seconds: float) -> list[Profile]:
        """The profile of each case that has one."""
        if shutil.which("perf") is None:
            raise click.UsageError("--profile needs Linux's perf")
        try:
            self._clear()
            needs = (need for case in self.cases for need in (*case.needs, *STORE_NEEDS.get(case.store, ())))
            Inputs(self.folder / "inputs", self.size).make(needs)
            found = [self._sampled(case, system, seconds) for case, system in self._judged()]
            return [profile for profile in found if profile is not None]
        finally:
            self._clear()

    def _judged(self) -> list[tuple[Case, System]]:
        """The cases and what is sampled of them, if its results are right; not those of starting: they happen
        once; nor those of several processes, whose clocks would speak through one pipe.
        """
        chosen = [
            (case, case.systems[0])
            for case in self.cases
            if not case.bare and case.processes == 1 and case.systems[0].role == "gridstone"
        ]
        return [(case, system) for case, system in chosen if self._usable(case, system)]

    def _sampled(self, case: Case, system: System, seconds: float) -> Profile | None:
        self.say(f"profile of {case.key}: {case.title(self.size)}")
        asked = {"do": "profile", "case": case.key, "system": system.name, "seconds": seconds}
        asked |= {"folder": str(self.folder), "scale": self.size.scale}
        with tempfile.TemporaryDirectory() as scratch:
            control, answer, data = (Path(scratch) / name for name in ("control", "answer", "perf.data"))
            os.mkfifo(control)
            os.mkfifo(answer)
            record = ["perf", "record", "-q", "-F", str(_HERTZ), "-e", "cpu-clock", "-D", "-1", "-o", str(data)]
            record += ["--control", f"fifo:{control},{answer}", "--", sys.executable, str(WORKER), json.dumps(asked)]
            environment = {**self.environment(case.threads), PERF_VARIABLE: f"{control},{answer}"}
            told = _run(record, environment, _SPARE_SECONDS + 20 * seconds)
            try:
                symbols = [] if "error" in told else _symbols(data)
            except subprocess.CalledProcessError as error:
                told = {"error": f"perf report ended with {error.returncode}: {error.stderr.strip()[-500:]}"}
            if "error" in told:
                # The others' profiles are worth having.
                self.failures.append(f"profile of {case.key}: {told['error']}")
                self.say(f"FAILED {self.failures[-1]}")
                return None
        shares: dict[str, float] = defaultdict(float)
        for library, function, percent in symbols:
            shares[heading(library, function)] += percent
        top = [(f"{function} ({library})", percent) for library, function, percent in symbols[:12]]
        cores = told["cpu_seconds"] / told["seconds"]
        return Profile(case.key, case.title(self.size), system.name, told["seconds"], cores, dict(shares), top)


def _run(command: list[str], environment: dict[str, str], seconds: float) -> dict[str, Any]:
    """The worker's answer, or its error; the processes end with it."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            out, complaints = process.communicate(timeout=seconds)
        except BaseException as error:
            # Not perf alone: the worker is a child of it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return {"error": f"it took longer than {seconds:.0f} s"}
    try:
        answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": f"perf ended with {process.returncode}: {complaints.strip()[-500:]}"}
    return answer


def _symbols(data: Path) -> list[tuple[str, str, float]]:
    """Library, function and per cent of the samples, most first."""
    report = ["perf", "report", "-i", str(data), "--stdio", "--no-children", "-g", "none", "-F", "overhead,dso,sym"]
    shown = subprocess.run([*report, "--field-separator=\t"], capture_output=True, text=True, check=True).stdout
    found = []
    for line in shown.splitlines():
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) == 3 and parts[0].endswith("%"):
            found.append((parts[1], re.sub(r"^\[.\] ", "", parts[2]), float(parts[0].rstrip("%"))))
    return found


def heading(library: str, function: str) -> str:
    """Where a function belongs."""
    for name, of_library, of_function in HEADINGS:
        if re.search(of_library, library) and re.search(of_function, function):
            return name
    return "the rest of the core" if "_native" in library else "else"


def markdown(profiles: list[Profile]) -> str:
    """The profiles as a table."""
    lines = ["| case | what | variant | time | cores | where it goes |", "|---|---|---|--:|--:|---|"]
    for one in profiles:
        shares = sorted(one.shares.items(), key=lambda item: -item[1])
        told = ", ".join(f"{name} {share:.0f} %" for name, share in shares if share >= _SHOWN_PERCENT)
        time = f"{one.seconds * 1e3:.3g} ms"
        lines.append(
            f"| {one.key} | {one.title} | {one.system.partition(', ')[2]} | {time} | {one.cores:.2f} | {told} |"
        )
    return "\n".join(lines) + "\n"
