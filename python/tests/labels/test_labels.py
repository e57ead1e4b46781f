"""Dimensions of dense arrays have labels, which belong to a version as cells do."""

import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gridstone as gs
from gridstone import cli
from gridstone.errors import InputError, SchemaError


def line(name: str, labels: Any, **options: Any) -> gs.Array:
    """An array of one dimension with these labels."""
    count = 4 if isinstance(labels, tuple) else len(labels)
    schema = gs.Schema([gs.Dim("x", (0, count - 1), labels=labels, **options)], [gs.Attr("v", "int64")])
    return gs.create(f"mem://labels-{name}", schema)


STORED = [
    ("floats", [60.0, 50.0, 40.0], "from 60.0 in steps of -10.0"),
    ("tenths", np.arange(5) * 0.1, "from 0.0 in steps of 0.1"),
    ("narrow", np.linspace(-89.5, 89.5, 180, dtype="float32"), "from -89.5 in steps of 1.0"),
    ("integers", np.array([7, 9, 11], "uint8"), "from 7 in steps of 2"),
    ("days", np.arange("2026-03-01", "2026-03-05", dtype="datetime64[D]"), "from 2026-03-01 in steps of 1 days"),
    ("hours", pd.date_range("2026-03-01", periods=4, freq="h").to_numpy("datetime64[s]"), "in steps of 3600 seconds"),
    ("spans", np.array([0, 5, 10], "timedelta64[m]"), "from 0 minutes in steps of 5 minutes"),
    ("years", np.array([1850, 1950], "datetime64[100Y]"), "in steps of 1 centuries"),
    ("uneven", [1.0, 2.5, 3.0], "in a list"),
    ("texts", ["north", "south", "äst"], "in a list"),
    ("falling", np.array([3, 2, 1], "uint16"), "in a list"),
    ("months", np.array(["2026-01-31", "2026-02-28", "2026-03-31"], "datetime64[D]"), "in a list"),
    ("same", [5, 5, 5], "in a list"),
    ("one", [5], "in a list"),
]


@pytest.mark.parametrize(("name", "labels", "stored"), STORED, ids=[name for name, *_ in STORED])
def test_labels_are_stored_as_steps_where_they_are_regular_and_read_exactly(
    name: str, labels: Any, stored: str
) -> None:
    a = line(f"stored-{name}", labels)
    found, given = a.dim("x").labels, np.asarray(labels)
    assert found is not None and np.array_equal(found, given) and found.dtype.kind == given.dtype.kind.replace("U", "O")
    text = a.schema.dims[0]._labels_text
    assert "steps" in text if stored.endswith("centuries") else stored in text
    assert text in repr(a) and ("labels" in a._repr_html_())
    again = gs.open(a.uri).dim("x").labels
    assert again is not None and again.dtype == found.dtype and np.array_equal(again, found)


def test_labels_come_from_what_libraries_have() -> None:
    days = pd.date_range("2026-03-01", periods=3, tz="Europe/Berlin")
    for number, (given, wanted) in enumerate(
        [
            (days, np.array(["2026-02-28T23", "2026-03-01T23", "2026-03-02T23"], "datetime64[h]")),
            (pd.Series(days), np.array(["2026-02-28T23", "2026-03-01T23", "2026-03-02T23"], "datetime64[h]")),
            (pd.Index(["a", "b"]), np.array(["a", "b"], object)),
            (pd.Series([1.5, 2.5, 7]), np.array([1.5, 2.5, 7])),
            (pa.array([3, 1, 2]), np.array([3, 1, 2])),
            ([dt.date(2026, 3, 1), dt.date(2026, 3, 3)], np.array(["2026-03-01", "2026-03-03"], "datetime64[D]")),
            (
                [dt.datetime(2026, 3, 1, 12), dt.datetime(2026, 3, 9)],
                np.array(["2026-03-01T12", "2026-03-09"], "M8[us]"),
            ),
            (range(3), np.arange(3)),
            (np.array([1, 2, 4], ">i4"), np.array([1, 2, 4], "int32")),
            (np.array([0.5, 1.5], "float16"), np.array([0.5, 1.5], "float32")),
            (pd.Categorical(["a", "b", "a"]), np.array(["a", "b", "a"], object)),
        ]
    ):
        assert np.array_equal(line(f"libraries-{number}", given).dim("x").labels, wanted), given  # type: ignore[arg-type]
    whole = gs.array("mem://labels-of-a-handle", np.array([4.0, 2.0, 7.0]))
    assert line("libraries-handle", whole).dim("x").labels.tolist() == [4.0, 2.0, 7.0]  # type: ignore[union-attr]


def test_a_start_and_a_step_are_labels() -> None:
    for name, pair, wanted in (
        ("numbers", (10, 5), [10, 15, 20, 25]),
        ("floats", (0.5, 0.25), [0.5, 0.75, 1.0, 1.25]),
        ("days", ("2026-03-01", np.timedelta64(1, "D")), ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]),
        (
            "hours",
            (np.datetime64("2026-03-01"), dt.timedelta(hours=12)),
            ["2026-03-01", "2026-03-01T12", "2026-03-02", "2026-03-02T12"],
        ),
        (
            "down",
            (pd.Timestamp("2026-03-04"), -pd.Timedelta("1D")),
            ["2026-03-04", "2026-03-03", "2026-03-02", "2026-03-01"],
        ),
    ):
        found = line(f"pairs-{name}", pair).dim("x").labels
        assert found is not None and np.array_equal(found, np.array(wanted, found.dtype)), (name, found)
    for wrong in (("a", "b"), (1, 0), (0.0, np.nan), (1, [2]), ("2026-03-01", 1.5)):
        with pytest.raises(SchemaError, match=r"start|step"):
            line("pairs-wrong", wrong)


def test_missing_labels_are_masked_nan_or_nat() -> None:
    for name, given, holes in (
        ("integers", np.ma.array([3, 9, 4], mask=[False, True, False]), [1]),
        ("texts", ["a", None, "c"], [1]),
        ("floats", [1.0, np.nan, 3.0], [1]),
        ("times", np.array(["2026-03-01", "NaT"], "datetime64[s]"), [1]),
    ):
        found = line(f"missing-{name}", given).dim("x").labels
        assert found is not None and [i for i, one in enumerate(found) if one is np.ma.masked or one != one] == holes


def test_what_cannot_be_labels_is_told() -> None:
    for wrong, said in (
        ([True, False], "whole numbers"),
        ([1, "a"], "all of one kind"),
        ([[1, 2], [3, 4]], "one list"),
        ([b"a", b"b"], "whole numbers"),
        ([1j, 2j], "whole numbers"),
        (b"ab", "one for each position"),
        ("/", "no path"),
    ):
        with pytest.raises(SchemaError, match=said):
            gs.Dim("x", (0, 1), labels=wrong)
    with pytest.raises(InputError, match="has 5 positions, and 2 labels"):
        gs.Dim("x", (0, 4), labels=[1, 2])
    for dtype in ("string", "float64"):
        with pytest.raises(SchemaError, match="labels are of positions"):
            gs.Dim("x", None if dtype == "string" else (0.0, 1.0), dtype=dtype, labels=[1, 2])
    with pytest.raises(SchemaError, match="sparse one have coordinates"):
        gs.Schema([gs.Dim("x", (0, 1), labels=[1, 2])], [gs.Attr("v", "int8")], sparse=True)
    sparse = gs.create("mem://labels-sparse", gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("v", "int8")], sparse=True))
    with pytest.raises(SchemaError, match="sparse one have coordinates"):
        sparse.alter(labels={"x": [1, 2]})


def test_labels_are_no_part_of_what_makes_schemas_equal() -> None:
    with_labels = gs.Schema([gs.Dim("x", (0, 2), labels=["a", "b", "c"])], [gs.Attr("v", "int8")])
    without = gs.Schema([gs.Dim("x", (0, 2))], [gs.Attr("v", "int8")])
    assert with_labels == without and hash(with_labels) == hash(without) and "labels=<3 of string>" in repr(with_labels)
    again = pickle.loads(pickle.dumps(with_labels))
    assert (
        again.dims[0].labels.tolist() == ["a", "b", "c"] and pickle.loads(pickle.dumps(again.dims[0])).labels[2] == "c"
    )
    a = gs.create("mem://labels-equal", again)
    assert a.schema == without and a.dim("x").labels.tolist() == ["a", "b", "c"]  # type: ignore[union-attr]


def test_an_array_with_labels_values_and_metadata_is_one_commit(tmp_path: Path) -> None:
    a = gs.array(
        tmp_path / "one.gs", np.arange(6).reshape(2, 3), dims=["y", "x"], coords={"x": ["a", "b", "c"], "y": [0.5, 1.0]}
    )
    assert [len(version.operations) > 1 for version in a.history()] == [True]
    assert (a.dims, a.mode, a.sel(y=1.0, x="b")["value"]) == (("y", "x"), "r+", 4)
    # At the root of a store, which is made for it, in a group of one that is there, and in the place of another array.
    group = gs.group(tmp_path / "many.gs", mode="a")
    before = group.refreshed().version
    c = gs.array(tmp_path / "many.gs", [1, 2], coords=[["p", "q"]], path="/deep/c", name="n")
    assert c.version == before + 1 and c.path == "/deep/c" and c.sel(d0="q")["n"] == 2
    with pytest.raises(gs.ExistsError):
        gs.array(tmp_path / "many.gs", [1, 2], coords=[["p", "q"]], path="/deep/c")
    d = gs.array(tmp_path / "many.gs", [1, 2, 3], coords=[["p", "q", "r"]], path="/deep/c", overwrite=True)
    assert d.version == before + 2 and d.shape == (3,)
    e = group.create("e", gs.Schema([gs.Dim("x", (0, 1), labels=[5, 7])], [gs.Attr("v", "int8")]))
    assert e.version == before + 3 and e.mode == "r+" and e.dim("x").labels.tolist() == [5, 7]  # type: ignore[union-attr]
    assert not gs.verify(tmp_path / "many.gs").damage and not gs.verify(tmp_path / "one.gs").damage


def test_an_array_that_could_not_be_made_leaves_no_store(tmp_path: Path) -> None:
    with pytest.raises(gs.GridstoneError):
        gs.array(tmp_path / "none.gs", np.array([1, object()], object), coords=[["a", "b"]])
    with pytest.raises(InputError, match="2 positions, and 3 labels"):
        gs.array(tmp_path / "none.gs", [1, 2], coords=[["a", "b", "c"]])
    wrong = gs.Schema([gs.Dim("x", (0, 1), labels=[1, 5])], [gs.Attr("v", "int8")])
    with pytest.raises(ZeroDivisionError):
        from gridstone.context.settings import default
        from gridstone.stores.at_once import create_at_once

        create_at_once(str(tmp_path / "none.gs"), wrong, "/", False, default(), lambda a: 1 // 0)
    assert not gs.exists(tmp_path / "none.gs")


def test_names_and_labels_beside_an_array_are_checked() -> None:
    for options, said in (
        ({"dims": ["x"]}, "names each of the 2"),
        ({"dims": ["x", "x"]}, "one name"),
        ({"coords": {"z": [1, 2]}}, "labels of 'z'; the dimensions are 'd0', 'd1'"),
        ({"coords": [[1, 2]]}, "for each of 2"),
        ({"coords": {"d0": [1, 2, 3]}}, "has 2 positions, and 3"),
    ):
        with pytest.raises(InputError, match=said):
            gs.array("mem://labels-beside", np.zeros((2, 2)), **options)  # type: ignore[arg-type]


def test_a_user_sets_and_takes_away_labels_and_versions_keep_theirs() -> None:
    a = gs.array("mem://labels-alter", np.arange(4))
    bare = a.version
    listed = a.alter(labels={"d0": ["a", "b", "c", "d"]}, message="names")
    stepped = a.alter(labels={"d0": [10, 20, 30, 40]})
    again = a.alter(labels={"d0": ["p", "q", "r", "s"]}, rename={"d0": "x"})
    gone = a.alter(labels={"x": None})
    assert (listed, gone) == (bare + 1, bare + 4) and a.dim("x").labels is None
    labels = {version: a.at(version=version).schema.dims[0].name for version in (bare, listed, stepped, again, gone)}
    found = {version: a.at(version=version).dim(name).labels for version, name in labels.items()}
    assert [None if f is None else f.tolist() for f in found.values()] == [
        None, ["a", "b", "c", "d"], [10, 20, 30, 40], ["p", "q", "r", "s"], None
    ]  # fmt: skip
    assert a.alter(labels={"x": None}) == gone, "nothing changes"
    # What is not used any more is not there any more.
    assert a.native.id and not gs.verify(a.uri).damage
    with pytest.raises(InputError, match="has 4 positions, and 1 labels"):
        a.alter(labels={"x": ["a"]})
    with pytest.raises(SchemaError, match="no dimension 'y'"):
        a.alter(labels={"y": ["a"]})


def test_steps_count_from_the_origin_wherever_the_domain_reaches() -> None:
    schema = gs.Schema([gs.Dim("x", (10, 13), tile=2)], [gs.Attr("v", "int64")])
    a = gs.create("mem://labels-origin", schema)
    a.alter(labels={"x": [0.5, 1.0, 1.5, 2.0]})
    a.resize(x=(4, 15))
    assert a.dim("x").labels.tolist() == [-2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3]  # type: ignore[union-attr]
    a.alter(labels={"x": (100, 10)})
    assert a.dim("x").labels.tolist() == list(range(100, 220, 10)) and a.schema.dims[0].tile == 2  # type: ignore[union-attr]
    whole = gs.create("mem://labels-origin-whole", gs.Schema([gs.Dim("x", (10, 13))], [gs.Attr("v", "int64")]))
    whole.alter(labels={"x": (100, 10)})
    whole.resize(x=(8, 13))
    assert whole.dim("x").labels.tolist() == [80, 90, 100, 110, 120, 130]  # type: ignore[union-attr]
    again = gs.open(whole.uri)
    assert again.sel(x=80)["v"] == 0 and again.dim("x").labels[0] == 80  # type: ignore[index]


def test_positions_that_a_resize_brings_have_no_labels_yet() -> None:
    a = line("resized", ["a", "b"])
    a.resize(x=(-1, 2))
    found = a.dim("x").labels
    assert found is not None and found.tolist() == [None, "a", "b", None]
    assert a.read().to_arrow()["x"].to_pylist() == [None, "a", "b", None]
    assert a.sel(x=slice("b", None))["v"].tolist() == [0, 0] and a.sel(x="a")["v"] == 0


def test_labels_that_the_type_does_not_hold_are_missing() -> None:
    schema = gs.Schema([gs.Dim("x", (0, 2), tile=1, labels=np.array([100, 110, 120], "int8"))], [gs.Attr("v", "int8")])
    a = gs.create("mem://labels-beyond", schema)
    a.resize(x=(0, 4))
    assert a.dim("x").labels.tolist() == [100, 110, 120, None, None]  # type: ignore[union-attr]


def test_labels_take_part_in_transactions() -> None:
    a = gs.array("mem://labels-transactions", np.arange(3))
    with pytest.raises(ZeroDivisionError), gs.transaction(a.uri) as tx:
        tx["/"].alter(labels={"d0": ["a", "b", "c"]})
        assert tx["/"].sel(d0="b")["value"] == 1
        raise ZeroDivisionError
    assert gs.open(a.uri).dim("d0").labels is None
    with gs.transaction(a.uri) as tx:
        tx["/"].alter(labels={"d0": ["a", "b", "c"]})
        tx["/"].append([7, 8], labels=["d", "e"])
        read = tx["/"].read()
    assert gs.open(a.uri).version == a.version + 1
    assert gs.open(a.uri).sel(d0=["e", "a"])["value"].tolist() == [8, 0]
    # What was read in a transaction has its labels when that is over.
    assert read.to_arrow()["d0"].to_pylist() == ["a", "b", "c", "d", "e"]


def test_a_transaction_creates_an_array_with_labels() -> None:
    uri = "mem://labels-created-within"
    gs.group(uri, mode="a")
    with gs.transaction(uri) as tx:
        made = tx.create("/g/a", gs.Schema([gs.Dim("x", (0, 1), labels=["p", "q"])], [gs.Attr("v", "int8")]))
        made[1] = 7
        assert made.sel(x="q")["v"] == 7
    found = gs.open(uri, path="/g/a")
    assert found.version == 2 and found.sel(x="q")["v"] == 7 and not gs.verify(uri).damage


def test_a_keyed_transaction_with_labels_is_done_once_and_other_labels_are_other_content() -> None:
    a = gs.array("mem://labels-keyed", np.arange(2))

    def labelled(labels: list[str]) -> int | None:
        with gs.transaction(a.uri, commit_key="labels") as tx:
            tx["/"].alter(labels={"d0": labels})
        return tx.version

    first = labelled(["a", "b"])
    gs.open(a.uri, mode="r+").meta["n"] = 1
    assert labelled(["a", "b"]) == first
    with pytest.raises(gs.ConflictError, match="key"):
        labelled(["a", "c"])


def test_of_two_that_label_a_dimension_at_once_one_is_a_conflict() -> None:
    a = gs.array("mem://labels-conflict", np.arange(2))
    other = gs.open(a.uri, mode="r+")
    a.alter(labels={"d0": ["a", "b"]})
    with pytest.raises(gs.ConflictError, match="schema"):
        other.alter(labels={"d0": ["c", "d"]})
    other.refresh()
    other.alter(labels={"d0": ["c", "d"]})
    assert gs.open(a.uri).dim("d0").labels.tolist() == ["c", "d"]  # type: ignore[union-attr]


def test_a_copy_of_an_array_has_its_labels(tmp_path: Path) -> None:
    a = line("copied", ["a", "b", "c"])
    a.dim("x").meta["units"] = "1"
    copied = gs.copy(a.uri, tmp_path / "copy.gs")
    found = gs.open(tmp_path / "copy.gs")
    assert copied and found.dim("x").labels.tolist() == ["a", "b", "c"] and found.dim("x").meta["units"] == "1"  # type: ignore[union-attr]


def test_a_result_keeps_the_labels_of_its_version() -> None:
    a = line("results", ["a", "b", "c"])
    read, cells = a.read(), a.read(where="x > 0")
    a.alter(labels={"x": ["p", "q", "r"]})
    assert read.labels["x"].tolist() == ["a", "b", "c"] and read.to_arrow()["x"].to_pylist() == ["a", "b", "c"]
    assert cells.to_pandas()["x"].tolist() == ["b", "c"] and cells["x"].tolist() == [1, 2], "coordinates stay"
    assert read["x"].tolist() == [0, 1, 2] and a.read().to_polars()["x"].to_list() == ["p", "q", "r"]
    again = pickle.loads(pickle.dumps(a.read()))
    assert again.labels["x"].tolist() == ["p", "q", "r"]
    for order in ("col", "global", "any"):
        assert a.read(order=order).to_arrow()["x"].to_pylist() == ["p", "q", "r"], order
    assert a.points({"x": [2, 0]}).to_arrow()["x"].to_pylist() == ["r", "p"]


def test_a_copy_with_wider_types_has_labels_and_metadata_too(tmp_path: Path) -> None:
    a = gs.array(tmp_path / "a.gs", np.arange(3, dtype="int8"), coords={"d0": ["a", "b", "c"]})
    a.dim("d0").meta["n"], a["value"].meta["units"], a.meta["title"] = 1, "K", "three"
    gs.copy(a.uri, tmp_path / "wide.gs", types={"value": "int32"})
    found = gs.open(tmp_path / "wide.gs")
    assert isinstance(found, gs.Array) and found.dtype == np.int32 and found.sel(d0="c")["value"] == 2
    assert (found.dim("d0").meta["n"], found["value"].meta["units"], found.meta["title"]) == (1, "K", "three")


def test_a_picture_has_labels_along_its_axes(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    a = gs.array(
        "mem://labels-plot",
        np.arange(6.0).reshape(2, 3),
        dims=["y", "x"],
        coords={"x": ["p", "q", "r"], "y": [60, 50]},
    )
    axes = Figure().add_axes((0, 0, 1, 1))
    gs.plot._label(axes, a, ("x", "y"))
    across, down = axes.xaxis.get_major_formatter(), axes.yaxis.get_major_formatter()
    assert [across(at, None) for at in (-0.5, 0, 1.5, 2.9, 3)] == ["", "p", "q", "r", ""]
    assert [down(at, None) for at in (0.5, 1.5)] == ["60", "50"] and axes.get_xlabel() == "x"
    assert gs.plot.plot(a, tmp_path / "a.png").stat().st_size > 1000


def test_info_names_labels_and_metadata_of_fields(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a = gs.array(
        tmp_path / "a.gs", np.zeros((2, 3)), dims=["y", "x"], coords={"x": ["p", "q", "r"], "y": [60, 50]}, name="t"
    )
    a.dim("y").meta["units"], a["t"].meta["units"] = "degrees", "K"
    assert cli.run(["info", str(tmp_path / "a.gs")]) == 0
    shown = capfd.readouterr().out
    assert "from 60 in steps of -10" in shown and "in a list" in shown
    assert "meta of y units = 'degrees'" in shown and "meta of t units = 'K'" in shown
