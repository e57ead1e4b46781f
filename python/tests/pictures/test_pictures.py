"""Pictures: the plane that is shown, cells without a value, which way is up, colour bars, odd values, kept images."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_pictures import small

import gridstone as gs

pytest.importorskip("matplotlib")

KEPT = Path(__file__).parent / "kept"


def _grid(name: str, shape: tuple[int, ...], attr: gs.Attr, dims: str = "tyx", **labels: Any) -> gs.Array:
    made = [gs.Dim(d, (0, n - 1), n, labels=labels.get(d)) for d, n in zip(dims[-len(shape) :], shape, strict=True)]
    return gs.create(f"mem://pictures-{name}", gs.Schema(made, [attr]), overwrite=True)


def _image(figure: Any) -> Any:
    """The image of values: the one that the colour bar is of."""
    return min(figure.axes[0].get_images(), key=lambda one: one.get_zorder())


def _coloured(figure: Any, name: str) -> Any:
    """[y, x]: the cells that have the colour which the legend calls by this name, of which it counts as many."""
    over = [one for one in figure.axes[0].get_images() if one.get_zorder() == 1]
    codes = np.ma.filled(over[0].get_array(), 9) if over else np.full((8, 9), 9)
    found = codes == (0 if name == "unwritten" else 1)
    counted = [int(text.split(": ")[1]) for text in _legend(figure) if text.startswith(f"{name}: ")]
    assert counted == ([found.sum()] if found.any() else [])
    return found


def _texts(figure: Any) -> str:
    return " ".join(text.get_text() for text in figure.texts)


def _legend(figure: Any) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_the_newest_written_plane_is_shown_and_named() -> None:
    a = _grid("newest", (5, 3, 4), gs.Attr("v", "int32"))
    for t in (1, 3):
        a[t] = np.full((3, 4), t)
    figure: Any = a.plot()
    assert "t = 3" in _texts(figure) and (_image(figure).get_array() == 3).all()
    a.delete(box={"t": (2, 4)})
    assert "t = 1" in _texts(a.plot())
    a.delete(box={"t": (0, 4)})
    assert "t = 0" in _texts(a.plot()) and _legend(a.plot()) == ["unwritten: 12"]


def test_a_plane_is_chosen_by_label_date_and_position() -> None:
    days = np.arange("2026-02-27", "2026-03-04", dtype="M8[D]")
    a = _grid("chosen", (5, 3, 4), gs.Attr("v", "int32"), t=days)
    a[...] = np.broadcast_to(np.arange(5)[:, None, None], (5, 3, 4))
    for at, place in (("2026-02-28", 1), ("2026-03", 2), (np.datetime64("2026-03-03"), 4)):
        figure: Any = a.plot(at={"t": at})
        assert (_image(figure).get_array() == place).all() and str(days[place]) in _texts(figure)
    b = _grid("plain", (5, 3, 4), gs.Attr("v", "int32"))
    b[...] = np.broadcast_to(np.arange(5)[:, None, None], (5, 3, 4))
    assert (_image(b["v"].plot(at={"t": 2})).get_array() == 2).all()
    with pytest.raises(gs.InputError, match="drawn along an axis"):
        b.plot(at={"x": 1}, dims=("x", "y"))
    with pytest.raises(gs.BoundsError):
        b.plot(at={"t": 7})
    for several in ((1, 2), [1], slice(1, 2), np.array([1]), range(2), {1, 2}, {"t": 1}):
        with pytest.raises(gs.InputError, match="at= takes one place along dimension 't'"):
            b.plot(at={"t": several})
    with pytest.raises(gs.InputError, match="one place along dimension 't', found \\('2026-02-27', '2026-03-01'\\)"):
        a["v"].plot(at={"t": ("2026-02-27", "2026-03-01")})
    with pytest.raises(gs.SchemaError):
        b.plot(at={"z": 7})


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("single", [True, False])
def test_unwritten_cells_are_apart_from_null_and_nan(nullable: bool, single: bool) -> None:
    """A model paints the same cells: dense writes, single cells, deletions."""
    a = _grid("unwritten", (8, 9), gs.Attr("v", "float32", nullable=nullable))
    rng, model = np.random.default_rng(5), np.zeros((8, 9), bool)
    for step in range(9):
        (y0, y1), (x0, x1) = sorted(rng.integers(0, 8, 2)), sorted(rng.integers(0, 9, 2))
        box = {"y": (y0, y1), "x": (x0, x1)}
        if step % 3 == 2:
            a.delete(box=box)
            model[y0 : y1 + 1, x0 : x1 + 1] = False
        elif step % 3 == 1 and single:
            a.write_cells({"y": [y0, y1 + 0 if y1 > y0 else 7], "x": [x0, 8]}, {"v": [1.0, 2.0]}, dedup="last")
            model[y0, x0] = model[y1 if y1 > y0 else 7, 8] = True
        else:
            values = np.full((y1 - y0 + 1, x1 - x0 + 1), np.nan if step % 2 else 3.0, "f4")
            a.write(values, box=box)
            model[y0 : y1 + 1, x0 : x1 + 1] = True
        cells = _coloured(a.plot(), "unwritten")
        assert not (cells & model).any()
        if not single:
            assert (cells == ~model).all()
            values = np.ma.filled(a["v"][...], np.nan)
            assert (_coloured(a.plot(), "null or NaN" if nullable else "NaN") == (model & np.isnan(values))).all()
    a.consolidate()
    assert not (_coloured(a["v"].plot(), "unwritten") & model).any()


def test_north_is_up_whatever_the_order_of_latitudes() -> None:
    values = np.arange(12).reshape(4, 3)
    for name, lat, top in (("up", [50, 51, 52, 53], 3), ("down", [53, 52, 51, 50], 0)):
        a = gs.array(f"mem://pictures-{name}", values, dims=["row", "x"], coords={"row": lat})
        assert "first row at the top" in _texts(a.plot())
        a.dim("row").meta["units"] = "degrees_north"
        figure: Any = a.plot()
        bottom, upper = figure.axes[0].get_ylim()
        row = 0 if top == 0 else 3
        assert "north is up" in _texts(figure) and (_image(figure).get_array()[0] == values[row]).all()
        assert (upper > bottom) == (top == 3) and figure.axes[0].get_ylabel() == "row (degrees_north)"


@pytest.mark.parametrize(
    ("dtype", "values", "ends"),
    [
        ("float64", [[1.5, np.nan], [np.inf, -np.inf]], ("1.5", "1.5")),
        ("float64", [[-1.7e308, 1.7e308], [0, 1]], ("-1.7e+308", "1.7e+308")),
        ("float64", [[1e9, 1e9 + 1], [1e9, 1e9]], ("1000000000", "1000000001")),
        ("int64", [[-(2**63), 2**63 - 1], [0, 1]], (str(-(2**63)), str(2**63 - 1))),
        ("uint8", [[7, 7], [7, 7]], ("7", "7")),
        ("bool", [[True, False], [True, True]], ("false", "true")),
        ("datetime64[s]", [["2026-03-01", "2026-03-02"], ["NaT", "2026-03-05"]], ("2026-03-01", "2026-03-05")),
    ],
)
def test_colour_bars_begin_and_end_at_the_least_and_greatest_value(dtype: str, values: Any, ends: Any) -> None:
    a = _grid("ends", (2, 2), gs.Attr("v", dtype))
    a[...] = np.array(values, "M8[s]" if dtype.startswith("d") else dtype)
    figure: Any = a.plot()
    figure.canvas.draw()
    texts = [text.get_text() for text in figure.axes[1].get_yticklabels()]
    assert (texts[0], texts[-1]) == ends
    size = figure.axes[1].get_tightbbox()
    assert size.x1 <= figure.bbox.x1 and size.y1 <= figure.bbox.y1 and size.y0 >= 0


def test_infinite_values_have_the_colours_of_the_ends() -> None:
    a = _grid("inf", (2, 3), gs.Attr("v", "float64"))
    a[...] = [[np.inf, 1, 2], [-np.inf, 3, 2]]
    figure: Any = a.plot()
    assert _image(figure).get_array().tolist() == [[3, 1, 2], [1, 3, 2]]
    assert [text.split(",")[0] for text in _legend(figure)] == ["+inf: 1", "-inf: 1"]


def test_plain_coordinates_stand_in_the_middle_of_cells() -> None:
    dims = [gs.Dim("y", (-3, 0), 4), gs.Dim("day", ("2026-03-01", "2026-03-04"), 4, dtype="datetime64[D]")]
    a = gs.create("mem://pictures-middle", gs.Schema(dims, [gs.Attr("v", "int8")]), overwrite=True)
    figure: Any = a.plot(placement=True)
    figure.canvas.draw()
    axes = figure.axes[0]
    rows = {text.get_text(): tick for text, tick in zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)}
    assert rows["-3"] == -2.5 and rows["0"] == 0.5
    days = [text.get_text() for text in axes.get_xticklabels()]
    assert {"2026-03-01", "2026-03-04"} <= set(days) and axes.get_xticks()[days.index("2026-03-01")] % 1 == 0.5


def test_density_at_one_side_does_not_glow_at_the_other() -> None:
    dims = [gs.Dim("x", (0, 9999)), gs.Dim("y", (0, 9999))]
    a = gs.create("mem://pictures-side", gs.Schema(dims, [gs.Attr("v", "int8")], sparse=True), overwrite=True)
    a.write_cells({"x": np.zeros(100, int), "y": np.arange(100)}, {"v": np.ones(100, "i1")})
    figure: Any = a.plot(box={"x": (0, 9999), "y": (0, 9999)})
    light = figure.axes[0].get_images()[0].get_array()
    assert light[:, 0].any() and not light[:, -8:].any() and not light[-8:].any()


def test_planes_without_values_have_no_colour_bar() -> None:
    a = _grid("nan", (2, 3), gs.Attr("v", "float32", nullable=True))
    a[...] = np.full((2, 3), np.nan, "f4")
    figure: Any = a.plot()
    assert len(figure.axes) == 1 and _legend(figure) == ["null or NaN: 6"]


def test_what_has_no_colours_is_refused(tmp_path: Path) -> None:
    a = _grid("text", (2, 3), gs.Attr("v", "string"))
    with pytest.raises(gs.UnsupportedError, match="numbers, booleans, times"):
        a.plot()
    with pytest.raises(gs.InputError, match=r"\.png, \.svg"):
        a.plot(tmp_path / "a.docx")
    with pytest.raises(gs.InputError, match="theme"):
        a.plot(theme="blue")
    b = _grid("categories", (1, 3), gs.Attr("v", "string", categories=["a", "b", "c"]))
    b[...] = np.array([["a", "c", "b"]], object)
    figure: Any = b.plot(tmp_path / "b.svg") and b.plot()
    assert [text.get_text() for text in figure.axes[1].get_yticklabels()] == ["a", "b", "c"]


@pytest.mark.parametrize("x", [[0.0, 0.0], [1.0, np.nextafter(1.0, 2)], [1e300, 1e300], [-5e-324, 5e-324]])
def test_points_within_one_float_are_drawn(x: list[float], tmp_path: Path) -> None:
    dims = [gs.Dim("p", (-1e301, 1e301), dtype="float64"), gs.Dim("q", (-1e301, 1e301), dtype="float64")]
    a = gs.create("mem://pictures-points", gs.Schema(dims, [gs.Attr("v", "int8")], sparse=True, duplicates=True))
    assert a.plot(tmp_path / "empty.png", box={"p": (0, 1), "q": (0, 1)}) == tmp_path / "empty.png"
    a.write_cells({"p": x, "q": x}, {"v": [1, 2]})
    a.plot(tmp_path / "a.png")
    figure: Any = a.read().plot(theme="light")
    assert "at most" in figure.axes[1].get_ylabel()
    gs.delete("mem://pictures-points")


@pytest.mark.parametrize("size", [3, 7, 86, 200])
def test_a_full_domain_of_integers_is_equally_dense(size: int) -> None:
    dims = [gs.Dim("p", (0, size - 1)), gs.Dim("q", (0, 4))]
    a = gs.create("mem://pictures-full", gs.Schema(dims, [gs.Attr("v", "int8")], sparse=True), overwrite=True)
    p, q = (part.ravel() for part in np.mgrid[0:size, 0:5])
    a.write_cells({"p": p, "q": q}, {"v": np.zeros(p.size, "i1")})
    found = gs.plot.density(a, ("p", "q"), gs.plot._box(a, None), (size, 5))
    assert (found == 1).all() and found.shape == (size, 5)


def test_results_are_drawn_as_what_they_are(tmp_path: Path) -> None:
    a = _grid("results", (3, 4, 5), gs.Attr("v", "int32"))
    a[...] = np.arange(60).reshape(3, 4, 5)
    figure: Any = a.sel(t=1).plot()
    assert (_image(figure).get_array() == np.arange(20, 40).reshape(4, 5)).all() and "t = 1" in _texts(figure)
    (line,) = a.sel(t=1, y=2).plot().axes[0].get_lines()
    assert list(line.get_ydata()) == [30, 31, 32, 33, 34]
    with pytest.raises(gs.InputError, match="two sides"):
        a.read().plot()
    found = a.aggregate({"n": "count(*)"}, by=["t"])
    assert found.plot(tmp_path / "n.png", keys=["t"]) == tmp_path / "n.png"
    with pytest.raises(gs.InputError, match="keys="):
        found.plot()
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_pictures_are_as_the_kept_ones(kind: str, theme: str) -> None:
    image = pytest.importorskip("matplotlib.image")
    if kind == "dense":
        a = _grid("kept", (2, 20, 30), gs.Attr("v", "float32", nullable=True), dims="tyx")
        a[0] = np.add.outer(np.arange(20), np.arange(30)).astype("f4")
        a.delete(box={"t": (0, 0), "y": (3, 8), "x": (5, 12)})
        a[0, 12:16, 18:26] = np.nan
    else:
        dims = [gs.Dim("lon", (0, 99)), gs.Dim("lat", (0, 59))]
        a = gs.create("mem://pictures-kept", gs.Schema(dims, [gs.Attr("v", "int8")], sparse=True), overwrite=True)
        x, y = (part.ravel() for part in np.mgrid[20:50, 10:40])
        x, y = np.append(x, [5, 90]), np.append(y, [55, 2])
        a.write_cells({"lon": x, "lat": y}, {"v": np.ones(x.size, "i1")})
    found = small(a.plot(theme=theme, title="kept"))
    path = KEPT / f"{kind}-{theme}.png"
    if os.environ.get("GRIDSTONE_REWRITE_PICTURES"):
        KEPT.mkdir(exist_ok=True)
        image.imsave(path, np.round(found).astype(np.uint8))
    kept = (image.imread(path)[..., :3] * 255).round()
    assert kept.shape == found.shape
    assert np.abs(kept - found).mean() < 4


def test_the_command_line_draws_the_plane_that_is_asked_for(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from gridstone.cli.drawing import plot

    days = np.arange("2026-02-27", "2026-03-04", dtype="M8[D]")
    uri, out = str(tmp_path / "a.gs"), tmp_path / "a.png"
    dims = [gs.Dim("day", (0, 4), 1, labels=days), gs.Dim("y", (0, 2), 3), gs.Dim("x", (0, 3), 4)]
    gs.create(uri, gs.Schema(dims, [gs.Attr("v", "int32")]))[...] = np.arange(60).reshape(5, 3, 4)

    def drawn(*words: str, target: Path = out) -> tuple[int, str]:
        done = CliRunner().invoke(plot, [uri, str(target), *words])
        assert done.exception is None or isinstance(done.exception, SystemExit | gs.GridstoneError), done.exception
        return done.exit_code, f"{done.output} {done.exception}"

    for words, place in (([], 4), (["--at", "day=2026-03"], 2), (["--at", "day=2026-02-27", "--theme", "light"], 0)):
        assert drawn(*words)[0] == 0
        for other in (place, place - 1):
            same = tmp_path / "b.png"
            gs.open(uri).plot(same, at={"day": days[other]}, theme="light" if "light" in words else "dark")
            assert (out.read_bytes() == same.read_bytes()) == (other == place)
    assert drawn("--at", "x=1", "--dims", "day,y")[0] == 0
    out.unlink()
    for words, told in (
        (["--at", "day=2027"], "no '2027'; the nearest is 2026-03-03; choose another plane with at="),
        (["--at", "hour=1"], "hour"),
        (["--at", "x=1", "--at", "y=1"], "two dimensions"),
        (["--dims", "x,y", "--at", "x=1"], "drawn along an axis"),
        (["--dims", "day,y", "--at", "x=one"], "by a number"),
        (["--theme", "blue"], "blue"),
    ):
        code, text = drawn(*words)
        assert code != 0 and told in text, (words, text)
    code, text = drawn(target=tmp_path / "a.docx")
    assert code != 0 and ".svg" in text
    assert not out.exists() and not (tmp_path / "a.docx").exists()
