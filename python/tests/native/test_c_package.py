"""What `make install-c` leaves: headers, libraries, packages of pkg-config and CMake that may be moved."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from c_programs import COMPILERS, CPP, CPP_COMPILERS, CRATE, EXAMPLES, C, Installed, install, run, tool

import gridstone as gs

FILES = {
    "include/gridstone.h",
    "include/gridstone.hpp",
    "include/gridstone/calls.hpp",
    "include/gridstone/columns.hpp",
    "include/gridstone/reads.hpp",
    "lib/libgridstone.a",
    "lib/libgridstone.so",
    "lib/libgridstone.so.0",
    f"lib/libgridstone.so.{gs.__version__}",
    "lib/pkgconfig/gridstone.pc",
    "lib/cmake/Gridstone/GridstoneConfig.cmake",
    "lib/cmake/Gridstone/GridstoneConfigVersion.cmake",
}

PROGRAM = """
#include <gridstone.h>
#include <stdio.h>

int main(void) {
    gridstone_context context;
    if (gridstone_context_create(NULL, &context) != GRIDSTONE_OK) return 1;
    puts(gridstone_version());
    return gridstone_free(context);
}
"""

LISTS = """
cmake_minimum_required(VERSION 3.18)
project(try LANGUAGES C)
find_package(Gridstone {version} REQUIRED)
add_executable(shared try.c)
target_link_libraries(shared PRIVATE Gridstone::gridstone)
add_executable(static try.c)
target_link_libraries(static PRIVATE Gridstone::static)
"""


def exported(prefix: Path) -> set[str]:
    """The functions that the header declares."""
    header = (prefix / "include" / "gridstone.h").read_text(encoding="utf-8")
    return set(re.findall(r"^(?:\w+ )+\*?(gridstone_\w+)\(", header, re.MULTILINE))


def symbols(arguments: list[str], library: Path) -> set[str]:
    """Defined names of a library that others can link."""
    lines = run([tool("nm"), *arguments, "--defined-only", "--format=posix", library]).stdout.decode().splitlines()
    return {line.split()[0] for line in lines if " " in line}


def test_the_prefix_holds_what_it_should(installed: Installed) -> None:
    found = {str(path.relative_to(installed.prefix)) for path in installed.prefix.rglob("*") if not path.is_dir()}
    assert found == FILES
    assert os.readlink(installed.prefix / "lib" / "libgridstone.so") == "libgridstone.so.0"
    for header in (
        "gridstone.h",
        "gridstone.hpp",
        "gridstone/calls.hpp",
        "gridstone/columns.hpp",
        "gridstone/reads.hpp",
    ):
        assert (installed.prefix / "include" / header).read_bytes() == (CRATE / "include" / header).read_bytes()


def test_each_function_of_the_header_is_exported_and_nothing_else(installed: Installed) -> None:
    functions = exported(installed.prefix)
    assert len(functions) > 40
    assert symbols(["-D"], installed.prefix / "lib" / "libgridstone.so") == functions
    assert symbols(["-g"], installed.prefix / "lib" / "libgridstone.a") == functions


def test_the_library_bears_its_name(installed: Installed) -> None:
    said = run([tool("objdump"), "-p", installed.prefix / "lib" / "libgridstone.so"]).stdout.decode()
    assert re.search(r"SONAME\s+libgridstone\.so\.0$", said, re.MULTILINE)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_a_program_needs_nothing_but_pkg_config(
    compiler: str, static: bool, installed: Installed, tmp_path: Path
) -> None:
    source = tmp_path / "try.c"
    source.write_text(PROGRAM, encoding="utf-8")
    made = installed.compile(compiler, source, tmp_path / "try", C, static)
    environment = {"PATH": os.environ["PATH"]} if static else installed.environment()
    assert run([made], env=environment).stdout.decode().strip() == gs.__version__
    if static:
        assert b"libgridstone" not in run([tool("ldd"), made]).stdout


def configured(prefix: Path, folder: Path, version: str) -> list[str | Path]:
    """A project of CMake, and the command that configures it."""
    folder.mkdir()
    (folder / "try.c").write_text(PROGRAM, encoding="utf-8")
    (folder / "CMakeLists.txt").write_text(LISTS.format(version=version), encoding="utf-8")
    return [tool("cmake"), "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]


def test_a_program_needs_nothing_but_find_package_wherever_the_prefix_was_moved(
    installed: Installed, tmp_path: Path
) -> None:
    moved = tmp_path / "moved here"
    shutil.copytree(installed.prefix, moved, symlinks=True)
    run(configured(moved, tmp_path / "project", "0.1"))
    run([tool("cmake"), "--build", tmp_path / "project" / "build"])
    for kind in ("shared", "static"):
        program = tmp_path / "project" / "build" / kind
        assert run([program]).stdout.decode().strip() == gs.__version__
    linked = run([tool("ldd"), tmp_path / "project" / "build" / "shared"]).stdout.decode()
    assert f"{moved}/lib/libgridstone.so.0" in linked


@pytest.mark.parametrize("version", ["0.2", "1.0", "0.1.999"])
def test_cmake_refuses_another_version(version: str, installed: Installed, tmp_path: Path) -> None:
    command = [str(word) for word in configured(installed.prefix, tmp_path / "project", version)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0 and "compatible" in done.stderr


def test_pkg_config_moves_with_the_prefix(installed: Installed, tmp_path: Path) -> None:
    moved = Installed(tmp_path / "moved")
    (moved.prefix / "lib" / "pkgconfig").mkdir(parents=True)
    (moved.prefix / "include").mkdir()
    shutil.copy(installed.prefix / "lib" / "pkgconfig" / "gridstone.pc", moved.prefix / "lib" / "pkgconfig")
    said = moved.flags("--cflags", "--libs")
    folders = {flag[:2]: Path(flag[2:]).resolve() for flag in said if flag[:2] in ("-I", "-L")}
    assert folders == {"-I": moved.prefix / "include", "-L": moved.prefix / "lib"}
    assert moved.flags("--modversion") == [gs.__version__]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_header_is_alone_in_c(compiler: str, installed: Installed, tmp_path: Path) -> None:
    source = tmp_path / "alone.c"
    source.write_text("#include <gridstone.h>\n#include <gridstone.h>\nint nothing;\n", encoding="utf-8")
    run([tool(compiler), *C, "-I", installed.prefix / "include", "-fsyntax-only", source])


@pytest.mark.parametrize("compiler", CPP_COMPILERS)
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize("header", ["gridstone.h", "gridstone.hpp", "gridstone/columns.hpp", "gridstone/reads.hpp"])
def test_the_header_is_alone_in_cpp(
    compiler: str, standard: str, header: str, installed: Installed, tmp_path: Path
) -> None:
    source = tmp_path / "alone.cpp"
    source.write_text(f"#include <{header}>\n#include <{header}>\nint nothing;\n", encoding="utf-8")
    run([tool(compiler), f"-std={standard}", *CPP, "-I", installed.prefix / "include", "-fsyntax-only", source])


def test_destdir_goes_before_the_prefix(tmp_path: Path) -> None:
    if "GRIDSTONE_C_PREFIX" not in os.environ:
        pytest.skip("the library was built for this run already; make test sets GRIDSTONE_C_PREFIX")
    install(Path("/opt/gridstone"), DESTDIR=str(tmp_path / "room"))
    root = tmp_path / "room" / "opt" / "gridstone"
    assert {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()} == FILES
    assert str(tmp_path) not in (root / "lib" / "pkgconfig" / "gridstone.pc").read_text(encoding="utf-8")


def test_examples_of_cmake_are_those_of_the_folder() -> None:
    lists = (EXAMPLES / "c" / "CMakeLists.txt").read_text(encoding="utf-8")
    named = set(re.findall(r"^ *example\((\w+)", lists, re.MULTILINE))
    assert named == {path.stem for path in (EXAMPLES / "c").glob("*.c")}
