"""Programs that use the whole interface, under valgrind: no access beyond memory, and nothing definitely lost."""

import json
from pathlib import Path

import pytest
from c_programs import CPP, EXAMPLES, ROOT, C, Installed, run, tool

HERE = Path(__file__).parent
CHECKS = ["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]
SHOWN = ["--quiet", "--show-leak-kinds=definite", "--trace-children=yes"]
PROGRAMS = {
    "wrapper": (HERE / "wrapper.cpp", "g++", ["-std=c++20", *CPP, "-g"]),
    "fork": (EXAMPLES / "c" / "fork.c", "gcc", [*C, "-g"]),
    "threads": (EXAMPLES / "c" / "threads.c", "gcc", [*C, "-g", "-fopenmp"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_valgrind_finds_nothing(name: str, installed: Installed, tmp_path: Path) -> None:
    source, compiler, options = PROGRAMS[name]
    program = installed.compile(compiler, source, tmp_path / name, options)
    done = run([tool("valgrind"), *CHECKS, *SHOWN, program], tmp_path, env=installed.environment())
    assert done.stderr == b""


def program_of_rust() -> Path:
    """The program of the crate's own tests; `make test` has built it before, and this only finds it."""
    command = [tool("cargo"), "test", "--release", "--package", "gridstone-capi", "--test", "main", "--no-run"]
    said = map(json.loads, run([*command, "--message-format=json"], ROOT).stdout.splitlines())
    (program,) = [Path(message["executable"]) for message in said if message.get("executable")]
    return program


def test_valgrind_finds_nothing_in_the_tests_of_each_function(tmp_path: Path) -> None:
    # Parts of the interface that no program above uses: Arrow, questions, groups, attached files, copies, upkeep.
    known = f"--suppressions={HERE / 'rust.supp'}"
    # In a child that was forked beside threads, what those threads held is lost by nature.
    some = ["--test-threads=2", "--skip", "forked_beside_threads"]
    done = run([tool("valgrind"), *CHECKS, *SHOWN, known, program_of_rust(), *some], tmp_path)
    assert done.stderr == b"" and b" 0 failed" in done.stdout and b"running 0 tests" not in done.stdout


def test_valgrind_would_find_it(installed: Installed, tmp_path: Path) -> None:
    source = HERE / "short_room.c"
    program = installed.compile("gcc", source, tmp_path / "short", [*C, "-g"])
    command = [tool("valgrind"), "--quiet", "--error-exitcode=9", program]
    run(["sh", "-c", '"$@" 2>found; test $? -eq 9', "sh", *command], tmp_path, env=installed.environment())
    assert "Invalid write" in (tmp_path / "found").read_text(encoding="utf-8")
