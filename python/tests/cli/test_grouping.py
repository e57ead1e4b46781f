"""The command `aggregate`: forms, keys, plans, charts, exit codes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs
from gridstone.cli.grouping import aggregates_of, key_of


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an array of 120 cells over three hours."""
    monkeypatch.chdir(tmp_path)
    attrs = [
        gs.Attr("sog", "float64", nullable=True),
        gs.Attr("kind", "string", categories=["cargo", "tug"]),
        gs.Attr("t", "datetime64[s]"),
    ]
    schema = gs.Schema([gs.Dim("lon", (0.0, 10.0), dtype="float64"), gs.Dim("lat", (0, 99))], attrs, sparse=True)
    a = gs.create("ais.gs", schema)
    n = np.arange(120)
    kinds = np.where(n % 3 == 0, "tug", "cargo").astype(object)
    times = np.datetime64("2024-05-01T00:00:00") + (n * 90).astype("timedelta64[s]")
    a.write_cells({"lon": n / 12, "lat": n % 100}, {"sog": n / 10, "kind": kinds, "t": times})
    a["sog"].meta["units"] = "kn"
    return tmp_path


def _rows(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_groups_as_table_json_and_csv(call) -> None:
    question = ("aggregate", "ais.gs", "n=count(*)", "max(sog)", "--by", "kind", "--order", "n desc")
    code, out, err = call(*question)
    assert (code, err) == (0, "") and out.index("cargo") < out.index("tug") and "max(sog)" in out
    code, out, _ = call(*question, "--json")
    assert _rows(out) == [{"kind": "cargo", "n": 80, "max(sog)": 11.9}, {"kind": "tug", "n": 40, "max(sog)": 11.7}]
    code, out, _ = call(*question, "--csv", "--limit", 1)
    assert out.splitlines() == ['"kind","n","max(sog)"', '"cargo",80,11.9']
    assert call(*question, "--csv", "--out", "o.csv")[0] == 0 and Path("o.csv").read_text().count("\n") == 3
    assert call(*question, "--out", "o.jsonl")[0] == 0 and len(_rows(Path("o.jsonl").read_text())) == 2


def test_without_keys_there_is_one_row(call) -> None:
    code, out, _ = call("aggregate", "ais.gs", "count(*)", "--json")
    assert code == 0 and _rows(out) == [{"count(*)": 120}]


def test_keys_conditions_and_boxes(call) -> None:
    code, out, _ = call("aggregate", "ais.gs", "n=count(*)", "--by", "lon=2.5", "--json")
    assert [(row["lon"], row["n"]) for row in _rows(out)] == [(0, 30), (2.5, 30), (5, 30), (7.5, 30)]
    code, out, _ = call("aggregate", "ais.gs", "n=count(*)", "--by", "t=1h", "--by", "kind", "--json")
    assert len(_rows(out)) == 6 and _rows(out)[0]["t"] == "2024-05-01T00:00:00"
    code, out, _ = call("aggregate", "ais.gs", "n=count(*)", "--by", "hour(t)", "--where", "kind = 'tug'", "--json")
    assert [row["n"] for row in _rows(out)] == [14, 13, 13]
    having = ("--having", "n > 20", "--box", "lat=0:49")
    code, out, _ = call("aggregate", "ais.gs", "n=count(*)", "--by", "kind", *having, "--json")
    assert [(row["kind"], row["n"]) for row in _rows(out)] == [("cargo", 47), ("tug", 23)]
    code, out, err = call("aggregate", "ais.gs", "n=count(*)", "--by", "lat", "--where", "sog > 99")
    assert code == 0 and "no rows" in err


def test_a_table_shows_so_many_rows(call) -> None:
    code, out, err = call("aggregate", "ais.gs", "n=count(*)", "--by", "sog")
    assert code == 0 and "the first 100 rows" in err
    code, out, err = call("aggregate", "ais.gs", "n=count(*)", "--by", "sog", "--limit", 110)
    assert code == 0 and err == "" and "10.9" in out and "11.9" not in out


def test_names_and_keys_of_texts() -> None:
    assert aggregates_of(["n=count(*)", "max( sog )", "two words = sum(x)", "sum(case(a = 1))"]) == {
        "n": "count(*)", "max( sog )": "max( sog )", "two words": "sum(x)", "sum(case(a = 1))": "sum(case(a = 1))",
    }  # fmt: skip
    assert [key_of(text) for text in ("kind", "lon=1.0", " lon=0.5 ", "t=1h", "t=D", "a == 1", "a >= 1")] == [
        "kind", {"lon": 1}, {"lon": 0.5}, {"t": "1h"}, {"t": "D"}, "a == 1", "a >= 1",
    ]  # fmt: skip
    with pytest.raises(gs.InputError, match="two columns"):
        aggregates_of(["n=count(*)", "n=sum(x)"])


def test_expressions_with_an_equals_sign_are_keys_as_they_are() -> None:
    for text in (
        "contains(s, '=')", "if(i=1, 2, 3)", "case when i = 1 then 2 end", '"x=y"', "s = 'a=1'", "i != 1", "a=b",
        "x * 2=10", "f(i)=1",
    ):  # fmt: skip
        assert key_of(text) == text
    known = ("x=y", "two words", "h", "a=1")
    assert [key_of(text, known) for text in ('"x=y"', '"x=y"=5', "x=y=5", "two words=5", "a=1", "i=h", "i=2h")] == [
        "x=y", {"x=y": 5}, {"x=y": 5}, {"two words": 5}, "a=1", "i=h", {"i": "2h"},
    ]  # fmt: skip
    # The sign may stand between spaces.
    assert [key_of(text, known) for text in ("i = 1", "i =1", "t= 1 h", '"x=y" = 5', "two words = 5", "i = h")] == [
        {"i": 1}, {"i": 1}, {"t": "1 h"}, {"x=y": 5}, {"two words": 5}, "i = h",
    ]  # fmt: skip


def test_groups_of_expressions_with_an_equals_sign(call) -> None:
    for by in ("contains(kind, '=')", "if(lat=1, 2, 3)", "case when lat = 1 then 2 else 3 end", "if(lat = 1, 1, 0)"):
        code, out, err = call("aggregate", "ais.gs", "n=count(*)", "--by", by, "--json")
        assert code == 0, err
        assert sorted(row["n"] for row in _rows(out)) == ([120] if by.startswith("contains") else [2, 118]), by
    bins = [call("aggregate", "ais.gs", "n=count(*)", "--by", by, "--json") for by in ("lat=2.5", "lat = 2.5")]
    assert bins[0][0] == 0 and _rows(bins[0][1]) == _rows(bins[1][1])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["ais.gs", "max(sgo)"], 2, "sgo"),
        (["ais.gs", "n=count(*)", "--by", "sgo"], 2, "sgo"),
        (["ais.gs", "n=count(*)", "--by", "sgo=1.5"], 2, "sgo"),
        (["ais.gs", "n=count(*)", "--where", "sgo > 1"], 2, "sgo"),
        (["ais.gs", "n=count(*)", "--box", "lno=1:2"], 2, "lno"),
        (["ais.gs", "n=count(*)", "--having", "m > 1"], 2, "m"),
        (["ais.gs", "n=count(*)", "--order", "m desc"], 2, "m"),
        (["ais.gs", "n=count(*)", "--by", "lon=0"], 2, "width"),
        (["ais.gs", "n=count(*)", "n=max(sog)"], 2, "two columns"),
        (["ais.gs"], 2, "AGGREGATE"),
        (["no.gs", "count(*)"], 4, "no.gs"),
        (["ais.gs", "count(*)", "--plot", "a.png", "--out", "a.csv"], 2, "exclude"),
        (["ais.gs", "count(*)", "--to", "a.gs", "--csv"], 2, "leave it out"),
        (["ais.gs", "count(*)", "--plot", "a.png"], 2, "key"),
        (["ais.gs", "max(sgo)", "--explain"], 2, "sgo"),
    ],
)
def test_exit_codes(call, arguments: list[str], code: int, message: str) -> None:
    found = call("aggregate", *arguments)
    assert found[0] == code and message in found[2], found


def test_errors_as_json(call) -> None:
    code, out, err = call("aggregate", "no.gs", "count(*)", "--json")
    assert code == 4 and out == "" and json.loads(err)["error"]["kind"] == "NotFound"


def test_into_an_array(call) -> None:
    question = ("aggregate", "ais.gs", "n=count(*)", "--by", "lat=10", "--to", "o.gs:/tens")
    code, out, _ = call(*question, "--json")
    assert code == 0 and json.loads(out)["path"] == "/tens"
    assert gs.open("o.gs", path="/tens").read()["n"].sum() == 120
    assert call(*question)[0] == 5


def test_plans(call) -> None:
    question = ("aggregate", "ais.gs", "top=max(sog)", "--by", "kind", "--where", "lon < 3 and sog > 1")
    code, out, _ = call(*question, "--explain")
    assert code == 0 and "AGGREGATE" in out and "at most" in out and "bytes_fetched" not in out
    code, out, _ = call(*question, "--analyze", "--json")
    scan = json.loads(out)["scans"][0]
    assert scan["stats"]["bytes_fetched"] >= 0 and scan["planned"]["cells"] == 120 and "lon < 3" in scan["where"]


def _drawn(axes: Any) -> float:
    """The sum of what bars, lines or the cells of a heat map show."""
    if axes.collections:
        return float(np.nansum(np.ma.filled(axes.collections[0].get_array(), np.nan)))
    if axes.get_lines():
        return float(sum(np.nansum(line.get_ydata()) for line in axes.get_lines()))
    lying = axes.get_xlabel() != ""
    return float(sum(bar.get_width() if lying else bar.get_height() for bar in axes.patches))


@pytest.mark.parametrize(
    "keys",
    [["kind"], ["lat"], ["t=1h"], ["lon=1.0"], ["sog"], ["lon=1.0", "lat=10"], ["t=30m", "kind"], ["kind", "lat=10"]],
)
def test_charts(call, keys: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from gridstone import chart

    figures: list[Any] = []
    saved = chart._saved
    monkeypatch.setattr(chart, "_saved", lambda figure, path: figures.append(figure) or saved(figure, path))
    by = [part for key in keys for part in ("--by", key)]
    code, out, err = call("aggregate", "ais.gs", "n=count(*)", "top=max(sog)", *by, "--plot", "c.png", "--json")
    assert code == 0, err
    assert json.loads(out)["picture"] == "c.png" and Path("c.png").read_bytes().startswith(b"\x89PNG")
    (figure,) = figures
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    shown = {text.get_text() for axes in figure.axes for text in (axes.xaxis.label, axes.yaxis.label)}
    assert {"n = count(*)", "top = max(sog) (kn)"} <= shown
    assert len(panels) == 2 and _drawn(panels[0]) == 120


def test_other_forms_of_charts(call) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    for name, start in (("c.svg", b"<?xml"), ("c.pdf", b"%PDF")):
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            assert call("aggregate", "ais.gs", "max(sog)", "--by", "kind", "--plot", name)[0] == 0
        assert Path(name).read_bytes().startswith(start)
    text = Path("c.svg").read_text()
    assert all(f">{word}</text>" in text for word in ("max(sog) (kn)", "kind", "cargo", "tug"))
    code, _, err = call("aggregate", "ais.gs", "max(sog)", "--by", "kind", "--plot", "no/c.png")
    assert code == 2 and "folder" in err
    code, _, err = call("aggregate", "ais.gs", "any_value(kind)", "--by", "lat", "--plot", "c.png")
    assert code == 1 and "number" in err


def test_a_missing_matplotlib_names_the_extra(call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    code, _, err = call("aggregate", "ais.gs", "count(*)", "--by", "kind", "--plot", "c.png")
    assert code == 1 and "gridstone[plot]" in err
    code, _, err = call("plot", "ais.gs", "c.png")
    assert code == 1 and "gridstone[plot]" in err
