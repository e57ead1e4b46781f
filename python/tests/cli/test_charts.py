"""Charts of groups: what is drawn of each, by value and in its place."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs

matplotlib = pytest.importorskip("matplotlib")

_LONG = "the same beginning of a long name, "


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that were drawn."""
    from gridstone import chart

    figures: list[Any] = []
    saved = chart._saved
    monkeypatch.setattr(chart, "_saved", lambda figure, path: figures.append(figure) or saved(figure, path))
    return figures


def _array(folder: Path, **columns: Any) -> gs.Array:
    """A cell for each row of the columns, which may be masked."""
    attrs = []
    for name, values in columns.items():
        plain = np.ma.getdata(values)
        dtype = "string" if plain.dtype.kind == "O" else str(plain.dtype)
        attrs.append(gs.Attr(name, dtype, nullable=np.ma.isMaskedArray(values)))
    count = len(next(iter(columns.values())))
    array = gs.create(folder / "a.gs", gs.Schema([gs.Dim("x", (0, 999_999))], attrs, sparse=True))
    array.write_cells({"x": np.arange(count)}, columns)
    return array


def _hours(*hours: int) -> Any:
    return np.datetime64("2024-05-01T00:00:00") + np.array(hours).astype("timedelta64[h]")


def _mesh(figure: Any) -> tuple[Any, Any, Any]:
    """The cells of a heat map, and the edges of its columns and rows."""
    (mesh,) = figure.axes[0].collections
    edges = mesh.get_coordinates()
    return np.ma.filled(mesh.get_array(), np.nan), edges[0, :, 0], edges[:, 0, 1]


def _columns(figure: Any) -> list[tuple[float, float]]:
    """Where a heat map has something along the axis below: begin and end of each column."""
    cells, right, _ = _mesh(figure)
    return [(right[place], right[place + 1]) for place in np.flatnonzero(~np.isnan(cells).all(axis=0))]


def test_names_that_begin_alike_are_a_line_each(tmp_path: Path, drawn: list[Any]) -> None:
    names = np.array([_LONG + "east", _LONG + "west"] * 3, object)
    array = _array(tmp_path, t=_hours(0, 0, 1, 1, 2, 2), name=names)
    found = array.aggregate({"n": "count(*)"}, by=[{"t": "1h"}, "name"])
    gs.chart.chart(found, tmp_path / "c.png", keys=["t", "name"], widths={"t": "1h"})
    lines = drawn[0].axes[0].get_lines()
    assert [line.get_ydata().tolist() for line in lines] == [[1, 1, 1], [1, 1, 1]]
    labels = [line.get_label() for line in lines]
    assert len(set(labels)) == 2 and all(len(label) <= 24 for label in labels)


def test_names_that_begin_alike_are_a_column_each(tmp_path: Path, drawn: list[Any]) -> None:
    names = np.array([_LONG + "east", _LONG + "west", _LONG + "west"], object)
    array = _array(tmp_path, name=names, other=np.array(["p", "p", "p"], object))
    found = array.aggregate({"n": "count(*)"}, by=["name", "other"])
    gs.chart.chart(found, tmp_path / "c.png", keys=["name", "other"])
    cells, _, _ = _mesh(drawn[0])
    assert cells.tolist() == [[1, 2]]
    assert len({text.get_text() for text in drawn[0].axes[0].get_xticklabels()}) == 2


def test_null_is_no_text(tmp_path: Path, drawn: list[Any]) -> None:
    names = np.ma.MaskedArray(np.array(["null", "null", "z", "z"], object), mask=[False, False, False, True])
    array = _array(tmp_path, t=_hours(0, 1, 0, 0), name=names, k=np.array(["p", "p", "p", "p"], object))
    found = array.aggregate({"n": "count(*)"}, by=[{"t": "1h"}, "name"])
    gs.chart.chart(found, tmp_path / "c.png", keys=["t", "name"], widths={"t": "1h"})
    assert sorted(line.get_label() for line in drawn[0].axes[0].get_lines()) == ['"null"', "null", "z"]
    found = array.aggregate({"n": "count(*)"}, by=["name", "k"])
    gs.chart.chart(found, tmp_path / "c.png", keys=["name", "k"])
    assert _mesh(drawn[1])[0].tolist() == [[2, 1, 1]]


def test_names_are_written_as_they_are(tmp_path: Path, drawn: list[Any]) -> None:
    array = _array(tmp_path, t=_hours(0, 0), name=np.array(["$a$", "_hidden"], object))
    found = array.aggregate({"n": "count(*)"}, by=[{"t": "1h"}, "name"])
    gs.chart.chart(found, tmp_path / "c.png", keys=["t", "name"], widths={"t": "1h"})
    assert [text.get_text() for text in drawn[0].axes[0].get_legend().get_texts()] == [r"\$a\$", " _hidden"]


@pytest.mark.parametrize(
    ("hours", "width", "ends"),
    [
        ((0, 1, 10), "1h", [(0, 1), (1, 2), (10, 11)]),
        ((0, 10, 30), "1h", [(0, 1), (10, 11), (30, 31)]),
        ((0, 4, 5), "2h", [(0, 2), (4, 6)]),
        ((0, 24 * 40), "1M", [(0, 24 * 31), (24 * 31, 24 * 61)]),
        ((0, 24 * 70), "1M", [(0, 24 * 31), (24 * 61, 24 * 92)]),
        ((0, 1, 10), None, [(0, 1), (1, 2), (10, 11)]),
    ],
)
def test_hours_without_a_group_are_gaps_in_a_heat_map(
    tmp_path: Path, drawn: list[Any], hours: tuple[int, ...], width: str | None, ends: list[tuple[int, int]]
) -> None:
    array = _array(tmp_path, t=_hours(*hours), lat=np.zeros(len(hours)))
    found = array.aggregate({"n": "count(*)"}, by=["t" if width is None else {"t": width}, {"lat": 0.5}])
    widths = {"lat": 0.5} if width is None else {"t": width, "lat": 0.5}
    gs.chart.chart(found, tmp_path / "c.png", keys=["t", "lat"], widths=widths)
    begin = matplotlib.dates.date2num(_hours(0)[0])
    assert np.allclose((np.array(_columns(drawn[0])) - begin) * 24, ends, atol=1e-4)


@pytest.mark.parametrize("width", [0.5, None])
def test_numbers_without_a_group_are_gaps_in_a_heat_map(tmp_path: Path, drawn: list[Any], width: float | None) -> None:
    lon = np.array([0.0, 0.5, 4.0, 9_000.0])
    array = _array(tmp_path, lon=lon, lat=np.zeros(4))
    found = array.aggregate({"n": "count(*)"}, by=["lon" if width is None else {"lon": width}, {"lat": 0.5}])
    widths = {"lat": 0.5} if width is None else {"lon": width, "lat": 0.5}
    gs.chart.chart(found, tmp_path / "c.png", keys=["lon", "lat"], widths=widths)
    cells, right, _ = _mesh(drawn[0])
    # A thousandth of the axis can be seen: no column is narrower, unless the next one begins.
    assert np.allclose(_columns(drawn[0]), [(0, 0.5), (0.5, 4), (4, 13), (9_000, 9_009)])
    assert len(right) == 6 and np.nansum(cells) == 4


def test_bins_that_touch_have_no_gap_between_them(tmp_path: Path, drawn: list[Any]) -> None:
    array = _array(tmp_path, lon=np.arange(1000) / 100, lat=np.zeros(1000))
    found = array.aggregate({"n": "count(*)"}, by=[{"lon": 0.1}, {"lat": 0.5}])
    gs.chart.chart(found, tmp_path / "c.png", keys=["lon", "lat"], widths={"lon": 0.1, "lat": 0.5})
    cells, right, top = _mesh(drawn[0])
    assert cells.shape == (1, len(found)) and not np.isnan(cells).any()
    assert np.allclose(np.diff(right), 0.1) and top.tolist() == [0, 0.5]


def test_the_least_group_of_a_heat_map_is_no_gap(tmp_path: Path, drawn: list[Any]) -> None:
    array = _array(tmp_path, t=_hours(0, 1, 1), lat=np.zeros(3))
    found = array.aggregate({"n": "count(*)"}, by=[{"t": "1h"}, {"lat": 0.5}])
    gs.chart.chart(found, tmp_path / "c.png", keys=["t", "lat"], widths={"t": "1h", "lat": 0.5})
    (mesh,) = drawn[0].axes[0].collections
    paper = matplotlib.colors.to_rgb(drawn[0].axes[0].get_facecolor())
    assert np.abs(np.array(mesh.cmap(mesh.norm(1))[:3]) - paper).max() > 0.2


def test_a_line_has_a_gap_where_an_hour_has_no_group(tmp_path: Path, drawn: list[Any]) -> None:
    array = _array(tmp_path, t=_hours(0, 2, 4, 5))
    found = array.aggregate({"n": "count(*)"}, by={"t": "1h"})
    gs.chart.chart(found, tmp_path / "c.png", keys=["t"], widths={"t": "1h"})
    (line,) = drawn[0].axes[0].get_lines()
    assert np.isnan(line.get_ydata()).tolist() == [False, True, False, True, False, False]
    assert line.get_markevery() == [0, 2, 4, 5]


def test_hours_alone_are_seen_beside_a_long_line(tmp_path: Path, drawn: list[Any]) -> None:
    array = _array(tmp_path, t=_hours(*range(70), 80, 90))
    found = array.aggregate({"n": "count(*)"}, by={"t": "1h"})
    gs.chart.chart(found, tmp_path / "c.png", keys=["t"], widths={"t": "1h"})
    (line,) = drawn[0].axes[0].get_lines()
    assert line.get_markevery() == [71, 73] and np.isnan(line.get_ydata()).sum() == 2


def test_groups_without_a_place_are_nothing_to_draw(tmp_path: Path) -> None:
    nothing = np.ma.MaskedArray(np.zeros(2), mask=True)
    array = _array(tmp_path, lon=nothing, lat=np.zeros(2))
    found = array.aggregate({"n": "count(*)"}, by=["lon", "lat"])
    with pytest.raises(gs.InputError, match="nothing to draw"):
        gs.chart.chart(found, tmp_path / "c.png", keys=["lon", "lat"])
