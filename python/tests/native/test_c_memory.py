"""Programs that use the whole interface, under valgrind: no access beyond memory, and nothing definitely lost."""

from pathlib import Path

import pytest
from c_programs import CPP, EXAMPLES, C, Installed, run, tool

PROGRAMS = {
    "wrapper": (Path(__file__).parent / "wrapper.cpp", "g++", ["-std=c++20", *CPP, "-g"]),
    "fork": (EXAMPLES / "c" / "fork.c", "gcc", [*C, "-g"]),
    "threads": (EXAMPLES / "c" / "threads.c", "gcc", [*C, "-g", "-fopenmp"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_valgrind_finds_nothing(name: str, installed: Installed, tmp_path: Path) -> None:
    source, compiler, options = PROGRAMS[name]
    program = installed.compile(compiler, source, tmp_path / name, options)
    checks = ["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    shown = ["--quiet", "--show-leak-kinds=definite", "--trace-children=yes"]
    done = run([tool("valgrind"), *checks, *shown, program], tmp_path, env=installed.environment())
    assert done.stderr == b""


def test_valgrind_would_find_it(installed: Installed, tmp_path: Path) -> None:
    source = Path(__file__).parent / "short_room.c"
    program = installed.compile("gcc", source, tmp_path / "short", [*C, "-g"])
    command = [tool("valgrind"), "--quiet", "--error-exitcode=9", program]
    run(["sh", "-c", '"$@" 2>found; test $? -eq 9', "sh", *command], tmp_path, env=installed.environment())
    assert "Invalid write" in (tmp_path / "found").read_text(encoding="utf-8")
