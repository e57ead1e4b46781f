"""Promise: groups beyond memory are answered in bounded memory: at once, as a stream, or into a new array."""

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gridstone as gs

GROUPS = 500_000


@pytest.fixture(scope="module")
def cells() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    k = np.concatenate([rng.permutation(GROUPS), rng.integers(0, GROUPS, 400_000)])
    return {"k": k * 7 - 1_000_000, "v": rng.integers(-1000, 1000, len(k)).astype("int32")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, cells: dict[str, Any]) -> Path:
    made = tmp_path_factory.mktemp("groups")
    schema = gs.Schema(
        [gs.Dim("x", (0, 10_000_000), dtype="int64")],
        [
            gs.Attr("k", "int64"),
            gs.Attr("v", "int32"),
            gs.Attr("s", "string"),
            gs.Attr("c", "string", categories=["c", "a", "b"]),
        ],
        sparse=True,
    )
    names = np.char.add("ship ", (cells["k"] % 70_000).astype(str)).astype(object)
    kinds = np.array(["c", "a", "b"], object)[cells["v"] % 3]
    array = gs.create(made / "a.gs", schema, path="/cells")
    array.write_cells({"x": np.arange(len(cells["k"]))}, {**cells, "s": names, "c": kinds})
    return made


def _opened(folder: Path, budget: str = "8MiB") -> gs.Array:
    return gs.open(folder / "a.gs", path="/cells", context=gs.Context(memory_budget=budget, threads=2))


def _files(folder: Path) -> int:
    return len(list(folder.rglob("*.frag")))


def _sums(cells: dict[str, Any]) -> tuple[Any, Any, Any]:
    keys, of = np.unique(cells["k"], return_inverse=True)
    return keys, np.bincount(of), np.bincount(of, cells["v"]).astype("int64")


ASKED = {"n": "count(*)", "total": "sum(v)"}


def test_a_stream_of_many_groups_equals_numpy_in_little_memory(folder: Path, cells: dict[str, Any]) -> None:
    array, files = _opened(folder), _files(folder)
    keys, counts, sums = _sums(cells)
    stream = array.aggregate(ASKED, by="k", stream=True)
    assert stream.stats["bytes_spilled"] > 0 and _files(folder) > files
    sizes, rows = [], 0
    for batch in stream:
        part = slice(rows, rows + batch.num_rows)
        assert np.array_equal(batch["k"], keys[part]) and np.array_equal(batch["n"], counts[part])
        assert np.array_equal(batch["total"], sums[part])
        sizes.append(batch.num_rows)
        rows += batch.num_rows
    assert rows == GROUPS and max(sizes) <= 65_536
    assert array._context.peak_bytes <= 8 << 20
    assert _files(folder) == files


def test_answers_do_not_depend_on_the_budget(folder: Path) -> None:
    asked = {**ASKED, "mid": "median(v)", "kinds": "count(distinct v)"}
    asked |= {"low": "min(s)", "at": "arg_max(x, v)", "first": "first(s)"}
    for by in ("k", ["c", "s"], None):
        found = [_opened(folder, budget).aggregate(asked, by=by, stream=True) for budget in ("8MiB", "64MiB", "1GiB")]
        spilled = [one.stats["bytes_spilled"] for one in found]
        assert spilled[2] == 0 and (spilled[0] > 0 or by != "k")
        tables = [one.to_arrow() for one in found]
        assert tables[0].equals(tables[1]) and tables[0].equals(tables[2]), by


def test_an_answer_at_once_is_within_the_budget_or_says_what_to_do(folder: Path) -> None:
    array, files = _opened(folder), _files(folder)
    with pytest.raises(gs.BudgetError, match=r"stream=True.*to=.*limit="):
        array.aggregate(ASKED, by="k")
    with pytest.raises(gs.BudgetError, match=r"limit="):
        array.aggregate(ASKED, by="k", order="total desc", stream=True).to_arrow()
    with pytest.raises(gs.BudgetError, match="groups"):
        array.partial(ASKED, by=["k", "x"])
    assert _files(folder) == files
    small = array.aggregate({"n": "count(*)"}, by={"k": 100})
    assert len(small) == 35_000 and small["n"].sum() == 900_000


def test_an_order_takes_no_more_than_the_budget(folder: Path, cells: dict[str, Any]) -> None:
    array = _opened(folder, "32MiB")
    keys, _, sums = _sums(cells)
    found = array.aggregate(ASKED, by="k", order="total desc")
    best = np.lexsort((keys, -sums))
    assert np.array_equal(found["k"], keys[best]) and np.array_equal(found["total"], sums[best])
    # Three columns, ranks and rows.
    assert GROUPS * (3 * 8 + 16) <= array.context.peak_bytes <= 32 << 20
    for budget in ("8MiB", "16MiB"):
        array = _opened(folder, budget)
        with pytest.raises(gs.BudgetError, match=r"to be sorted.*limit="):
            array.aggregate(ASKED, by="k", order="total desc", stream=True).to_arrow()
        assert array.context.peak_bytes <= int(budget[:-3]) << 20


@pytest.mark.parametrize("sparse", [False, True])
def test_groups_of_the_index_alone_are_in_the_budget(tmp_path: Path, sparse: bool) -> None:
    tiles = 60_000
    dims = [gs.Dim("x", (0, 4 * tiles - 1), 4)]
    schema = gs.Schema(dims, [gs.Attr("v", "int64")], sparse=sparse, **({"capacity": 4} if sparse else {}))
    array = gs.create(tmp_path / "a.gs", schema)
    values = np.arange(4 * tiles)
    if sparse:
        array.write_cells({"x": values}, {"v": values})
    else:
        array.write(values)
    expected = values.reshape(-1, 4).sum(axis=1)
    for budget, spills in (("8MiB", True), ("1GiB", False)):
        opened = gs.open(tmp_path / "a.gs", context=gs.Context(memory_budget=budget, threads=2))
        opened.aggregate({"n": "count(*)"})
        before = opened.context.peak_bytes
        found = opened.aggregate({"total": "sum(v)", "n": "count(*)"}, by={"x": 4})
        assert found.stats["tiles_from_index"] == tiles and found.stats["blocks_decoded"] == 0
        assert (found.stats["bytes_spilled"] > 0) == spills
        assert np.array_equal(found["total"], expected) and found["n"].tolist() == [4] * tiles
        assert spills or opened.context.peak_bytes >= before + tiles * 24


def _unread(done: int, total: int | None) -> None:
    """A progress of what is refused before a cell is read."""
    raise AssertionError(f"{done} of {total} were read")


def test_conditions_orders_and_limits_work_on_the_stream(folder: Path, cells: dict[str, Any]) -> None:
    array = _opened(folder)
    keys, counts, sums = _sums(cells)
    first = array.aggregate(ASKED, by="k", limit=10)
    assert first["k"].tolist() == keys[:10].tolist() and first["total"].tolist() == sums[:10].tolist()
    top = array.aggregate(ASKED, by="k", order="total desc", limit=2_000)
    best = np.lexsort((keys, -sums))[:2_000]
    assert np.array_equal(top["k"], keys[best]) and np.array_equal(top["total"], sums[best])
    many = array.aggregate(ASKED, by="k", having="n > 3", order="k", stream=True).to_arrow()
    assert np.array_equal(many["k"], keys[counts > 3]) and np.array_equal(many["n"], counts[counts > 3])
    none = array.aggregate(ASKED, by="k", having="n > 30", stream=True)
    assert list(none) == [] and none.schema.names == ["k", "n", "total"]
    for stream in (False, True):
        for wrong in ({"order": "nothing"}, {"having": "nothing > 1"}):
            with pytest.raises(gs.InputError, match="nothing"):
                array.aggregate(ASKED, by="k", stream=stream, **wrong)


def test_a_stream_ends_at_any_batch(folder: Path) -> None:
    array, files = _opened(folder), _files(folder)
    stream = array.aggregate(ASKED, by="k", stream=True)
    assert isinstance(stream, gs.Stream) and next(stream).num_rows > 0
    stream.close()
    assert list(stream) == [] and _files(folder) == files
    other = array.aggregate(ASKED, by="k", stream=True)
    next(other)
    del other
    gc.collect()
    assert _files(folder) == files
    table = pa.table(array.aggregate(ASKED, by="k", stream=True))
    assert table.num_rows == GROUPS and table.schema.names == ["k", "n", "total"]


def test_an_exception_of_progress_stops_and_leaves_no_file(folder: Path) -> None:
    array, files = _opened(folder), _files(folder)
    seen = []

    def stop(done: int, total: int) -> None:
        seen.append(done)
        if done > 300_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        array.aggregate(ASKED, by="k", stream=True, progress=stop)
    assert seen and _files(folder) == files


def test_columns_of_a_stream_have_their_types_and_categories(folder: Path) -> None:
    array = _opened(folder)
    asked = {"n": "count(*)", "s": "std(v)", "kind": "any_value(c)"}
    stream, whole = array.aggregate(asked, by="c", stream=True), array.aggregate(asked, by="c")
    assert [(f.name, f.nullable) for f in stream.schema] == [("c", False), ("n", False), ("s", True), ("kind", False)]
    # Sums of floats by groups depend on which thread took which cells.
    assert stream.to_arrow().drop(["s"]).to_pylist() == whole.to_arrow().drop(["s"]).to_pylist()
    one = array.aggregate({"m": "max(v)"}, where="v > 5000", stream=True)
    assert one.to_arrow().to_pylist() == [{"m": None}]


@pytest.mark.parametrize("place", ["new.gs", "a.gs:/by/k"])
def test_groups_become_an_array(folder: Path, cells: dict[str, Any], place: str, tmp_path: Path) -> None:
    array = _opened(folder)
    keys, counts, sums = _sums(cells)
    to = str((tmp_path if place == "new.gs" else folder) / place)
    made = array.aggregate(ASKED, by="k", to=to)
    assert made.sparse and [dim.name for dim in made.schema.dims] == ["k"]
    assert [attr.name for attr in made.schema.attrs] == ["n", "total"] and not made.schema.attr("n").nullable
    assert made.schema.dims[0].reach == (keys[0], keys[-1])
    parts = made.scan(order="row").to_numpy()
    assert np.array_equal(parts["k"], keys) and np.array_equal(parts["n"], counts)
    assert np.array_equal(parts["total"], sums)
    assert made.stats is not None and gs.open(to.split(":/")[0]) is not None
    with pytest.raises(gs.ExistsError):
        array.aggregate(ASKED, by="k", to=to)


def test_keys_of_several_types_become_coordinates(tmp_path: Path) -> None:
    schema = gs.Schema(
        [gs.Dim("x", (0, 99), dtype="int64")],
        [
            gs.Attr("s", "string"),
            gs.Attr("c", "string", categories=["z", "longer than the others", "a"]),
            gs.Attr("t", "datetime64[s]"),
            gs.Attr("f", "float64", nullable=True),
            gs.Attr("b", "bool"),
        ],
        sparse=True,
    )
    array = gs.create(tmp_path / "a.gs", schema)
    texts = np.array([["", "é" * 20, "mid"][n % 3] for n in range(90)], object)
    kinds = np.array([["z", "longer than the others", "a"][n % 2] for n in range(90)], object)
    f = np.ma.MaskedArray(np.where(np.arange(90) == 7, np.nan, np.arange(90) / 8 - 3), mask=np.arange(90) == 8)
    times = (np.arange(90) * 600).view("M8[s]")
    array.write_cells({"x": np.arange(90)}, {"s": texts, "c": kinds, "t": times, "f": f, "b": np.arange(90) % 2 == 0})
    by = ["s", "c", {"t": "1h", "x": 10}]
    made = array.aggregate({"n": "count(*)", "m": "mean(f)"}, by=by, to=tmp_path / "b.gs")
    wanted = array.aggregate({"n": "count(*)", "m": "mean(f)"}, by=by).to_pandas()
    found = made.read().to_pandas()
    order = ["s", "c", "t", "x"]
    wanted["c"] = wanted["c"].astype(str)
    wanted, found = (one.sort_values(order).reset_index(drop=True) for one in (wanted, found))
    assert wanted[[*order, "n"]].astype(str).equals(found[[*order, "n"]].astype(str))
    known = array.aggregate({"n": "count(*)"}, by={"f": 0.5}, where="f >= -3", to=tmp_path / "c.gs")
    assert known.read()["f"].tolist() == sorted(set(np.floor(f.compressed()[~np.isnan(f.compressed())] * 2) / 2))


def test_what_cannot_be_an_array_says_what_to_do(tmp_path: Path) -> None:
    values = np.ma.MaskedArray([1.0, np.nan, 2.0], mask=[False, False, True])
    schema = gs.Schema(
        [gs.Dim("x", (0, 2), dtype="int64")],
        [gs.Attr("f", "float64", nullable=True), gs.Attr("b", "bool")],
        sparse=True,
    )
    array = gs.create(tmp_path / "a.gs", schema)
    array.write_cells({"x": np.arange(3)}, {"f": values, "b": [True, False, True]})
    asked, to = {"n": "count(*)"}, tmp_path / "b.gs"
    with pytest.raises(gs.InputError, match=r"give by="):
        array.aggregate(asked, to=to)
    with pytest.raises(gs.InputError, match=r"'f' is NaN.*where="):
        array.aggregate(asked, by="f", box={"x": (0, 1)}, to=to)
    with pytest.raises(gs.InputError, match=r"'f' is null.*where="):
        array.aggregate(asked, by="f", box={"x": (2, 2)}, to=to)
    with pytest.raises(gs.InputError, match=r"'b' of by= is bool.*cast"):
        array.aggregate(asked, by="b", to=to, progress=_unread)
    with pytest.raises(gs.InputError, match="one of them"):
        array.aggregate(asked, by="f", to=to, stream=True)  # type: ignore[call-overload]
    assert not to.exists()
    cast = array.aggregate(asked, by="cast(b as int8)", to=to)
    assert cast.read()["n"].tolist() == [1, 2]


@pytest.mark.parametrize("by", ["n", "s", ["n", "s"], "lower(n)"])
def test_texts_of_any_name_become_coordinates(tmp_path: Path, by: Any) -> None:
    array = gs.create(
        tmp_path / "a.gs",
        gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("n", "string"), gs.Attr("s", "string")], sparse=True),
    )
    array.write_cells({"x": [0, 1, 2]}, {"n": ["a", "ccc", "a"], "s": ["éé", "", "z"]})
    wanted = array.aggregate({"c": "count(*)"}, by=by)
    seen: list[int] = []
    made = array.aggregate({"c": "count(*)"}, by=by, to=tmp_path / "o.gs", progress=lambda done, _: seen.append(done))
    keys = [by] if isinstance(by, str) else by
    assert [dim.max_bytes for dim in made.schema.dims] == [4 if key == "s" else 3 for key in keys]
    found = made.read()
    assert {name: found[name].tolist() for name in (*keys, "c")} == {
        name: wanted[name].tolist() for name in (*keys, "c")
    }
    # Once for the groups, and once for each key of texts.
    assert seen.count(3) == 1 + len(keys)


def test_counters_are_those_of_the_question_that_is_written(tmp_path: Path) -> None:
    array = gs.create(
        tmp_path / "a.gs", gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("s", "string"), gs.Attr("v", "int8")], sparse=True)
    )
    array.write_cells({"x": [0, 1, 2]}, {"s": ["a", "b", "a"], "v": [1, 2, 3]})
    # With a cache of its own each handle reads cells anew.
    one, other = (gs.open(tmp_path / "a.gs", context=gs.Context(memory_budget="64MiB")) for _ in range(2))
    one.aggregate({"m": "max(v)"}, by="s", stream=True).close()
    other.aggregate({"m": "max(v)"}, by="s", to=tmp_path / "o.gs")
    assert other.stats == one.stats and one.stats["blocks_decoded"] > 0


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("by", ["f", {"f": 0.5}])
def test_an_infinite_key_says_what_to_do(tmp_path: Path, value: float, by: Any) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("f", "float64")], sparse=True)
    array = gs.create(tmp_path / "a.gs", schema)
    array.write_cells({"x": [0, 1]}, {"f": [value, 2.0]})
    with pytest.raises(gs.InputError, match=r"'f' is infinite.*where=") as raised:
        array.aggregate({"n": "count(*)"}, by=by, to=tmp_path / "o.gs")
    advised = str(raised.value).split('where="')[1].split('"')[0]
    made = array.aggregate({"n": "count(*)"}, by=by, where=advised, to=tmp_path / "o.gs")
    assert made.read()["f"].tolist() == [2.0]


_ASKING = """
import sys
import gridstone as gs
roomy = gs.open(sys.argv[1], path="/cells", context=gs.Context(memory_budget="64MiB", threads=2))
answer = roomy.aggregate({"n": "count(*)"}, by="k")
print(len(answer), answer["n"].sum(), answer.stats["bytes_spilled"], roomy.context.peak_bytes > 16 << 20)
array = gs.open(sys.argv[1], path="/cells", context=gs.Context(memory_budget="8MiB", threads=2))
try:
    array.aggregate({"n": "count(*)"}, by="k", stream=True)
except gs.BudgetError as error:
    print(error)
"""


def test_a_store_that_is_only_read_says_so(folder: Path) -> None:
    # The superuser writes into any folder, unless that right is dropped.
    dropped = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"] if os.geteuid() == 0 else []
    if dropped and shutil.which(dropped[0]) is None:
        pytest.skip("the superuser writes into any folder, and there is no setpriv to drop that right")
    data = folder / "a.gs" / "_data"
    mode = data.stat().st_mode
    data.chmod(0o555)
    try:
        found = subprocess.run(
            [*dropped, sys.executable, "-c", _ASKING, str(folder / "a.gs")],
            env={**os.environ, "PYTHONPATH": str(Path(gs.__file__).parents[1])},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    finally:
        data.chmod(mode)
    assert found.returncode == 0, found
    assert f"{GROUPS} 900000 0 True" in found.stdout and "the store cannot be written to" in found.stdout, found
