"""Arrays of one dimension: values as a line with gaps, cells as bars; no value, no peak and no cell is lost."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_pictures import small

import gridstone as gs
from gridstone.pictures import axis, profile

pytest.importorskip("matplotlib")

KEPT = Path(__file__).parent / "kept"


def _dense(name: str, count: int, attr: gs.Attr, **more: Any) -> gs.Array:
    dim = gs.Dim("t", more.pop("domain", (0, count - 1)), min(count, 1000), **more)
    return gs.create(f"mem://one-{name}", gs.Schema([dim], [attr]), overwrite=True)


def _sparse(name: str, dtype: str, domain: Any, places: Any) -> gs.Array:
    schema = gs.Schema([gs.Dim("t", domain, dtype=dtype)], [gs.Attr("v", "int8")], sparse=True, duplicates=True)
    a = gs.create(f"mem://one-{name}", schema, overwrite=True)
    a.write_cells({"t": places}, {"v": np.ones(len(places), "i1")})
    return a


def _line(figure: Any) -> tuple[Any, Any]:
    (found,) = figure.axes[0].get_lines()
    return np.asarray(found.get_xdata()), np.asarray(found.get_ydata())


def _legend(figure: Any) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def _ticks(along: Any) -> list[str]:
    return [text.get_text() for text in along.get_ticklabels()]


def _bars(figure: Any) -> tuple[Any, Any]:
    (found,) = figure.axes[0].patches
    return np.asarray(found.get_data().values), np.asarray(found.get_data().edges)


@pytest.mark.parametrize("nullable", [True, False])
def test_cells_without_a_value_are_gaps_and_are_counted(nullable: bool) -> None:
    a = _dense("gaps", 20, gs.Attr("v", "float32", nullable=nullable))
    a[2:9] = np.array([1, 2, np.nan, 4, np.inf, 6, -np.inf], "f4")
    a[15] = np.float32(3)
    figure: Any = a.plot()
    x, y = _line(figure)
    told = {2: 1, 3: 2, 5: 4, 7: 6, 15: 3}
    assert x.tolist() == list(range(20))
    assert {int(at): value for at, value in zip(x, y, strict=True) if value == value} == told
    missing = "null or NaN" if nullable else "NaN"
    assert _legend(figure) == ["unwritten: 12", f"{missing}: 1", "+inf: 1, beyond the axis", "-inf: 1, beyond the axis"]
    assert figure.axes[0].get_xlim() == (-0.5, 19.5) and figure.axes[0].get_xlabel() == "t"


def test_labels_stand_along_the_axis() -> None:
    """To scale where they ascend or descend; else each at its position."""
    days = np.array(["2026-02-27", "2026-03-01", "2026-03-09"], "M8[D]")
    for labels, scale in (
        (days, [0, 2, 10]),
        (days[::-1], [10, 2, 0]),
        ([1.5, 2.5, 40.0], [0, 1, 38.5]),
        (["a", "b", "c"], [0, 1, 2]),
        ([3, 1, 2], [0, 1, 2]),
        (np.ma.MaskedArray([1, 2, 9], [False, True, False]), [0, 1, 2]),
        (days[[0, 0, 1]], [0, 1, 2]),
    ):
        a = _dense("labels", 3, gs.Attr("v", "int32"), labels=labels)
        a[...] = np.array([5, 6, 7], "i4")
        figure: Any = a.plot(title="labels")
        x, y = _line(figure)
        assert y.tolist() == [5, 6, 7] and np.allclose(x - x.min(), np.array(scale) - min(scale)), (labels, x)
        figure.canvas.draw()
        shown = _ticks(figure.axes[0].xaxis)
        if scale == [0, 1, 2]:
            wanted = [axis.text_of(one) for one in np.ma.asarray(labels).compressed()]
            assert set(wanted) <= set(shown)
        if labels is days:
            assert "2026-03-01" in shown


@pytest.mark.parametrize(
    ("dtype", "values", "shown"),
    [
        ("bool", [True, False, True], {"false", "true"}),
        ("datetime64[D]", ["2026-03-01", "NaT", "2026-03-05"], {"2026-03-01", "2026-03-05"}),
        ("datetime64[Y]", [-20000, 0, 30000], {"-18030"}),
        ("timedelta64[h]", [1, 2, 3], {"1 hours", "3 hours"}),
        ("int64", [-(2**63), 0, 2**63 - 1], {"0"}),
        ("uint64", [0, 1, 2**64 - 1], {"0"}),
        ("float64", [-1.7e308, 0, 1.7e308], {"0", "150e+306", "-150e+306"}),
        ("float16", [1, 2, 3], {"1.00", "3.00"}),
    ],
)
def test_values_of_each_kind_have_a_line(dtype: str, values: Any, shown: set[str]) -> None:
    a = _dense("kinds", 3, gs.Attr("v", dtype))
    a[...] = np.array(values, dtype if dtype != "float16" else "f2")
    figure: Any = a.plot()
    figure.canvas.draw()
    assert shown <= set(_ticks(figure.axes[0].yaxis)), _ticks(figure.axes[0].yaxis)
    assert figure.axes[0].get_ylabel() == "v"


def test_times_of_a_dense_dimension_are_dates() -> None:
    a = _dense("days", 4, gs.Attr("v", "int8"), domain=("2026-02-27", "2026-03-02"), dtype="datetime64[D]")
    a[...] = np.arange(4, dtype="i1")
    figure: Any = a.plot(box={"t": ("2026-02-28", "2026-03")})
    figure.canvas.draw()
    assert _line(figure)[1].tolist() == [1, 2, 3] and "2026-03-01" in "".join(_ticks(figure.axes[0].xaxis))


def test_no_peak_of_a_long_line_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model finds the least and the greatest of each group; pieces end within groups."""
    monkeypatch.setattr(profile, "POINTS_MAX", 100)
    monkeypatch.setattr(profile, "_PIECE", 64)
    rng = np.random.default_rng(3)
    a = _dense("long", 1234, gs.Attr("v", "int64", nullable=True))
    values = np.ma.MaskedArray(rng.integers(-9, 9, 1000), rng.random(1000) < 0.7)
    values[500:600] = np.ma.masked
    values[777] = 10**6
    a[100:1100] = values
    size = -(-1234 // 50)
    figure: Any = a.plot()
    x, y = _line(figure)
    whole = np.ma.masked_all(-(-1234 // size) * size, "i8")
    whole[100:1100] = values
    groups = whole.reshape(-1, size)
    wanted = np.stack([groups.min(axis=1).filled(0), groups.max(axis=1).filled(0)], 1).astype(float)
    wanted[groups.mask.all(axis=1)] = np.nan
    assert np.array_equal(y.reshape(-1, 2), wanted, equal_nan=True) and np.nanmax(y) == 10**6
    assert np.isnan(y).any() and x.max() < 1234
    note = " ".join(text.get_text() for text in figure.texts)
    assert f"the least and the greatest of each {size} cells" in note
    assert _legend(figure) == ["unwritten: 234", f"null: {values.mask.sum()}"]
    monkeypatch.setattr(profile, "CELLS_MAX", 300)
    assert "every 4th cell" in " ".join(text.get_text() for text in a.plot().texts)  # type: ignore[union-attr]


def test_long_domains_are_drawn_where_they_are_written() -> None:
    a = _dense("domain", 2**62, gs.Attr("v", "int32"))
    a[2**40 : 2**40 + 5] = np.arange(5, dtype="i4")
    figure: Any = a.plot()
    assert _line(figure)[1].tolist() == [0, 1, 2, 3, 4] and str(2**40 + 2) in _drawn_ticks(figure)


def _drawn_ticks(figure: Any) -> list[str]:
    figure.canvas.draw()
    return _ticks(figure.axes[0].xaxis)


@pytest.mark.parametrize(
    ("dtype", "domain", "places"),
    [
        ("int32", (-500, 5000), [-500, -500, 0, 1, 2, 4999, 5000]),
        ("uint64", (0, 2**64 - 2), [0, 2**63, 2**64 - 2]),
        ("int64", (-(2**63), 2**63 - 2), [-(2**63), -1, 0, 2**63 - 2]),
        ("float64", (-1.0, 1.0), [-1.0, -0.5, 1.0, 1.0, 0.25]),
        ("float32", (2.5, 2.5), [2.5, 2.5]),
        ("datetime64[ns]", ("2026-03-01", "2026-03-02"), ["2026-03-01", "2026-03-01T00:00:00.000000001", "2026-03-02"]),
        ("datetime64[as]", (-(2**63) + 1, 2**63 - 2), [-5, 0, 2**63 - 2]),
        ("timedelta64[s]", (0, 10), [0, 10, 10]),
        ("datetime64[D]", ("2026-03-01", "2026-05-01"), ["2026-03-01", "2026-03-01", "2026-05-01"]),
        ("datetime64[h]", ("2026-03-01T00", "2026-03-01T05"), ["2026-03-01T02", "2026-03-01T05"]),
        ("timedelta64[D]", (0, 400), [0, 399, 400]),
    ],
)
def test_bars_count_every_cell_once(dtype: str, domain: Any, places: Any) -> None:
    a = _sparse("bars", dtype, domain, np.array(places, dtype))
    figure: Any = a.plot(mbrs=True, fragments=True)
    counts, edges = _bars(figure)
    assert counts.sum() == len(places) and len(counts) <= profile.BARS_MAX and (np.diff(edges) > 0).all()
    figure.canvas.draw()
    found = a.read().plot()
    assert np.array_equal(_bars(found)[0], counts)


def test_bars_hold_equally_many_coordinates() -> None:
    """A column of each coordinate once is a flat roof, but for the last bar."""
    a = _sparse("flat", "int64", (0, 10**6), np.arange(1000))
    counts, _ = _bars(a.plot())
    assert set(counts[:-1]) == {5} and counts.sum() == 1000
    few = _sparse("few", "int64", (0, 10**6), np.array([3, 3, 5]))
    counts, edges = _bars(few.plot(box={"t": (2, 6)}))
    assert counts.tolist() == [0, 2, 0, 1, 0] and edges.tolist() == [2, 3, 4, 5, 6, 7]


def test_what_has_no_line_is_refused() -> None:
    for attr in (gs.Attr("v", "string"), gs.Attr("v", "uint8[3]"), gs.Attr("v", "string", categories=["a"])):
        with pytest.raises(gs.UnsupportedError, match="no line shows"):
            _dense("refused", 3, attr).plot()
    two = [gs.Attr("s", "string"), gs.Attr("v", "int8")]
    a = gs.create("mem://one-two", gs.Schema([gs.Dim("t", (0, 2), 3)], two), overwrite=True)
    assert a.plot().axes[0].get_ylabel() == "v"  # type: ignore[union-attr]
    for wrong, error, told in (
        ({"dims": ("t", "x")}, gs.SchemaError, "the array has one, 't'"),
        ({"at": {"t": 1}}, gs.UnsupportedError, "box="),
        ({"placement": True}, gs.UnsupportedError, "two dimensions"),
        ({"box": {"t": (5, 9)}}, gs.UnsupportedError, "no cells"),
    ):
        with pytest.raises(error, match=told):
            a.plot(**wrong)  # type: ignore[arg-type]
    assert a.plot(dims=["t"])  # type: ignore[arg-type]
    text = gs.create("mem://one-text", gs.Schema([gs.Dim("t", dtype="string")], two, sparse=True), overwrite=True)
    with pytest.raises(gs.UnsupportedError, match="group by it"):
        text.plot()
    with pytest.raises(gs.UnsupportedError, match="leave the attribute out"):
        _sparse("attr", "int64", (0, 9), np.array([1])).plot(attr="v")


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("kind", ["line", "bars"])
def test_pictures_of_one_dimension_are_as_the_kept_ones(kind: str, theme: str, tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    if kind == "line":
        days = np.arange("2026-03-01", "2026-04-30", dtype="M8[D]")
        a = _dense("kept", 60, gs.Attr("v", "float32", nullable=True), labels=days)
        a[5:50] = np.sin(np.arange(45, dtype="f4") / 5)
        a[20:26] = np.nan
        a[55] = np.float32(0.5)
    else:
        places = np.concatenate([np.arange(0, 900, 3), np.arange(300, 500)])
        a = _sparse("kept-bars", "int64", (0, 999), places)
    found = small(a.plot(theme=theme, title="kept"))
    path = KEPT / f"{kind}-{theme}.png"
    if os.environ.get("GRIDSTONE_REWRITE_PICTURES"):
        image.imsave(path, np.round(found).astype(np.uint8))
    kept = (image.imread(path)[..., :3] * 255).round()
    assert kept.shape == found.shape and np.abs(kept - found).mean() < 4


def test_the_command_line_draws_one_dimension(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from gridstone.cli import cli

    uri, out = str(tmp_path / "a.gs"), tmp_path / "a.png"
    gs.array(uri, np.arange(5))
    for words in ([], ["--box", "d0=1:3"], ["--dims", "d0"]):
        done = CliRunner().invoke(cli, ["plot", uri, str(out), *words])
        assert done.exit_code == 0 and out.read_bytes().startswith(b"\x89PNG"), done.output
        out.unlink()
    done = CliRunner().invoke(cli, ["plot", uri, str(out), "--dims", "x,y"])
    assert done.exit_code != 0 and not out.exists()
