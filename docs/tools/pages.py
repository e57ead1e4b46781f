"""Gathers the pages of the site: the folder `docs/` and what its pages lead to, each at its place in the repository.

Links between pages are therefore the same on a code host and on the site, and no text is kept twice. A page that a link
names is gathered too, a folder by its README.md, and any other file as it is. Notebooks are run and become pages.

    python docs/tools/pages.py .pages
"""

import argparse
import os
import posixpath
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
START = "README.md"
_CODE = re.compile(r"(^[ ]*(?P<fence>```+|~~~+).*?^[ ]*(?P=fence)[ ]*$|`+[^`\n]+`+)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"^<!--.*?-->\n?", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?P<open>\]\()(?P<target>[^)\s]+)(?P<rest>[^)]*\))")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|/")
_RANKS = {"docs/guide/": 8, "docs/design/": 0.3, "changes/": 0.1, "CHANGELOG.md": 0.3}
"""How much more or less than others pages count in a search."""
_MARKER = re.compile(r"(?:[-*+]|\d+\.)\s")


def links(text: str) -> list[str]:
    """The relative links of a page, without their anchors; what looks like one in code is none."""
    found = [each["target"].partition("#")[0] for each in _LINK.finditer(_CODE.sub("", text))]
    return [target for target in found if target and not re.match(_ELSEWHERE, target)]


def nested(text: str) -> str:
    """The text with nested lists indented by four, which Python-Markdown asks for and code hosts accept."""
    lines, fenced, blank = text.split("\n"), "", False
    for number, line in enumerate(lines):
        bare = line.lstrip(" ")
        depth = len(line) - len(bare)
        if fenced:
            fenced = "" if bare.startswith(fenced) and not bare.strip("`~") else fenced
        elif bare.startswith(("```", "~~~")):
            fenced = bare[: len(bare) - len(bare.lstrip(bare[0]))]
        elif 0 < depth < 4 and bare and (blank or _MARKER.match(bare)):
            lines[number] = "    " + bare
        blank = not bare
    return "\n".join(lines)


def page(text: str, place: str) -> str:
    """A page as the site takes it: without comments, which hold what examples take for granted, and with links to the
    pages of folders and notebooks."""

    def to_page(link: re.Match[str]) -> str:
        target, mark, anchor = link["target"].partition("#")
        if not target or re.match(_ELSEWHERE, target):
            return link[0]
        if (ROOT / _joined(place, target)).is_dir():
            target = posixpath.join(target, START)
        target = re.sub(r"\.ipynb$", ".md", target)
        return f"{link['open']}{target}{mark}{anchor}{link['rest']}"

    text = _COMMENT.sub("", text)
    pieces, end = [], 0
    for code in _CODE.finditer(text):
        pieces += [_LINK.sub(to_page, text[end : code.start()]), code[0]]
        end = code.end()
    rank = next(
        (f"---\nsearch:\n  boost: {rank}\n---\n" for start, rank in _RANKS.items() if place.startswith(start)), ""
    )
    return rank + nested("".join([*pieces, _LINK.sub(to_page, text[end:])]))


def reached(starts: list[str]) -> tuple[dict[str, str], set[str]]:
    """The pages that can be reached from these, by their places, and the places of the other files.

    Raises:
        SystemExit: a link leads nowhere, or out of the repository.
    """
    pages: dict[str, str] = {}
    files: set[str] = set()
    dead: list[str] = []
    ahead = list(starts)
    while ahead:
        place = ahead.pop()
        if place in pages or place in files:
            continue
        if not place.endswith(".md"):
            files.add(place)
            continue
        text = pages[place] = (ROOT / place).read_text(encoding="utf-8")
        for target in links(text):
            found = _joined(place, target)
            if (ROOT / found).is_dir():
                found = posixpath.join(found, START)
            if found.startswith("..") or not (ROOT / found).is_file():
                dead.append(f"{place}: {target}")
            elif not found.endswith(".ipynb"):
                ahead.append(found)
    if dead:
        raise SystemExit("links that lead nowhere:\n" + "\n".join(sorted(dead)))
    return pages, files


def _joined(place: str, target: str) -> str:
    """Where a relative link of the page at a place leads."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(place), target))


def from_notebook(source: Path, folder: Path) -> None:
    """Runs a notebook in an empty folder and leaves a page and its pictures.

    Raises:
        CellExecutionError: a cell of it fails.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import MarkdownExporter

    notebook = nbformat.read(source, as_version=4)
    with tempfile.TemporaryDirectory() as empty:
        place = {"metadata": {"path": empty}}
        quiet = ["--log-level=ERROR"]
        NotebookClient(notebook, timeout=120, kernel_name="python3", extra_arguments=quiet, resources=place).execute()
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        _tidy(output.get("data", {}), empty)
    text, resources = MarkdownExporter().from_notebook_node(notebook, {"unique_key": source.stem})
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, folder / source.name)
    (folder / f"{source.stem}.md").write_text(text, encoding="utf-8")
    for name, content in resources["outputs"].items():
        (folder / name).write_bytes(content)


def _tidy(data: Any, folder: str) -> None:
    """Changes the results of a cell in place: HTML has no empty line, at which Markdown would end it, and places have
    no name of a folder that is new each time."""
    for kind, content in data.items():
        if kind.startswith("text/"):
            text = content.replace(folder + os.sep, "")
            kept = [line for line in text.splitlines() if line.strip()]
            data[kind] = "\n".join(kept) if kind == "text/html" else text


def gather(target: Path, *, notebooks: bool = True) -> list[str]:
    """Fills the folder with all pages and files, as they are now, and returns the places of the pages."""
    shutil.rmtree(target, ignore_errors=True)
    inside = (path for path in sorted((ROOT / "docs").rglob("*.md")))
    pages, files = reached([START, *(path.relative_to(ROOT).as_posix() for path in inside)])
    files |= {path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs" / "tools").glob("*.css"))}
    for place, text in pages.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        (target / place).write_text(page(text, place), encoding="utf-8")
    for place in files:
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / place, target / place)
    found = sorted((ROOT / "docs").rglob("*.ipynb"))
    for source in found if notebooks else ():
        from_notebook(source, target / source.parent.relative_to(ROOT))
    return sorted([*pages, *(source.relative_to(ROOT).with_suffix(".md").as_posix() for source in found)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pages go; what lies there is removed")
    print(f"{len(gather(parser.parse_args().folder))} pages")
