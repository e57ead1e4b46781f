"""`Array.filter`: selected cells as a new array."""

import uuid
from pathlib import Path
from random import Random
from typing import Any

import asked
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridstone as gs

pytestmark = pytest.mark.filterwarnings("ignore::gridstone.NatWarning")
CONDITIONS = [None, "x < 20", "f > 0", "i is null", "s >= 'a' and not b", "x < 0", "e = 'lee' or u > 1"]


def _place() -> str:
    return f"mem://{uuid.uuid4()}"


def _same(found: gs.Result, wanted: gs.Result) -> None:
    assert found.keys() == wanted.keys()
    for name in wanted:
        one, other = found[name], wanted[name]
        assert np.array_equal(np.ma.getmaskarray(one), np.ma.getmaskarray(other)), name
        assert list(map(repr, one.tolist())) == list(map(repr, other.tolist())), name


@given(r=st.integers(0, 2**32).map(Random), sparse=st.booleans(), where=st.sampled_from(CONDITIONS))
def test_it_holds_what_a_read_gives(r: Random, sparse: bool, where: str | None) -> None:
    a = asked.array_of(r, sparse)
    names = r.choice([None, ["f"], ["t", "e", "s"]])
    box: Any = r.choice([None, {"x": (3, 25)}, [{"x": (3, 9)}, {"x": (7, 12)}]])
    made = a.filter(where, to=_place(), box=box, attrs=names)
    cells = sparse or where is not None or isinstance(box, list)
    assert made.sparse == cells and made.mode == "r+"
    assert made.dims == a.dims and made.domain == a.domain
    wanted = [attr for attr in a.schema.attrs if names is None or attr.name in names]
    assert {attr.name: attr for attr in made.schema.attrs} == {attr.name: attr for attr in wanted}
    if cells:
        _same(made.read(attrs=names), a.read(box, names, where))
    else:
        _same(made.read(box, names), a.read(box, names))


def test_labels_and_metadata_come_along(tmp_path: Path) -> None:
    a = gs.array(tmp_path / "a.gs", np.arange(20).reshape(4, 5), dims=["y", "x"], coords={"y": list("abcd")}, name="v")
    a.meta["title"] = "t"
    a["v"].meta["unit"] = "kn"
    a.dim("x").meta["axis"] = "X"
    made = a.filter(to=f"{tmp_path}/b.gs:/in/b", box={"y": (1, 2)})
    assert made.path == "/in/b" and dict(made.meta) == {"title": "t"}
    assert made["v"].meta["unit"] == "kn" and made.dim("x").meta["axis"] == "X"
    assert list(made.dim("y").labels) == list("abcd")
    assert made[1:3].tolist() == a[1:3].tolist() and made.version == gs.open(tmp_path / "b.gs").version
    few = a.filter("v > 17", to=tmp_path / "c.gs")
    assert few.sparse and few.read()["v"].tolist() == [18, 19]


def test_it_is_one_commit_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = asked.array_of(Random(3), True, str(tmp_path / "a.gs"))
    to = str(tmp_path / "new.gs")
    for wrong, kind in (
        ({"where": "nope > 1"}, gs.InputError),
        ({"attrs": ["nope"]}, gs.InputError),
        ({"attrs": []}, gs.InputError),
        ({"box": {"x": 1_000}}, gs.BoundsError),
    ):
        with pytest.raises(kind):
            a.filter(to=to, **wrong)
        assert not gs.exists(to)
    made = a.filter("x < 20", to=to)
    assert len(made.history()) == 1
    with pytest.raises(gs.ExistsError):
        a.filter(to=to)
    again = a.filter("x < 10", to=to, overwrite=True)
    assert again.version == made.version + 1 and int(again.read()["x"].max(initial=0)) < 10
    assert len(gs.open(to, version=made.version).read()) == len(made.read()), "the history stays"

    def broken(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gridstone.arrays.filtering._copy_names", broken)
    with pytest.raises(KeyboardInterrupt):
        a.filter(to=tmp_path / "other.gs")
    assert not gs.exists(tmp_path / "other.gs")
    with pytest.raises(KeyboardInterrupt):
        a.filter(to=to, overwrite=True)
    assert gs.open(to).version == again.version


def test_into_the_same_store(tmp_path: Path) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")], sparse=True)
    a = gs.create(tmp_path / "s.gs", schema, path="/a")
    a.write_cells({"x": [1, 2, 3]}, {"v": [1, 2, 3]})
    made = a.filter("v > 1", to=f"{tmp_path}/s.gs:/b")
    assert made.read()["v"].tolist() == [2, 3]
    same = a.filter("v > 2", to=f"{tmp_path}/s.gs:/a", overwrite=True)
    assert same.read()["v"].tolist() == [3]


def test_it_streams_within_the_budget(tmp_path: Path) -> None:
    small = gs.Context("64MiB", durability="close")
    rows = 3_000_000
    schema = gs.Schema([gs.Dim("x", (0, rows - 1), 100_000)], [gs.Attr("v", "float64"), gs.Attr("w", "float64")])
    gs.create(tmp_path / "a.gs", schema).write({"v": np.arange(rows) / 1.0, "w": np.arange(rows) / 3.0})
    a = gs.open(tmp_path / "a.gs", context=small)
    assert isinstance(a, gs.Array)
    made = a.filter("v >= 0", to=tmp_path / "b.gs")
    assert made.fragments["cells"].to_pylist() == [rows]
    dense = a.filter(to=tmp_path / "c.gs", box={"x": (10, rows - 10)})
    assert dense[10:20]["v"].tolist() == list(range(10, 20))
    assert small.peak_bytes <= 64 << 20
