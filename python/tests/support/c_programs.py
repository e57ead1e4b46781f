"""Programs in C and C++ of the tests: compiled with what an installed C interface says of itself, and run."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CRATE = ROOT / "crates" / "gridstone-capi"
EXAMPLES = ROOT / "examples"

# Where nothing may be skipped: a tool that is missing fails a test.
ALL = "GRIDSTONE_TEST_C" in os.environ

C = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]
CPP = ["-Wall", "-Wextra", "-Werror", "-Wpedantic"]
COMPILERS = ["gcc", "clang"]
CPP_COMPILERS = ["g++", "clang++"]


def tool(name: str) -> str:
    """The path of a program. A test is skipped where there is none, and fails where nothing may be skipped."""
    found = shutil.which(name)
    if found is None and ALL:
        pytest.fail(f"{name} is not installed, and GRIDSTONE_TEST_C says that nothing is skipped")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(
    command: Sequence[str | Path | int], cwd: Path | None = None, **more: object
) -> subprocess.CompletedProcess[bytes]:
    """Runs a command and returns what it printed; the test fails with it if the command does."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, **more)  # type: ignore[call-overload]
    if done.returncode != 0:
        shown = (done.stdout[-4_000:] + done.stderr[-4_000:]).decode(errors="replace")
        pytest.fail(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{shown}")
    return done


class Installed:
    """An installed C interface."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix

    def flags(self, *asked: str) -> list[str]:
        """What pkg-config says of it."""
        path = {"PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig")}
        return run([tool("pkg-config"), *asked, "gridstone"], env=os.environ | path).stdout.decode().split()

    def compile(self, compiler: str, source: Path, made: Path, options: Sequence[str], static: bool = False) -> Path:
        """Makes a program of a source, with nothing but a compiler and pkg-config."""
        flags = self.flags("--cflags", "--libs")
        if static:
            flags = [*self.flags("--cflags"), str(self.prefix / "lib" / "libgridstone.a"), *self.system()]
        run([tool(compiler), *options, source, *flags, "-o", made])
        return made

    def system(self) -> list[str]:
        """The libraries of the system that the archive needs."""
        own = self.flags("--libs")
        return [flag for flag in self.flags("--libs", "--static") if flag not in own]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Variables with which a program finds the shared library."""
        return {**os.environ, "LD_LIBRARY_PATH": str(self.prefix / "lib"), **(more or {})}


def install(prefix: Path, **variables: str) -> Installed:
    """Installs by the script that `make install-c` runs."""
    tool("cargo")
    run([CRATE / "package" / "install", prefix], env=os.environ | variables)
    return Installed(prefix)
