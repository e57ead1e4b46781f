"""The programs of `examples/python` run in an empty folder, print what they are to, and leave only their own files."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

# A line that each prints, and what it leaves in the folder.
PRINTED = {
    "dense_image": ("1000 x 1500 pixels, 3 fragments", {"image.gs"}),
    "sparse_points": ("magnitude", {"quakes.gs"}),
    "time_travel": ("3,998 cells are the same, 2 differ", {"levels.gs"}),
    "question": ("p90", {"ships.gs"}),
    "xarray_dataset": ("version 4: three days corrected", {"sea.gs"}),
    "dask_blocks": ("m at most", {"waves.gs", "ships.gs"}),
    "attached_hdf5": ("59999.0 keV at most", {"run.gs"}),
}


def programs() -> list[str]:
    return sorted(program.stem for program in (EXAMPLES / "python").glob("*.py"))


def test_each_program_is_known_here_and_in_the_readme() -> None:
    assert programs() == sorted(PRINTED)
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    rust = sorted(program.name for program in (EXAMPLES / "rust").glob("*.rs"))
    assert len(rust) >= 4
    for program in [f"python/{name}.py" for name in programs()] + [f"rust/{name}" for name in rust]:
        assert f"]({program})" in page, program


@pytest.mark.parametrize("name", programs())
def test_the_program_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "python" / f"{name}.py"), run_name="__main__")
    line, left = PRINTED[name]
    assert line in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == left
