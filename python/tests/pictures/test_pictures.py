"""Pictures: the plane that is shown, cells without a value, which way is up, colour bars, odd values, kept images."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs

pytest.importorskip("matplotlib")

KEPT = Path(__file__).parent / "kept"


def _grid(name: str, shape: tuple[int, ...], attr: gs.Attr, dims: str = "tyx", **labels: Any) -> gs.Array:
    made = [gs.Dim(d, (0, n - 1), n, labels=labels.get(d)) for d, n in zip(dims[-len(shape) :], shape, strict=True)]
    return gs.create(f"mem://pictures-{name}", gs.Schema(made, [attr]), overwrite=True)


def _image(figure: Any) -> Any:
    """The image of values: the one that the colour bar is of."""
    return min(figure.axes[0].get_images(), key=lambda one: one.get_zorder())


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
    with pytest.raises(gs.SchemaError):
        b.plot(at={"z": 7})


@pytest.mark.parametrize("nullable", [True, False])
def test_unwritten_cells_are_apart_from_null_and_nan(nullable: bool) -> None:
    """A model paints the same cells: dense writes, single cells, deletions."""
    a = _grid(f"unwritten{nullable}", (8, 9), gs.Attr("v", "float32", nullable=nullable))
    rng, model = np.random.default_rng(5), np.zeros((8, 9), bool)
    for step in range(12):
        (y0, y1), (x0, x1) = sorted(rng.integers(0, 8, 2)), sorted(rng.integers(0, 9, 2))
        box = {"y": (y0, y1), "x": (x0, x1)}
        if step % 3 == 2:
            a.delete(box=box)
            model[y0 : y1 + 1, x0 : x1 + 1] = False
        elif step % 3 == 1:
            a.write_cells({"y": [y0, y1 + 0 if y1 > y0 else 7], "x": [x0, 8]}, {"v": [1.0, 2.0]}, dedup="last")
            model[y0, x0] = model[y1 if y1 > y0 else 7, 8] = True
        else:
            values = np.full((y1 - y0 + 1, x1 - x0 + 1), np.nan if step % 2 else 3.0, "f4")
            a.write(values, box=box)
            model[y0 : y1 + 1, x0 : x1 + 1] = True
        told = [text for text in _legend(a.plot()) if text.startswith("unwritten")]
        count = int(told[0].split(": ")[1]) if told else 0
        # A cell in the box of single cells that reads as an unwritten one is not called so.
        assert count <= (~model).sum()
    a.consolidate()
    assert a["v"].plot() is not None


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


def test_results_are_drawn_as_what_they_are(tmp_path: Path) -> None:
    a = _grid("results", (3, 4, 5), gs.Attr("v", "int32"))
    a[...] = np.arange(60).reshape(3, 4, 5)
    figure: Any = a.sel(t=1).plot()
    assert (_image(figure).get_array() == np.arange(20, 40).reshape(4, 5)).all()
    (line,) = a.sel(t=1, y=2).plot().axes[0].get_lines()
    assert list(line.get_ydata()) == [30, 31, 32, 33, 34]
    with pytest.raises(gs.InputError, match="two sides"):
        a.read().plot()
    found = a.aggregate({"n": "count(*)"}, by=["t"])
    assert found.plot(tmp_path / "n.png", keys=["t"]) == tmp_path / "n.png"
    with pytest.raises(gs.InputError, match="keys="):
        found.plot()
    assert figure._repr_png_().startswith(b"\x89PNG")


def _small(figure: Any) -> Any:
    """A figure as a few blocks of colour, in which letters of another font do not count."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(48)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].astype(float)
    rows, columns = (size // 12 * 12 for size in pixels.shape[:2])
    blocks = pixels[:rows, :columns].reshape(rows // 12, 12, columns // 12, 12, 3)
    return blocks.mean(axis=(1, 3))


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
    small = _small(a.plot(theme=theme, title="kept"))
    path = KEPT / f"{kind}-{theme}.png"
    if os.environ.get("GRIDSTONE_REWRITE_PICTURES"):
        KEPT.mkdir(exist_ok=True)
        image.imsave(path, np.round(small).astype(np.uint8))
    kept = (image.imread(path)[..., :3] * 255).round()
    assert kept.shape == small.shape
    assert np.abs(kept - small).mean() < 4
