"""Cases in expressions are those of NumPy, pandas and DuckDB, in aggregates, keys and conditions."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gridstone as gs
from gridstone.errors import InputError

_N = 400
_NAMES = ["Ärger", "a", "", "tug", "cargo"]
_ENDS = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1]


def _cells() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    known = rng.random(_N) < 0.7
    named = rng.random(_N) < 0.8
    return {
        "i": rng.integers(-50, 50, _N).astype("int16"),
        "v": np.ma.MaskedArray(rng.integers(-9, 9, _N), ~known),
        "e": np.array([_ENDS[k] for k in rng.integers(0, len(_ENDS), _N)]),
        "f": np.round(rng.normal(size=_N) * 10, 3),
        "s": np.ma.MaskedArray(np.array([_NAMES[k] for k in rng.integers(0, 5, _N)], object), ~named),
        "k": np.array([_NAMES[k] for k in rng.integers(3, 5, _N)], object),
    }


def _array(folder: Path, *, sparse: bool) -> tuple[gs.Array, dict[str, Any]]:
    """An array of several fragments, and its cells."""
    cells = _cells()
    attrs = [
        *(gs.Attr(name, str(cells[name].dtype), nullable=name == "v") for name in "ivef"),
        gs.Attr("s", "string", nullable=True),
        gs.Attr("k", "string", categories=["tug", "cargo"]),
    ]
    array = gs.create(folder / "a.gs", gs.Schema([gs.Dim("x", (0, _N - 1), tile=40)], attrs, sparse=sparse))
    for start in range(0, _N, 130):
        part = {name: values[start : start + 130] for name, values in cells.items()}
        count = len(part["i"])
        if sparse:
            array.write_cells({"x": np.arange(start, start + count)}, part)
        else:
            array.write(part, {"x": (start, start + count - 1)})
    return array, cells


def _frame(cells: dict[str, Any]) -> pd.DataFrame:
    texts = {"s": pd.array([None if s is np.ma.masked else s for s in cells["s"]], "string"), "k": cells["k"]}
    mask = np.ma.getmaskarray(cells["v"])
    numbers = {"v": pd.array(np.ma.getdata(cells["v"]), "Int64").copy(), **{n: cells[n] for n in "ief"}}
    numbers["v"][mask] = pd.NA
    return pd.DataFrame({"x": np.arange(_N), **numbers, **texts})


def _computed(array: gs.Array, text: str) -> list[Any]:
    """The values of an expression in the order of x, None for null."""
    return [None if v is np.ma.masked else v for v in array.aggregate({"r": f"max({text})"}, by="x")["r"]]


@pytest.mark.parametrize("sparse", [False, True])
def test_aggregates_of_cases_are_those_of_pandas(tmp_path: Path, sparse: bool) -> None:
    array, cells = _array(tmp_path, sparse=sparse)
    frame = _frame(cells)
    asked = {
        "fast": "sum(case when f > 5 then 1 else 0 end)",
        "few": "count(case when v > 3 then v end)",
        "mean": "mean(case when i < 0 then -f when i > 10 then f * 2 end)",
        "names": "count(distinct case s when 'a' then 'tug' when '' then null else s end)",
    }
    kind = "case when v is null then 'unknown' when v < 0 then 'low' else 'high' end"
    found = array.aggregate(asked, by=[kind])
    frame["kind"] = np.where(frame["v"].isna(), "unknown", np.where(frame["v"].fillna(0) < 0, "low", "high"))
    frame["few"] = frame["v"].where(frame["v"].fillna(0) > 3)
    frame["mean"] = np.where(frame["i"] < 0, -frame["f"], np.where(frame["i"] > 10, frame["f"] * 2, np.nan))
    frame["names"] = frame["s"].replace({"a": "tug"}).where(frame["s"] != "")
    groups = frame.groupby("kind")
    assert found[kind].tolist() == list(groups.groups)
    assert found["fast"].tolist() == groups["f"].agg(lambda f: int((f > 5).sum())).tolist()
    assert found["few"].tolist() == groups["few"].count().tolist()
    assert np.allclose(found["mean"], groups["mean"].mean())
    assert found["names"].tolist() == groups["names"].nunique().tolist()


@pytest.mark.parametrize("sparse", [False, True])
def test_conditions_with_cases_are_numpys_masks(tmp_path: Path, sparse: bool) -> None:
    array, cells = _array(tmp_path, sparse=sparse)
    i, f, e, x = cells["i"].astype("int64"), cells["f"], cells["e"], np.arange(_N)
    v, is_null = np.ma.filled(cells["v"], 0), np.ma.getmaskarray(cells["v"])
    tug = cells["k"] == "tug"
    masks = {
        "case when i < 0 then f else -f end > 3": np.where(i < 0, f, -f) > 3,
        "case when v > 0 then i else 0 end == 0": np.where(~is_null & (v > 0), i, 0) == 0,
        "case when v > 0 then 1 end is null": is_null | (v <= 0),
        "not (case when v > 0 then f end > 1)": ~is_null & (v > 0) & (f <= 1),
        "case k when 'tug' then 'T' else s end in ('T', 'a')": tug
        | (~np.ma.getmaskarray(cells["s"]) & (np.ma.filled(cells["s"], "") == "a")),
        "case when e > 0 then e - 1 when e < 0 then e + 1 else 0 end between -1 and 1": (e >= -1) & (e <= 1),
        "x > 100 and case when i > 0 then true else false end": (x > 100) & (i > 0),
        "if(i > 0, f, null) < 2 or nullif(v, 3) == 5": ((i > 0) & (f < 2)) | (~is_null & (v == 5)),
    }
    for where, mask in masks.items():
        assert 0 < mask.sum() < _N, where
        assert array.read(where=where, order="row")["x"].tolist() == x[mask].tolist(), where
        parsed = gs.Expression.parse(where)
        assert gs.Expression.parse(repr(parsed)) == parsed and pickle.loads(pickle.dumps(parsed)) == parsed
    kept = array.filter("case when v > 0 then i else 0 end != 0", to=tmp_path / "kept.gs")
    assert kept.read(order="row")["x"].tolist() == x[~masks["case when v > 0 then i else 0 end == 0"]].tolist()
    if sparse:
        array.delete(where="case when i < 0 then f else -f end > 3")
        left = ~masks["case when i < 0 then f else -f end > 3"]
        assert array.read(order="row")["x"].tolist() == x[left].tolist()


_AS_DUCKDB = [
    "case when v > 0 then 'many' when v = 0 then 'none' end",
    "case v when 1 then 10 when 2 then 20 else -1 end",
    "case when s is null then 'nothing' when s = '' then null else upper(s) end",
    "case s when 'a' then 'A' when 'tug' then 'T' else s end",
    "case when e > 0 then e - 1 when e < 0 then e + 1 else e end",
    "case when e = 9223372036854775807 then null else e + 1 end",
    "case when i > 0 then case when v > 0 then f else -f end else 0.5 end",
    "case when not v > 0 or i in (1, 2, 3) then i else x end + 1",
    "case when v between 1 and 4 and f < 0 then f * 2 end",
    "coalesce(nullif(v, 3), -100)",
    "nullif(s, 'a')",
    "if(f > 0, 1, 0)",
    "ifnull(v, 7)",
]


def test_cases_are_those_of_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    array, cells = _array(tmp_path, sparse=True)
    with duckdb.connect() as connection:
        connection.register("frame", _frame(cells))
        connection.execute("create table cells as select * from frame")
        for text in _AS_DUCKDB:
            ours = text if "else x end" not in text else text.replace("then i", "then i::int64")
            expected = [row[0] for row in connection.execute(f"select {text} from cells order by x").fetchall()]
            assert len(set(expected)) > 1, text
            assert _computed(array, ours) == expected, text


def test_what_no_cell_takes_cannot_fail(tmp_path: Path) -> None:
    array, cells = _array(tmp_path, sparse=True)
    e = cells["e"]
    with pytest.raises(InputError, match="64 bits"):
        _computed(array, "e * 2")
    small = np.abs(e // 2) < 2**40
    found = _computed(array, "case when e > -5 and e < 5 then e * 2 end")
    assert found == [int(v) * 2 if ok else None for v, ok in zip(e, small, strict=True)]
    assert array.read(where="case when e > 5 then 0 when e < -5 then 0 else e * 2 end == 2")["e"].tolist() == [1] * int(
        (e == 1).sum()
    )
    assert _computed(array, "case when e > 100 or e < -100 then 0 else e::int8 + 0 end") == [
        int(v) if ok else 0 for v, ok in zip(e, small, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case when i > 1 then 2", '"end"'),
        ("case when i > 1 2 end", '"then"'),
        ("case i then 2 end", '"when"'),
        ("case when i > 1 then null end", "not null"),
        ("case when i > 1 then i else v end", "cannot be computed: i is int16, v is int64"),
        ("case when i > 1 then 's' else 1 end", "cannot be computed"),
        ("case when i then 1 end", "no condition by itself"),
        ("case when s > 1 then 1 end", "single quotes"),
        ("case " + "when i > 1 then case " * 60 + "i", "levels"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    array, _ = _array(tmp_path, sparse=True)
    with pytest.raises(InputError, match=message):
        array.aggregate({"r": f"max({text})"})


def test_words_of_cases_are_names_elsewhere(tmp_path: Path) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("end", "int64"), gs.Attr("case", "int64")], sparse=True)
    array = gs.create(tmp_path / "a.gs", schema)
    array.write_cells({"x": np.arange(10)}, {"end": np.arange(10), "case": np.arange(10) % 3})
    assert array.read(where="end > 5 and case = 0")["x"].tolist() == [6, 9]
    assert array.aggregate({"n": "sum(end)"}, by="case")["n"].tolist() == [18, 12, 15]
    assert array.read(where='case when "end" > 5 then "case" else -1 end = 0')["x"].tolist() == [6, 9]
    with pytest.raises(InputError, match="double quotes"):
        array.read(where="case when end > 5 then 1 end = 1")
