"""Aggregates by groups equal those that plain Python computes from the cells that a read gives."""

import math
import random
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import gridstone as gs

SPARSE = st.booleans()
_TEXTS = ["", "a", "ä", "zz", "日本", "a b"]


def _attrs() -> list[gs.Attr]:
    return [
        gs.Attr("i", "int64", nullable=True),
        gs.Attr("b", "int8"),
        gs.Attr("u", "uint64"),
        gs.Attr("f", "float64"),
        gs.Attr("g", "float32", nullable=True),
        gs.Attr("s", "string", nullable=True),
        gs.Attr("e", "string", categories=["x", "y", "z"]),
        gs.Attr("o", "bool"),
        gs.Attr("t", "datetime64[s]", nullable=True),
    ]


def _values(rng: random.Random, count: int) -> dict[str, Any]:
    def some(values: list[Any]) -> list[Any]:
        return [rng.choice(values) for _ in range(count)]

    nullable = lambda values, mask: np.ma.MaskedArray(values, mask=mask)  # noqa: E731
    mask = lambda: np.array([rng.random() < 0.3 for _ in range(count)], bool)  # noqa: E731
    ends = [-(2**62), -7, 0, 1, 7, 2**62 - 3]
    floats = [0.0, -0.0, 1.5, -2.25, 1e-300, 1e16, -1e16, math.inf, -math.inf, math.nan, 5e-324]
    weights = rng.choice([floats, floats[:7]])
    return {
        "i": nullable(np.array(some(ends), np.int64), mask()),
        "b": np.array(some([-128, -1, 0, 3, 127]), np.int8),
        "u": np.array(some([0, 1, 2**32, 2**60]), np.uint64),
        "f": np.array(some(weights), np.float64),
        "g": nullable(np.array(some([0.5, 0.25, -3.0, math.nan]), np.float32), mask()),
        "s": nullable(np.array(some(_TEXTS), object), mask()),
        "e": np.array(some(["x", "y", "z"]), object),
        "o": np.array(some([True, False]), bool),
        "t": nullable(np.array(some([-5, 0, 86_400, 10**9]), np.int64).view("M8[s]"), mask()),
    }


def _made(folder: Path, seed: int, sparse: bool, budget: str = "64MiB") -> gs.Array:
    rng = random.Random(seed)
    side = rng.choice([6, 13])
    dims = [
        gs.Dim("x", (-3, -4 + side), tile=rng.choice([4, 5]), dtype="int64"),
        gs.Dim("y", (0, 5), tile=rng.choice([2, 6]), dtype="int32"),
    ]
    duplicates = sparse and rng.random() < 0.4
    more = {"capacity": rng.choice([3, 1000]), "duplicates": duplicates} if sparse else {}
    # Without a cache small fragments are read as large ones, and the index answers for their tiles.
    context = gs.Context(memory_budget=budget, threads=rng.choice([1, 2]), cache=rng.choice(["16MiB", 0]))
    schema = gs.Schema(dims, _attrs(), sparse=sparse, **more)
    array = gs.create(folder / f"a{seed}.gs", schema, context=context)
    for _ in range(rng.choice([0, 1, 3])):
        if sparse:
            count = rng.choice([1, 9, 60])
            x = np.array([rng.randrange(-3, side - 3) for _ in range(count)])
            y = np.array([rng.randrange(6) for _ in range(count)], np.int32)
            array.write_cells({"x": x, "y": y}, _values(rng, count), dedup="error" if duplicates else "last")
        else:
            low, left = rng.randrange(-3, side - 4), rng.randrange(5)
            box = {"x": (low, rng.randrange(low, side - 3)), "y": (left, rng.randrange(left, 6))}
            shape = tuple(hi - lo + 1 for lo, hi in box.values())
            data = {k: v.reshape(shape) for k, v in _values(rng, math.prod(shape)).items()}
            array.write(data, box)
    if rng.random() < 0.5:
        array.delete({"x": (0, 1), "y": (1, 3)})
    if rng.random() < 0.5:
        array.delete(where="b == 3")
    return array


def _cells(array: gs.Array, box: Any, where: str | None) -> list[dict[str, Any]]:
    """Cells in row order, None for null."""
    found = array.read(box, where=where or "b >= -128", order="row").to_numpy()
    count = len(found["x"])
    columns = {}
    for name, values in found.items():
        masked = np.ma.getmaskarray(values)
        columns[name] = [None if masked[k] else np.ma.getdata(values)[k] for k in range(count)]
    return [{name: column[k] for name, column in columns.items()} for k in range(count)]


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


def _key(value: Any) -> Any:
    return "nan" if _is_nan(value) else value


def _least(values: list[Any], pick: Any) -> Any:
    return next((v for v in values if _is_nan(v)), None) if any(map(_is_nan, values)) else pick(values)


def _expected(name: str, rows: list[dict[str, Any]]) -> Any:
    if name == "count(*)":
        return len(rows)
    call, _, column = name[:-1].partition("(")
    column = column.removeprefix("distinct ")
    values = [row[column] for row in rows if row[column] is not None]
    if call == "approx_count_distinct":
        # Sketches of few values are exact.
        return len({_key(v) for v in values})
    if call == "count":
        return len({_key(v) for v in values}) if "distinct" in name else len(values)
    if call == "any_value":
        return ("one of", values) if values else None
    if not values:
        return None
    if call in ("min", "max"):
        return _least(values, min if call == "min" else max)
    if call in ("first", "last"):
        return values[0 if call == "first" else -1]
    numbers = [float(v) for v in values]
    if call == "sum" and column != "f" and column != "g":
        return sum(int(v) for v in values)
    if any(not math.isfinite(v) for v in numbers):
        with np.errstate(invalid="ignore"):
            if call == "var":
                return None if len(numbers) == 1 else math.nan
            return {"sum": np.sum, "mean": np.mean, "var_pop": np.var, "median": np.median}[call](numbers)
    if call == "sum":
        return ("near", math.fsum(numbers), 1e-12 * math.fsum(map(abs, numbers)))
    exact = [Fraction(int(v)) if isinstance(v, np.integer) else Fraction(float(v)) for v in values]
    mean = sum(exact) / len(exact)
    if call == "mean":
        return ("near", float(mean), 1e-12 * float(sum(map(abs, exact)) / len(exact)) + 1e-300)
    if call == "median":
        return ("near", float(np.median(numbers)), abs(float(np.median(numbers))) * 1e-15)
    squares = sum((v - mean) ** 2 for v in exact)
    free = len(values) - (call in ("var", "std"))
    if free == 0:
        return None
    variance = squares / free
    return ("near", float(variance), 1e-12 * float(variance + mean**2) + 1e-300)


def _check(found: Any, expected: Any, told: str) -> None:
    if expected is None:
        assert found is np.ma.masked or found is None, told
    elif isinstance(expected, tuple) and expected[0] == "one of":
        assert any(found == v or (_is_nan(found) and _is_nan(v)) for v in expected[1]), told
    elif isinstance(expected, tuple):
        _, value, error = expected
        assert found is not np.ma.masked and abs(float(found) - value) <= error, f"{told}: {found} {expected}"
    elif _is_nan(expected):
        assert _is_nan(found), told
    else:
        assert found is not np.ma.masked and found == expected, f"{told}: {found} {expected}"


_ASKED = [
    *("count(*)", "count(i)", "count(s)", "sum(b)", "sum(o)", "sum(f)", "sum(g)", "mean(f)", "mean(b)", "mean(i)"),
    *("min(i)", "max(i)", "min(u)", "max(f)", "min(f)", "min(g)", "max(s)", "min(s)", "max(t)", "min(x)", "max(y)"),
    *("var_pop(b)", "var(f)", "first(i)", "last(s)", "first(f)", "any_value(s)", "count(distinct s)"),
    *("count(distinct f)", "count(distinct i)", "median(b)", "median(f)"),
    *("approx_count_distinct(s)", "approx_count_distinct(f)", "approx_count_distinct(i)"),
]
_BY = [
    [],
    ["b"],
    ["o"],
    [{"b": 7}, {"x": 4}],
    ["s"],
    ["f"],
    ["e", "o"],
    ["i", "g"],
    ["y"],
    [{"x": 4}],
    [{"x": 4}, "e"],
    ["t"],
    [{"f": 0.5}],
]
_BOXES = [None, {"x": (-1, 2)}, {"y": (2, 2)}, {"x": (0, 2), "y": (1, 4)}]


def _of_row(row: dict[str, Any], by: list[Any]) -> tuple[Any, ...]:
    made: list[Any] = []
    for one in by:
        if isinstance(one, str):
            made.append(_key(row[one]))
            continue
        ((name, width),) = one.items()
        value = row[name]
        if isinstance(width, int):
            made.append(None if value is None else int(value) // width * width)
        else:
            edge = math.nan if not math.isfinite(value) and _is_nan(value) else float(np.floor(value / width) * width)
            made.append(_key(edge))
    return tuple(made)


_WHERES = [None, "u > 0", "x < 0 or x >= 2", "y != 3 and b > -100", "not (x == 1) or s == 'a'"]


@given(
    seed=st.integers(0, 2**32),
    sparse=SPARSE,
    by=st.sampled_from(_BY),
    box=st.sampled_from(_BOXES),
    where=st.sampled_from(_WHERES),
    order=st.sampled_from([None, "any"]),
)
def test_groups_have_the_aggregates_of_their_cells(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    sparse: bool,
    by: list[Any],
    box: Any,
    where: str | None,
    order: str | None,
) -> None:
    array = _made(tmp_path_factory.mktemp("a"), seed, sparse)
    cells = _cells(array, box, where)
    if not sparse:
        # Cells that were never written count too.
        assert where or len(cells) == math.prod(array.read(box, "b").shape or ())
    # Aggregates of all values are given in the order of the groups, whatever is asked for.
    asked = [text for text in _ASKED if order is None or not text.startswith(("median", "count(distinct"))]
    names = {f"c{k}": text for k, text in enumerate(asked)}
    found = array.aggregate(names, by=by, box=box, where=where, order=order).to_numpy()
    keys = [next(iter(one)) if isinstance(one, dict) else one for one in by]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {} if by else {(): []}
    for row in cells:
        groups.setdefault(_of_row(row, by), []).append(row)
    shown = list(zip(*[found[key] for key in keys], strict=True)) if by else [()]
    plain = [tuple(None if v is np.ma.masked else _key(v) for v in row) for row in shown]
    assert len(plain) == len(groups) and set(plain) == set(groups)
    assert order == "any" or plain == sorted(plain, key=lambda row: [_rank(v) for v in row])
    for place, key in enumerate(plain):
        for column, text in names.items():
            _check(found[column][place], _expected(text, groups[key]), f"{text} of {key}")


def _rank(value: Any) -> Any:
    if value is None:
        return (2, 0)
    if isinstance(value, str) and value == "nan":
        return (1, 0)
    return (0, value.encode() if isinstance(value, str) else value)


_EXACT = ["count(*)", "count(s)", "sum(b)", "max(u)", "min(f)", "max(f)", "max(s)", "min(t)", "count(distinct i)"]
_EXACT += ["approx_count_distinct(i)", "approx_count_distinct(s)", "approx_count_distinct(f)"]
_PICKED = ["first(i)", "last(s)", "arg_max(s, i)", "arg_min(x, b)", "arg_max(b, f)"]


@given(seed=st.integers(0, 2**32), sparse=SPARSE, by=st.sampled_from(_BY))
def test_parts_in_any_split_and_order_give_the_whole(
    tmp_path_factory: pytest.TempPathFactory, seed: int, sparse: bool, by: list[Any]
) -> None:
    array = _made(tmp_path_factory.mktemp("p"), seed, sparse)
    names = {f"c{k}": text for k, text in enumerate(_EXACT + _PICKED)}
    whole = array.aggregate(names, by=by).to_numpy()
    rng = random.Random(seed)
    (low, high), cuts = array.schema.dims[0].domain, sorted({rng.randrange(-3, 3) for _ in range(2)})
    rows = list(zip([low, *cuts], [*(c - 1 for c in cuts), high], strict=True))
    parts = [
        array.partial(names, by=by, box={"x": row, "y": side})
        for row, side in product(rows, [(0, 1), (2, 5)])
        if row[0] <= row[1]
    ]
    rng.shuffle(parts)
    while len(parts) > 1:
        parts = [gs.partials.merge(parts[:2]), *parts[2:]]
    found = gs.partials.finish(parts[0]).to_numpy()
    assert list(found) == list(whole)
    for name, values in whole.items():
        a, b = np.ma.getmaskarray(values), np.ma.getmaskarray(found[name])
        assert np.array_equal(a, b), name
        x, y = np.ma.getdata(values)[~a], np.ma.getdata(found[name])[~b]
        assert np.array_equal(x, y, equal_nan=x.dtype.kind == "f"), f"{name} {names.get(name)}: {x} {y}"


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(
    "asked",
    [["sum(f)", "mean(f)", "var(f)"], ["sum(f)", "max(f)"], ["sum(f * 1.1)"], ["sum(f)", "var(f)", "median(f)"]],
)
def test_float_sums_have_the_same_bits_with_one_thread_and_several(
    tmp_path: Path, sparse: bool, asked: list[str]
) -> None:
    """Many chunks, whole tiles and cut ones among them, in an array whose texts make the batches uneven."""
    rng = np.random.default_rng(8)
    f, s = rng.normal(size=(450, 400)) * 1e6, np.array(["a", "bc"], object)[rng.integers(0, 2, (450, 400))]
    dims = [gs.Dim("x", (0, 449), tile=64, dtype="int64"), gs.Dim("y", (0, 399), tile=64, dtype="int64")]
    schema = gs.Schema(dims, [gs.Attr("f", "float64"), gs.Attr("s", "string")], sparse=sparse)
    array = gs.create(tmp_path / "a.gs", schema)
    if sparse:
        x, y = np.indices(f.shape)
        array.write_cells({"x": x.ravel(), "y": y.ravel()}, {"f": f.ravel(), "s": s.ravel()})
    else:
        array.write({"f": f, "s": s})
    made = []
    for threads in (1, 2, 3):
        again = gs.open(array.uri, context=gs.Context(threads=threads, memory_budget="8MiB"))
        for box in (None, {"x": (5, 440)}):
            result = again.aggregate({f"c{k}": text for k, text in enumerate(asked)}, box=box)
            values = list(result.to_numpy().values())
            if not sparse:
                values += [np.asarray(getattr(again["f"], call)(box=box)) for call in ("sum", "mean", "var", "std")]
            made.append([value.tobytes() for value in values])
    assert made[0] == made[2] == made[4] and made[1] == made[3] == made[5]
    total = math.fsum(f.ravel() * (1.1 if "1.1" in asked[0] else 1))
    assert abs(np.frombuffer(made[0][0])[0] - total) <= 1e-12 * np.abs(f).sum() * 1.1


@pytest.mark.parametrize("pair", [[-1e16, 1.5], [0.0, 5e-324], [1.0, 1.0 + 2**-52], [-3.0, 1e300], [0.1, 0.2]])
def test_the_median_of_two_values_is_that_of_numpy(tmp_path: Path, pair: list[float]) -> None:
    array = gs.array(tmp_path / "a.gs", np.array(pair), name="v")
    assert array.aggregate({"m": "median(v)", "q": "quantile(v, 0.5)"}).to_numpy()["m"][0] == np.median(pair)


@pytest.mark.parametrize("cut", [0, 1, 77_777, 250_000])
def test_rough_counts_are_near_and_the_same_for_every_split(tmp_path: Path, cut: int) -> None:
    values = np.random.default_rng(7).permutation(300_000) % 200_000
    array = gs.array(tmp_path / "a.gs", values, dims=["x"], name="v")
    asked = {"n": "approx_count_distinct(v)", "m": "approx_count_distinct(cast(v as float64))"}
    whole = array.aggregate(asked)
    assert abs(whole["n"][0] - 200_000) < 0.05 * 200_000 and abs(whole["m"][0] - 200_000) < 0.05 * 200_000
    boxes = [{"x": (0, cut)}, {"x": (cut + 1, 299_999)}]
    parts = [array.partial(asked, box=box) for box in boxes]
    for merged in (gs.partials.merge(parts), gs.partials.merge(parts[::-1])):
        found = gs.partials.finish(merged)
        assert found["n"][0] == whole["n"][0] and found["m"][0] == whole["m"][0]


def test_a_partial_result_that_is_none_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa

    array = gs.array(tmp_path / "a.gs", np.arange(10))
    part = array.partial({"n": "count(*)"})
    for bad in (pa.table({"stage": [0]}), part.replace_schema_metadata(None), "text"):
        with pytest.raises(gs.InputError):
            gs.partials.finish(bad)
    with pytest.raises(gs.InputError, match="two questions"):
        gs.partials.merge([part, array.partial({"n": "count(*)"}, by="d0")])
    with pytest.raises(gs.InputError, match="no partial result"):
        gs.partials.merge([])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, part.schema) as writer:
        writer.write_table(part)
    back = pa.ipc.open_stream(sink.getvalue()).read_all()
    assert gs.partials.finish(back)["n"][0] == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sum(s)", "no sum"),
        ("mean(e)", "no mean|categories"),
        ("median(s)", "no quantiles"),
        ("quantile(b, 2)", "from 0 to 1"),
        ("nothing(b)", "no aggregate"),
        ("sum(nothing)", "nothing"),
        ("sum(b, b)", "1 arguments"),
        ("sum(distinct b)", "count"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, text: str, message: str) -> None:
    array = gs.create(tmp_path / "a.gs", gs.Schema([gs.Dim("x", (0, 9), dtype="int64")], _attrs(), sparse=True))
    with pytest.raises(gs.InputError, match=message):
        array.aggregate({"n": text})


def test_a_sum_that_does_not_fit_names_the_cast(tmp_path: Path) -> None:
    array = gs.array(tmp_path / "a.gs", np.full(9, 2**62))
    name = array.schema.attrs[0].name
    with pytest.raises(gs.InputError, match=r"cast\(x as float64\)"):
        array.aggregate({"s": f"sum({name})"})
    assert array.aggregate({"m": f"mean({name})"})["m"][0] == 2.0**62


def test_the_index_answers_for_whole_tiles(tmp_path: Path) -> None:
    """Counters as computed by hand: 20 tiles of 10,000 cells each."""
    schema = gs.Schema(
        [gs.Dim("x", (0, 199_999), dtype="int64", tile=10_000)], [gs.Attr("v", "int64")], sparse=True, capacity=10_000
    )
    array = gs.create(tmp_path / "a.gs", schema)
    values = np.random.default_rng(5).integers(0, 2**40, 200_000)
    array.write_cells({"x": np.arange(200_000)}, {"v": values})
    found = array.aggregate({"m": "max(v)", "s": "sum(v)", "n": "count(*)"})
    assert (found["m"][0], found["s"][0], found["n"][0]) == (values.max(), values.sum(), 200_000)
    assert found.stats["tiles_from_index"] == 20 and found.stats["blocks_decoded"] == 0
    by = array.aggregate({"s": "sum(v)"}, by={"x": 20_000})
    assert by["s"].tolist() == values.reshape(10, 20_000).sum(1).tolist() and by.stats["tiles_from_index"] == 20
    cut = array.aggregate({"s": "sum(v)"}, box={"x": (5000, 184_999)})
    assert cut["s"][0] == values[5000:185_000].sum() and cut.stats["tiles_from_index"] == 17
    where = array.aggregate({"n": "count(*)"}, where="x >= 30_000 and x < 55_000")
    assert where["n"][0] == 25_000 and where.stats["tiles_from_index"] == 2
    # Blocks that a condition leaves out are no part of a tile that is taken whole.
    x = np.arange(200_000)
    for text, kept in [
        ("x < 1024 or x >= 4096", (x < 1024) | (x >= 4096)),
        ("x < 11_000 or (x > 15_000 and x != 60_001)", (x < 11_000) | ((x > 15_000) & (x != 60_001))),
    ]:
        parts = array.aggregate({"n": "count(*)", "s": "sum(v)"}, where=text)
        assert (parts["n"][0], parts["s"][0]) == (kept.sum(), values[kept].sum()), text
        assert parts.stats["tiles_from_index"] > 0
    array.write_cells({"x": [33_000]}, {"v": [2**41]})
    over = array.aggregate({"m": "max(v)", "s": "sum(v)"})
    assert (over["m"][0], over["s"][0]) == (2**41, values.sum() - values[33_000] + 2**41)
    assert over.stats["tiles_from_index"] == 19
    array.delete({"x": (71_000, 71_001)})
    gone = array.aggregate({"n": "count(*)"})
    assert gone["n"][0] == 199_998 and gone.stats["tiles_from_index"] == 18


def test_the_index_answers_for_dense_tiles(tmp_path: Path) -> None:
    values = np.arange(100 * 60, dtype=np.float64).reshape(100, 60)
    array = gs.create(
        tmp_path / "a.gs",
        gs.Schema([gs.Dim("x", (0, 99), tile=20), gs.Dim("y", (0, 59), tile=20)], [gs.Attr("v", "float64")]),
    )
    array.write(values)
    found = array.aggregate({"m": "max(v)", "n": "count(*)", "s": "sum(v)"})
    assert found["m"][0] == values.max() and found["n"][0] == 6000 and found["s"][0] == values.sum()
    assert found.stats["tiles_from_index"] == 15 and found.stats["blocks_decoded"] == 0
    array.write(np.full((1, 1), 1e9), {"x": (25, 25), "y": (25, 25)})
    over = array.aggregate({"m": "max(v)"})
    assert over["m"][0] == 1e9 and over.stats["tiles_from_index"] == 14


@pytest.mark.parametrize("name", ["in", "nan", "true", "and", "null", 'a "b"', "x + y", "Größe"])
def test_names_that_mean_something_else_are_names_all_the_same(tmp_path: Path, name: str) -> None:
    array = gs.create(tmp_path / "a.gs", gs.Schema([gs.Dim("x", (0, 3))], [gs.Attr(name, "int8")]))
    array.write(np.arange(4, dtype="int8"))
    assert array.sum() == 6 and array[...].tolist() == [0, 1, 2, 3]
    assert array.aggregate({"n": "count(*)"}, by=name)[name].tolist() == [0, 1, 2, 3]
    assert array.aggregate({"n": "count(*)"}, by={name: 2})[name].tolist() == [0, 2]
    quoted = '"' + name.replace('"', '""') + '"'
    for order in (f"{name} desc", f"{quoted} desc"):
        assert array.aggregate({"n": "count(*)"}, by=quoted, order=order)[name].tolist() == [3, 2, 1, 0]


def test_an_answer_beyond_the_budget_is_an_error(tmp_path: Path) -> None:
    array = gs.array(tmp_path / "a.gs", np.arange(600_000), context=gs.Context(memory_budget="8MiB"))
    name = array.schema.attrs[0].name
    with pytest.raises(gs.BudgetError, match=r"stream=True"):
        array.aggregate({"n": "count(*)"}, by=name)
    assert len(array.aggregate({"n": "count(*)"}, by={name: 100})) == 6000


def test_arrays_of_one_cell_and_of_none(tmp_path: Path) -> None:
    one = gs.array(tmp_path / "one.gs", 3.5)
    name = one.schema.attrs[0].name
    assert one.aggregate({"n": "count(*)", "s": f"sum({name})"}).to_arrow().to_pylist() == [{"n": 1, "s": 3.5}]
    assert one.sum() == 3.5
    dims = [gs.Dim("t", (0, None), tile=4, dtype="int64"), gs.Dim("y", (0, 2), dtype="int64")]
    none = gs.create(tmp_path / "none.gs", gs.Schema(dims, [gs.Attr("v", "float64")]))
    assert none.aggregate({"n": "count(*)", "m": "max(v)"}).to_arrow().to_pylist() == [{"n": 0, "m": None}]
    assert len(none.aggregate({"n": "count(*)"}, by="y")) == 0
    assert none.sum(axis="t").tolist() == [0, 0, 0] and none.sum() == 0


def test_a_transaction_aggregates_what_it_sees(tmp_path: Path) -> None:
    gs.array(tmp_path / "a.gs", np.arange(10))
    with gs.transaction(tmp_path / "a.gs") as tx:
        array = tx["/"]
        array[3] = 100
        assert array.sum() == 142 and array.aggregate({"m": "max(value)"})["m"][0] == 100
    assert gs.open(tmp_path / "a.gs").sum() == 142


def test_categories_in_no_order_are_least_and_greatest_by_what_they_are(tmp_path: Path) -> None:
    names = ["low", "high", "middle"]
    attrs = [
        gs.Attr("plain", "string", categories=names),
        gs.Attr("ranked", "string", categories=names, ordered=True),
        gs.Attr("sorted", "string", categories=sorted(names)),
        gs.Attr("number", "int32", categories=[5, 1]),
    ]
    array = gs.create(tmp_path / "a.gs", gs.Schema([gs.Dim("x", (0, 5))], attrs))
    given = ["low", "high", "middle", "high", "low", "high"]
    array.write({"plain": given, "ranked": given, "sorted": given, "number": [5, 1, 5, 1, 1, 1]})
    for name in ("plain", "sorted"):
        found = array.aggregate({"lo": f"min({name})", "hi": f"max({name})", "at": f"arg_max(x, {name})"}, by="number")
        assert found["number"].tolist() == [5, 1]
        assert list(found["lo"]) == ["low", "high"] and list(found["hi"]) == ["middle", "low"]
        assert found["at"].tolist() == [2, 4]
    found = array.aggregate({"lo": "min(ranked)", "hi": "max(ranked)"})
    assert list(found["lo"]) == ["low"] and list(found["hi"]) == ["middle"]
    assert array["plain"].max() == "middle" and array["plain"].min() == "high"
    with pytest.raises(gs.InputError, match=r"number.*categories of int32"):
        array.aggregate({"m": "max(number)"})


def test_means_of_negative_integers_are_as_near_as_those_of_floats(tmp_path: Path) -> None:
    values = np.zeros(100_000, "int64")
    values[7] = -1
    array = gs.array(tmp_path / "a.gs", values, name="v")
    assert array.mean() == -1e-5 and array.aggregate({"m": "mean(v)"})["m"][0] == -1e-5
    array[7] = 1
    assert array.mean() == 1e-5


def test_partial_results_with_other_lists_of_categories_are_not_mixed_up(tmp_path: Path) -> None:
    def counted(name: str, categories: list[str], given: list[str]) -> Any:
        attr = gs.Attr("kind", "string", categories=categories)
        array = gs.create(tmp_path / name, gs.Schema([gs.Dim("x", (0, len(given) - 1))], [attr]))
        array.write(np.array(given, object))
        return array.partial({"n": "count(*)"}, by="kind")

    first = counted("a", ["a", "b"], ["a", "a", "b"])
    with pytest.raises(gs.InputError, match=r"kind.*other categories"):
        gs.partials.merge([first, counted("b", ["b", "a"], ["a"])])
    longer = counted("c", ["a", "b", "c"], ["c", "b"])
    for parts in ([first, longer], [longer, first]):
        found = gs.partials.finish(gs.partials.merge(parts))
        assert list(found["kind"]) == ["a", "b", "c"] and found["n"].tolist() == [2, 2, 1]


@pytest.mark.parametrize("duplicates", [False, True])
def test_tiles_from_the_index_hide_and_are_hidden_as_cells_are(tmp_path: Path, duplicates: bool) -> None:
    rng = np.random.default_rng(5)
    schema = gs.Schema(
        [gs.Dim("x", (0, 499_999), 500)], [gs.Attr("v", "int64")], sparse=True, capacity=500, duplicates=duplicates
    )
    array = gs.create(tmp_path / "a.gs", schema)
    taken = 0
    for step in range(12):
        low, size = int(rng.integers(0, 300_000)), int(rng.choice([20, 60_000, 90_000]))
        x = np.sort(rng.choice(np.arange(low, low + 100_000), size, replace=False))
        if step % 4 == 3:
            array.delete(where=f"x >= {low} and x < {low + 700}")
        else:
            array.write_cells({"x": x}, {"v": rng.integers(-(2**40), 2**40, size)})
        for by in (None, {"x": 1_000}):
            for box in (None, {"x": (low + 50, low + 83_333)}):
                known = array.aggregate({"n": "count(*)", "s": "sum(v)", "m": "max(v)"}, by, box)
                read = array.aggregate({"n": "count(*)", "s": "sum(v * 1)", "m": "max(v * 1)"}, by, box)
                assert read.stats["tiles_from_index"] == 0
                taken += known.stats["tiles_from_index"]
                for name in ("n", "s", "m"):
                    assert known[name].tolist() == read[name].tolist(), (step, by, box, name)
    assert taken > 100


def test_partial_results_ask_for_equal_categories_of_the_attributes_that_they_name(tmp_path: Path) -> None:
    def counted(name: str, categories: list[str], by: str) -> Any:
        attrs = [gs.Attr("kind", "string", categories=categories), gs.Attr("kinds", "int32"), gs.Attr("a b", "int32")]
        array = gs.create(tmp_path / name, gs.Schema([gs.Dim("x", (0, 3))], attrs))
        array.write({"kind": np.array(categories * 2, object), "kinds": np.arange(4), "a b": np.arange(4) % 2})
        return array.partial({"n": "count(*)", "s": "sum(kinds + 1)"}, by=by)

    for at, by in enumerate(("kinds", "a b", "if(kinds = 1, 'kind', 'it''s kind')")):
        first, second = counted(f"a{at}", ["a", "b"], by), counted(f"b{at}", ["c", "a"], by)
        found = gs.partials.finish(gs.partials.merge([first, second]))
        assert found["n"].sum() == 8, by
    for at, by in enumerate(("kind", '"kind"', "upper(kind)")):
        with pytest.raises(gs.InputError, match=r"kind.*other categories"):
            gs.partials.merge([counted(f"c{at}", ["a", "b"], by), counted(f"d{at}", ["c", "a"], by)])


def test_what_has_no_bins_is_refused(tmp_path: Path) -> None:
    attrs = [gs.Attr("kind", "string", categories=["a", "b"]), gs.Attr("t", "datetime64[D]")]
    array = gs.create(tmp_path / "a.gs", gs.Schema([gs.Dim("x", (0, 3))], attrs))
    with pytest.raises(gs.InputError, match=r"kind.*categories.*no bins"):
        array.aggregate({"n": "count(*)"}, by={"kind": 2})
    with pytest.raises(gs.InputError, match="datetime64"):
        array.aggregate({"n": "count(*)"}, by={"coalesce(t, t)": 0.5})
