"""The examples of the guide run as printed, page by page. What a page takes for granted stands in a comment of it, in a
block of its own, which runs but is not shown.
"""

import re
import sys
import types
from pathlib import Path

import pytest

import gridstone as gs

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks_of(page: Path) -> list[tuple[int, str]]:
    """The examples of a page, and the line that each begins at."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start(1)) + 1, found[1]) for found in _BLOCK.finditer(text)]


PAGES = [page for page in sorted(GUIDE.glob("*.md")) if blocks_of(page)]


def test_there_is_a_guide() -> None:
    assert len(PAGES) >= 7, "the guide has lost its pages, or they their examples"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Processes that a page starts find the package that is tested.
    monkeypatch.setenv("PYTHONPATH", str(Path(gs.__file__).parents[1]))
    # A module that can be found by name, so that functions of the page can go to other processes.
    module = types.ModuleType(f"guide_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for line, block in blocks_of(page):
        code = compile("\n" * (line - 1) + block, str(page), "exec")
        exec(code, module.__dict__)
