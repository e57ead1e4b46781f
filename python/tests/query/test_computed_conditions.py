"""Conditions on computed values select what NumPy's masks do, of dense and sparse arrays in several fragments."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs
from gridstone.errors import InputError

_N = 600
_KINDS = ["Cargo", "tanker", "", "Ärger", "a%b"]


def _cells() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    noise = rng.normal(size=_N) * 20
    noise[::17] = np.nan
    return {
        "sog": noise,
        "i": rng.integers(-100, 100, _N).astype("int16"),
        "t": rng.integers(0, 10**9, _N).astype("M8[s]"),
        "name": np.array([_KINDS[k] for k in rng.integers(0, len(_KINDS), _N)], object),
    }


def _masks(cells: dict[str, Any], x: Any) -> dict[str, Any]:
    sog, i, name = cells["sog"], cells["i"].astype("int64"), cells["name"]
    lower = np.array([text.lower() for text in name])
    months = cells["t"].astype("M8[M]").astype(int) % 12 + 1
    with np.errstate(all="ignore"):
        return {
            "sog * 1.852 > 10": sog * 1.852 > 10,
            "sog * 1.852 > 10 and lower(name) like 'a%'": (sog * 1.852 > 10) & np.char.startswith(lower, "a"),
            "not (sog + i > 0)": ~(sog + i > 0),
            "i % 7 in (0, 3) or x // 100 == 2": np.isin(i % 7, [0, 3]) | (x // 100 == 2),
            "i * i between 100 and x * 4": (i * i >= 100) & (i * i <= x * 4),
            "month(t) == 5": months == 5,
            "dayofweek(t) < 2": (cells["t"].astype("M8[D]").astype(int) + 3) % 7 < 2,
            "period(t, '1Y') == '1975-01-01'": cells["t"].astype("M8[Y]") == np.datetime64("1975"),
            "name not like '%\\%%' and length(name) > 0": np.array(["%" not in n and n != "" for n in name]),
            "regexp_matches(name, '^[a-z]')": np.array([n[:1].isascii() and n[:1].islower() for n in name]),
            "sqrt(sog) is nan": np.isnan(np.sqrt(sog)),
            "abs(i) > abs(sog) and i < 0": (np.abs(i) > np.abs(sog)) & (i < 0),
        }


@pytest.mark.parametrize("sparse", [False, True])
def test_reads_are_numpys_masks(tmp_path: Path, sparse: bool) -> None:
    cells = _cells()
    attrs = [gs.Attr(name, "string" if name == "name" else str(values.dtype)) for name, values in cells.items()]
    schema = gs.Schema([gs.Dim("x", (0, _N - 1), dtype="int64", tile=50)], attrs, sparse=sparse)
    array = gs.create(tmp_path / "a.gs", schema)
    for start in range(0, _N, 200):
        part = {name: values[start : start + 200] for name, values in cells.items()}
        if sparse:
            array.write_cells({"x": np.arange(start, start + 200)}, part)
        else:
            array.write(part, {"x": (start, start + 199)})
    x = np.arange(_N)
    for where, mask in _masks(cells, x).items():
        assert 0 < mask.sum() < _N, where
        found = array.read(where=where, order="row")
        assert found["x"].tolist() == x[mask].tolist(), where
        assert gs.Expression.parse(repr(gs.Expression.parse(where))) == gs.Expression.parse(where)


def test_nulls_and_deletes(tmp_path: Path) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 99))], [gs.Attr("v", "int64", nullable=True)], sparse=True)
    array = gs.create(tmp_path / "a.gs", schema)
    x = np.arange(100)
    for half in (x[:50], x[50:]):
        array.write_cells({"x": half}, {"v": np.ma.MaskedArray(half * 3, half % 4 == 0)})
    known = x % 4 != 0
    assert array.read(where="v + 1 > 100")["x"].tolist() == x[known & (x * 3 + 1 > 100)].tolist()
    assert array.read(where="not (v + 1 > 100)")["x"].tolist() == x[known & (x * 3 + 1 <= 100)].tolist()
    assert array.read(where="v * 2 is null")["x"].tolist() == x[~known].tolist()
    assert array.read(where="coalesce(v, 0) == 0")["x"].tolist() == x[~known].tolist()
    array.delete(where="v % 2 == 1 and x * 2 >= 60")
    left = ~(known & (x * 3 % 2 == 1) & (x >= 30))
    assert array.read()["x"].tolist() == x[left].tolist()


def test_what_is_refused(tmp_path: Path) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64"), gs.Attr("s", "string")], sparse=True)
    array = gs.create(tmp_path / "a.gs", schema)
    array.write_cells({"x": [1]}, {"v": [2**62], "s": ["a"]})
    for where, message in [
        ("v * 4 > 0", "cast"),
        ("v + s > 0", "string"),
        ("v + 1", "no condition by itself"),
        ("nothing(v) > 1", "no function"),
        ("s like v", "pattern"),
    ]:
        with pytest.raises(InputError, match=message):
            array.read(where=where)
