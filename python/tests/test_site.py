"""The site of the documentation: every page and every public name has a place in it, and its links lead somewhere.

`make docs` builds the site, with warnings as errors. These tests find what is missing without building it.
"""

import ast
import importlib
import importlib.util
import inspect
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gridstone as gs

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
NAV = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
NAMED = re.findall(r"(\S+\.md)$", NAV, re.MULTILINE)
MEMBERS = re.findall(r"^::: gridstone\.(\S+)$", "".join(p.read_text() for p in REFERENCE.glob("*.md")), re.MULTILINE)


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """The program that gathers the pages."""
    made = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "tools" / "pages.py")
    assert made is not None and made.loader is not None
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


def test_every_page_is_in_the_navigation_once() -> None:
    inside = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    notebooks = [path.relative_to(ROOT).with_suffix(".md") for path in (ROOT / "docs").rglob("*.ipynb")]
    there = {path.as_posix() for path in (*inside, *notebooks)}
    assert len(there) > 80 and len(NAMED) == len(set(NAMED))
    assert there - set(NAMED) == set(), "name these pages in the nav of mkdocs.yml"
    gone = {page for page in set(NAMED) - there if not (ROOT / page).is_file()}
    assert gone == set(), "the nav of mkdocs.yml names pages that are not there"


def test_every_page_of_the_guide_is_in_its_list() -> None:
    listed = re.findall(r"\]\((\w[\w-]*\.(?:md|ipynb))\)", (ROOT / "docs" / "guide" / "README.md").read_text())
    there = {p.name for p in (ROOT / "docs" / "guide").iterdir() if p.suffix in (".md", ".ipynb")} - {"README.md"}
    assert set(listed) == there


def test_every_public_name_is_in_the_reference_once() -> None:
    doubled = {name for name in MEMBERS if MEMBERS.count(name) > 1}
    assert doubled == set()
    modules = {name for name in gs.__all__ if inspect.ismodule(getattr(gs, name))}
    assert {"io", "plot", "errors", "partials"} <= modules
    public = set(gs.__all__) - modules - {"__version__"}
    for module in modules:
        held = getattr(gs, module)
        for name in getattr(held, "__all__", [module]):
            if getattr(gs, name, None) is not getattr(held, name):
                public.add(f"{module}.{name}")
    assert public - set(MEMBERS) == set(), "give these names a line in a page of docs/reference/"
    assert "`gridstone.__version__`" in (REFERENCE / "README.md").read_text()


def test_every_member_of_an_array_has_a_section() -> None:
    there = {f"Array.{name}" for name in dir(gs.Array) if not name.startswith("_")}
    listed = {name for name in MEMBERS if name.startswith("Array.")}
    assert there - listed == set(), "give these members a line in docs/reference/arrays.md"
    assert listed - there == set(), "docs/reference/arrays.md names members that an array has not"


@pytest.mark.parametrize("name", MEMBERS)
def test_what_the_reference_names_is_there_and_says_what_it_is(name: str) -> None:
    found: Any = gs
    parts = name.split(".")
    for place, part in enumerate(parts):
        if inspect.ismodule(found) and not hasattr(found, part):
            importlib.import_module("gridstone." + ".".join(parts[: place + 1]))
        found = inspect.getattr_static(found, part) if inspect.isclass(found) else getattr(found, part)
    assert found.__doc__, f"{name} has no docstring"


def test_pages_keep_their_places_and_their_links(pages: ModuleType, tmp_path: Path) -> None:
    gathered = pages.gather(tmp_path / "pages", notebooks=False)
    assert {"README.md", "ARCHITECTURE.md", "docs/guide/start.md", "vectors/README.md"} <= set(gathered)
    assert set(NAMED) <= set(gathered)
    for place in gathered:
        path = tmp_path / "pages" / place
        if not path.exists():
            assert place == "docs/guide/notebook.md"  # It is made of the notebook.
            continue
        for target in pages.links(path.read_text(encoding="utf-8")):
            led = path.parent / target
            assert led.is_file() or led.name == "notebook.md", f"{place} leads to {target}"


def test_a_dead_link_is_an_error(pages: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "docs" / "tools").mkdir(parents=True)
    (tmp_path / "docs" / "a.md").write_text("[gone](b.md#x) and [out](../../etc/passwd) but `[code](c.md)`\n")
    (tmp_path / "README.md").write_text("[a](docs/a.md), [web](https://example.org/x)\n\n```\n[no](d.md)\n```\n")
    with pytest.raises(SystemExit, match=r"docs/a\.md: \.\./\.\./etc/passwd\ndocs/a\.md: b\.md$"):
        pages.gather(tmp_path / "out", notebooks=False)


def test_pages_are_as_the_site_takes_them(pages: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "more").mkdir()
    given = (
        "# A\n\n<!-- taken\n```python\nx = 1\n```\n-->\n1. One\n   - two\n\n   more\n\n"
        "[folder](more/), [again](more#part), [book](n.ipynb#x), `[code](more)`, [web](https://example.org)\n\n"
        "```text\n   - kept\n[kept](more)\n<!-- kept? -->\n```\n"
    )
    made = pages.page(given, "x.md")
    assert "taken" not in made and "x = 1" not in made
    assert "1. One\n    - two\n\n    more\n" in made
    assert "[folder](more/README.md), [again](more/README.md#part), [book](n.md#x), `[code](more)`" in made
    assert "```text\n   - kept\n[kept](more)\n" in made and "[web](https://example.org)" in made


NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_hold_no_results(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell gives what a notebook would show: HTML, a picture or a text."""
    monkeypatch.chdir(tmp_path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    module = ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", module)
    pictures = 0
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        assert cell["outputs"] == [] and cell["execution_count"] is None, "clear the results of the notebook"
        *steps, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module([*steps], []), str(path), "exec"), module.__dict__)
        if not isinstance(last, ast.Expr):
            exec(compile(ast.Module([last], []), str(path), "exec"), module.__dict__)
            continue
        shown = eval(compile(ast.Expression(last.value), str(path), "eval"), module.__dict__)
        html = (shown._repr_html_() if hasattr(shown, "_repr_html_") else None) or ""
        pictures += "<img" in html or hasattr(shown, "_repr_png_")
        assert html or repr(shown)
    assert len(NOTEBOOKS) >= 1 and pictures >= 5
