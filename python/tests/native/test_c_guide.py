"""The examples of `docs/guide/c.md` are compiled and run as printed, and the header for C++ keeps what it promises.

Blocks of C that begin with `#include` stand at the top of a file; the others follow each other in one `main`.
"""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_programs import COMPILERS, CPP, CPP_COMPILERS, ROOT, C, Installed, run, tool

import gridstone as gs

PAGE = ROOT / "docs" / "guide" / "c.md"
HEADERS = sorted((ROOT / "crates" / "gridstone-capi" / "include").rglob("*.h*"))


def blocks(language: str) -> list[str]:
    page = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_page_runs(compiler: str, installed: Installed, tmp_path: Path) -> None:
    top = [block for block in blocks("c") if block.startswith("#include")]
    body = [block for block in blocks("c") if not block.startswith("#include")]
    assert len(top) == 1 and len(body) >= 8
    source = tmp_path / "page.c"
    source.write_text(f"{top[0]}\nint main(void) {{\n{''.join(body)}return 0;\n}}\n", encoding="utf-8")
    # The page takes what a call gives, and leaves it at that.
    program = installed.compile(compiler, source, tmp_path / "page", [*C, "-Wno-unused-but-set-variable"])
    folder = tmp_path / "run"
    folder.mkdir()
    assert b"nothing.gs" in run([program], folder, env=installed.environment()).stdout
    image = gs.open(str(folder / "image.gs"))
    assert (image.read()["light"] == 0).all() and dict(image.meta) == {"unit": "lux"}
    assert [version.message for version in image.history()].count("first light") == 4
    names = gs.open(str(folder / "ships.gs"), path="/names").read().to_numpy()
    assert names["mmsi"].tolist() == [211000002, 219000001, 257000003]
    assert np.ma.getmaskarray(names["name"]).tolist() == [True, False, False]
    assert [str(name) for name in names["name"][1:]] == ["Luna", "Freya"]


@pytest.mark.parametrize("compiler", CPP_COMPILERS)
def test_the_program_in_cpp_runs(compiler: str, installed: Installed, tmp_path: Path) -> None:
    (block,) = blocks("cpp")
    source = tmp_path / "page.cpp"
    source.write_text(block, encoding="utf-8")
    program = installed.compile(compiler, source, tmp_path / "page", ["-std=c++17", *CPP])
    run([program], tmp_path, env=installed.environment())
    assert (gs.open(str(tmp_path / "line.gs")).read()["v"] == 1.5).all()


def test_what_the_page_says_of_building_is_so(installed: Installed, tmp_path: Path) -> None:
    (lists,) = blocks("cmake")
    assert "Gridstone::static" in lists
    project = "cmake_minimum_required(VERSION 3.18)\nproject(page LANGUAGES CXX)\n"
    (tmp_path / "page.cpp").write_text(blocks("cpp")[0], encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text(f"{project}add_executable(program page.cpp)\n{lists}", encoding="utf-8")
    run([tool("cmake"), "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={installed.prefix}"])
    run([tool("cmake"), "--build", tmp_path / "build"])
    run([tmp_path / "build" / "program"], tmp_path)


def test_each_name_of_the_page_is_in_the_header() -> None:
    header = (ROOT / "crates" / "gridstone-capi" / "include" / "gridstone.h").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:gridstone|GRIDSTONE)_\w+", PAGE.read_text(encoding="utf-8")))
    assert len(named) > 40
    assert {name for name in named if not re.search(rf"\b{name}\b", header)} == set()


@pytest.mark.parametrize("compiler", CPP_COMPILERS)
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_the_header_for_cpp_keeps_its_promises(
    compiler: str, standard: str, installed: Installed, tmp_path: Path
) -> None:
    source = Path(__file__).parent / "wrapper.cpp"
    program = installed.compile(compiler, source, tmp_path / "wrapper", [f"-std={standard}", *CPP])
    run([program], tmp_path, env=installed.environment())


def wrong(installed: Installed, folder: Path, line: str) -> str:
    """What the compiler says of a line that is not to compile."""
    source = folder / "wrong.cpp"
    source.write_text(f"#include <gridstone.hpp>\nvoid f() {{ {line} }}\n", encoding="utf-8")
    command = [tool("g++"), "-std=c++17", "-fsyntax-only", "-I", str(installed.prefix / "include"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("gridstone::Context a; auto b = a;", "deleted"),
        ("struct Own {}; gridstone::type_name<Own>::get();", "stores no values of this C\\+\\+ type"),
        ('gridstone::column("t", std::vector<std::string>());', "deleted"),
        ('std::vector<std::string> t; gridstone::column("t", t);', "pack texts"),
        ('gridstone::column("v", std::vector<float>(3));', "deleted"),
        ('std::vector<bool> b; gridstone::column("b", b);', "no matching function|data"),
        ('gridstone::Values<std::string> s("s", 3);', "gridstone::Texts"),
    ],
)
def test_mistakes_in_cpp_do_not_compile(line: str, words: str, installed: Installed, tmp_path: Path) -> None:
    assert wrong(installed, tmp_path, "") == ""
    assert re.search(words, wrong(installed, tmp_path, line)), wrong(installed, tmp_path, line)


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header.name)
def test_each_macro_and_name_bears_the_name_of_the_library(header: Path) -> None:
    text = header.read_text(encoding="utf-8")
    macros = set(re.findall(r"^#define (\w+)", text, re.MULTILINE))
    assert macros and all(name.startswith(("GRIDSTONE_", "ARROW_")) for name in macros)
