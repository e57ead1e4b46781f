"""`Array.explain`: what is planned before a cell is read, and what an answer has read."""

import numpy as np
import pytest

import gridstone as gs


@pytest.fixture
def ships() -> gs.Array:
    """Two fragments of 40,000 cells each, apart along x, in tiles of 2,000."""
    dims = [gs.Dim("x", (0, 199_999)), gs.Dim("y", (0, 199_999))]
    attrs = [gs.Attr("v", "float64"), gs.Attr("kind", "string", categories=["a", "b"])]
    a = gs.create(
        f"mem://plans-{np.random.default_rng().integers(2**60)}", gs.Schema(dims, attrs, sparse=True, capacity=2_000)
    )
    noise = np.random.default_rng(3)
    for low in (0, 100_000):
        x = np.arange(low, low + 80_000, 2)
        kinds = np.where(x % 4 == 0, "a", "b").astype(object)
        a.write_cells({"x": x, "y": x}, {"v": x / 10 + noise.random(len(x)), "kind": kinds})
    return a


def _planned(plan: gs.Plan) -> dict[str, int]:
    (scan,) = plan.scans
    return dict(scan.planned)


def test_a_box_and_bounds_of_a_condition_leave_tiles_out(ships: gs.Array) -> None:
    whole = _planned(ships.explain("read"))
    assert whole == {
        "fragments": 2, "fragments_planned": 2, "tiles_planned": 40, "cells": 80_000, "cells_planned": 80_000,
    }  # fmt: skip
    for plan in (ships.explain("read", {"x": (0, 7_999)}), ships.explain("scan", where="x < 8000 and v > 3")):
        part = _planned(plan)
        assert part["fragments_planned"] == 1 and part["tiles_planned"] == 2 and part["cells_planned"] == 4_000
    assert _planned(ships.explain("read", where="x < 0"))["tiles_planned"] == 0
    boxes = _planned(ships.explain("read", [{"x": (0, 0)}, {"x": (179_998, 179_998)}]))
    assert boxes["tiles_planned"] == 2 and boxes["fragments_planned"] == 2


def test_nothing_is_read_without_analyze(ships: gs.Array) -> None:
    plan = ships.explain("aggregate", {"top": "max(v)"}, by="kind")
    assert not plan.scans[0].stats and plan.scans[0].columns == ("v", "kind")
    done = ships.explain("aggregate", {"top": "max(v)"}, by="kind", analyze=True)
    assert done.scans[0].stats["tiles_read"] == 40 and done.scans[0].planned == plan.scans[0].planned
    assert "cells_returned" in str(done)


def test_tiles_from_the_index(ships: gs.Array) -> None:
    asked = {"n": "count(*)", "top": "max(v)"}
    for by, box, most in (
        (None, None, 40),
        (None, {"x": (0, 6_000)}, 1),
        ({"x": 4_000}, None, 40),
        ({"x": 6_000}, None, 27),
    ):
        done = ships.explain("aggregate", asked, by, box, analyze=True)
        held, scan = done.scans[0].planned["tiles_from_index_max"], done.scans[0]
        assert scan.stats["tiles_from_index"] <= held, (by, box)
        assert held <= most and (by is not None or held == most), (by, box, held)
    assert "tiles_from_index_max" not in _planned(ships.explain("aggregate", {"m": "median(v)"}))
    assert "tiles_from_index_max" not in _planned(ships.explain("aggregate", {"m": "max(v * 2)"}))


def test_plans_print(ships: gs.Array) -> None:
    by = ["kind", {"x": 1_000}]
    shown = str(ships.explain("aggregate", {"n": "count(*)"}, by, {"x": (0, 99)}, "v > 3", "n > 1", "n desc", 5))
    for part in (
        "AGGREGATE", "groups: kind, x in bins of 1000", "count(*) as n", "having: n > 1", "order by: n desc",
        "limit: 5", "READ", "box: x=(0, 99)", "condition: v > 3", "1 of 2 fragments", "at most 2,000 of 80,000 cells",
    ):  # fmt: skip
        assert part in shown, shown
    assert '"planned"' in ships.explain("read").to_json()


def test_every_question_of_a_dense_array() -> None:
    values = np.arange(10_000.0).reshape(100, 100)
    a = gs.array(f"mem://plans-{np.random.default_rng().integers(2**60)}", values, tile=(10, 10), dims=["y", "x"])
    for name in ("sum", "mean", "min", "max", "any", "all", "var", "std"):
        plan = a.explain(name, "x", analyze=True)
        assert plan.tree[0]["name"] == "REDUCE" and plan.scans[0].stats["tiles_read"] == 100
        assert _planned(plan)["tiles_planned"] == 100
    assert _planned(a.explain("reduce", {"m": "max(value)"}, axis=0, box={"x": (0, 9)}))["tiles_planned"] == 10
    assert _planned(a.explain("sum", where=values > 3))["cells_planned"] == 10_000
    assert _planned(a.explain("read", {"y": (0, 9), "x": (0, 9)}, analyze=True))["cells_planned"] == 100
    plan = a.explain("filter", "value > 5", box={"x": (0, 9)}, analyze=True)
    assert plan.scans[0].columns == ("y", "x", "value") and plan.scans[0].stats["cells_returned"] == 994
    assert a.explain("filter", to="f.gs").tree[0]["name"] == "WRITE" and not gs.exists("f.gs")
    assert a.explain("partial", {"n": "count(*)"}, analyze=True).scans[0].stats


def test_floats_times_and_texts_along_dimensions() -> None:
    dims = [
        gs.Dim("f", (0.0, 1.0), dtype="float64"),
        gs.Dim("t", ("2024-01-01", "2024-12-31"), dtype="datetime64[m]"),
        gs.Dim("s", dtype="string"),
    ]
    schema = gs.Schema(dims, [gs.Attr("v", "float64")], sparse=True, capacity=4_000)
    a = gs.create(f"mem://plans-{np.random.default_rng().integers(2**60)}", schema)
    n = np.arange(40_000)
    times = np.datetime64("2024-01-01T00:00") + n.astype("timedelta64[m]")
    a.write_cells(
        {"f": n / 40_000, "t": times, "s": [f"k{i:05}" for i in n]}, {"v": np.random.default_rng(5).random(40_000)}
    )
    assert _planned(a.explain("read", {"f": (0.0, 0.095)}))["tiles_planned"] == 1
    assert _planned(a.explain("read", where="t >= '2024-01-28'"))["tiles_planned"] == 1
    # Texts have no bounds in the index.
    assert _planned(a.explain("read", where="s = 'k00005'"))["tiles_planned"] == 10
    for by, most in (({"f": 0.5}, 10), ({"f": 0.25}, 8), ({"f": 0.25, "t": "1D"}, 8)):
        done = a.explain("aggregate", {"n": "count(*)"}, by, analyze=True).scans[0]
        assert done.planned["tiles_from_index_max"] == most, by
        assert done.stats["tiles_from_index"] == (most if "t" not in by else 0), by


@pytest.mark.parametrize(
    ("question", "arguments", "message"),
    [
        ("aggregate", {"limit": -1}, "limit="),
        ("aggregate", {"limit": True}, "limit="),
        ("aggregate", {"limit": 1.0}, "limit="),
        ("aggregate", {"by": "v", "stream": True, "to": "o.gs"}, "one of them"),
        ("aggregate", {"by": "b", "to": "o.gs"}, "'b' of by= is bool"),
        ("aggregate", {"to": "o.gs"}, "give by="),
        ("partial", {"aggregates": {"n": "max(w)"}}, "w"),
        ("reduce", {"aggregates": {"m": "median(v)"}}, "median"),
        ("reduce", {"box": {"x": slice(5, 5)}, "to": "o.gs"}, "no cell"),
        ("reduce", {"axis": "z"}, "axis"),
        ("reduce", {"where": np.zeros(3, bool)}, "shape"),
        ("reduce", {"box": [{"x": (0, 1)}]}, "box"),
    ],
)
def test_what_an_answer_refuses_is_not_planned(question: str, arguments: dict[str, object], message: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "float64"), gs.Attr("b", "bool")])
    a = gs.create(f"mem://plans-{np.random.default_rng().integers(2**60)}", schema)
    arguments = {"aggregates": {"n": "count(*)"}, **arguments}
    for ask in (getattr(a, question), lambda **named: a.explain(question, **named)):
        with pytest.raises(gs.InputError, match=message):
            ask(**arguments)


def test_what_an_answer_refuses_is_not_planned_of_one_or_of_sparse_cells(ships: gs.Array) -> None:
    dense = gs.array(f"mem://plans-{np.random.default_rng().integers(2**60)}", np.zeros(9), dims=["x"])
    for name in ("sum", "max", "std"):
        with pytest.raises(gs.InputError, match="box"):
            dense.explain(name, box=[{"x": (0, 1)}])
        with pytest.raises(np.exceptions.AxisError):
            dense.explain(name, 3)
    with pytest.raises(gs.UnsupportedError, match="aggregate"):
        ships.explain("reduce", {"top": "max(v)"})
    with pytest.raises(gs.InputError, match="needs an attribute"):
        ships.explain("filter", attrs=[])


def test_a_limit_of_numpy_prints_as_json(ships: gs.Array) -> None:
    plan = ships.explain("aggregate", {"n": "count(*)"}, "kind", limit=np.int64(3))
    assert '"Limit": 3' in plan.to_json() and "limit: 3" in str(plan)


def test_mistakes(ships: gs.Array) -> None:
    for question, arguments, message in (
        ("write", (), "question"),
        ("aggregate", ({"n": "max(w)"},), "w"),
        ("aggregate", ({"n": "count(*)"}, "w"), "w"),
        ("aggregate", ({"n": "count(*)"}, None, None, "w > 1"), "w"),
        ("aggregate", ({"n": "count(*)"}, None, None, None, "w > 1"), "w"),
        ("aggregate", ({"n": "count(*)"}, None, None, None, None, "w"), "w"),
        ("read", (None, "w"), "w"),
    ):
        with pytest.raises(gs.InputError, match=message):
            ships.explain(question, *arguments)
    with pytest.raises(TypeError, match="aggregates"):
        ships.explain("aggregate")
    with pytest.raises(TypeError, match="bogus"):
        ships.explain("read", bogus=1)
    with pytest.raises(gs.InputError, match="coordinate"):
        ships.explain("read", {"x": (0.0, "a")})
