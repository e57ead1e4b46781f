"""The front page stays short, and its figures are those that are recorded."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "benches" / "compare"


@pytest.fixture
def front(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module of the benchmark, whose siblings leave `sys.modules` afterwards."""
    monkeypatch.syspath_prepend(str(PROGRAM))
    already = set(sys.modules)
    yield importlib.import_module("front")
    for name in set(sys.modules) - already:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(PROGRAM)):
            del sys.modules[name]


def test_the_front_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900


def test_its_table_and_the_list_of_rows_are_the_recorded_ones(front: ModuleType) -> None:
    publish, plan = importlib.import_module("publish"), importlib.import_module("plan")
    rows = front.rows()
    assert {row["case"] for row in rows} <= {case.key for case in plan.PLAN}
    for name, text, marker in (
        ("README.md", front.table(rows), "figures"),
        ("docs/performance.md", front.cases(rows), "front"),
    ):
        page = (ROOT / name).read_text(encoding="utf-8")
        assert publish.replace(page, text, name, marker) == page, "run `python benches/compare/front.py`"


def test_a_run_renews_the_figures(front: ModuleType) -> None:
    systems = [
        {"role": "gridstone", "family": "gridstone", "seconds": {"median": 2.0}, "times_best_peer": 0.5},
        {"role": "peer", "family": "duckdb", "seconds": {"median": 1.0}, "times_best_peer": 2.0},
        {"role": "peer", "family": "tiledb", "seconds": {"median": 3.0}, "times_best_peer": 0.3},
    ]
    before = front.rows()
    after = front.renew({"cases": [{"key": before[0]["case"], "systems": systems}]})
    assert after[0] == {**before[0], "seconds": 2.0, "ratio": 0.5, "peer": "duckdb", "alone": False}
    assert after[1:] == before[1:]
