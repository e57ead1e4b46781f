"""Labels that several arrays of a group share: the values of a coordinate that lies beside them."""

import pickle

import numpy as np
import pytest

import gridstone as gs

DAYS = np.arange("2026-03-01", "2026-03-04", dtype="datetime64[D]")


@pytest.fixture
def store(tmp_path):
    """A coordinate `time`, and two arrays that have their labels there."""
    uri = tmp_path / "w.gs"
    gs.group(uri, mode="a")
    with gs.transaction(uri) as tx:
        coordinate = gs.Schema([gs.Dim("time_dim", (0, None), 4)], [gs.Attr("time", "datetime64[D]")])
        tx.create("/w/time", coordinate).write(DAYS, box=((0, 2),))
        for name, kind in (("t", "float32"), ("rain", "int16")):
            dims = [gs.Dim("time", (0, 2), 1, labels="time"), gs.Dim("x", (0, 1))]
            made = tx.create(f"/w/{name}", gs.Schema(dims, [gs.Attr(name, kind)]))
            made[...] = np.arange(6).reshape(3, 2)
    return uri


def test_labels_lie_in_the_coordinate_and_are_chosen_by(store):
    a = gs.open(store, path="/w/t")
    assert a.dim("time").labels.tolist() == DAYS.tolist()
    assert a.sel(time="2026-03-02")["t"].tolist() == [2, 3]
    assert a.sel(time="2026-03").shape == (3, 2)
    assert a.read().to_arrow()["time"].to_numpy()[0] == DAYS[0]
    assert "in another array" in repr(a.schema) and "in another array" in str(a.schema._repr_html_())
    assert gs.open(store, path="/w").children()[0].name == "rain"  # no copy of labels anywhere
    assert len(list(gs.open(store, path="/w").walk())) == 3


def test_one_append_labels_all(store):
    group = gs.group(store, path="/w", mode="r+")
    group["t"].append(np.ones((1, 2)), axis="time", labels="2026-03-04")
    assert group["rain"].dim("time").labels.tolist() == DAYS.tolist()  # as long as its own dimension
    group["rain"].append(np.ones((1, 2)), axis="time")
    assert group["rain"].dim("time").labels[-1] == np.datetime64("2026-03-04")
    with pytest.raises(gs.InputError, match="has none for the 1 positions"):
        group["rain"].append(np.ones((1, 2)), axis="time")
    group["time"].append(np.array(["2026-03-05"], "M8[D]"))
    with pytest.raises(gs.InputError, match="another label for position 4"):
        group["rain"].append(np.ones((1, 2)), axis="time", labels="2026-03-06")
    with group["rain"].writer(axis="time") as writer:
        writer.append(np.ones((1, 2)))
    assert group["rain"].sel(time="2026-03-05")["rain"].tolist() == [1, 1]
    assert group["t"].shape == (4, 2)


def test_paths_are_absolute_or_from_the_group_on(store):
    a = gs.open(store, "r+", path="/w/t")
    a.alter(labels={"time": None})
    assert a.dim("time").labels is None
    for path in ("/w/time", "time", "../w/time", "./time"):
        a.alter(labels={"time": path})
        assert a.dim("time").labels.tolist() == DAYS.tolist()
    for path, error in (
        ("nope", gs.NotFoundError),
        ("/w", gs.InputError),
        ("t", gs.InputError),
        ("rain", gs.SchemaError),
    ):
        with pytest.raises(error):
            a.alter(labels={"time": path})
    with pytest.raises(gs.NotFoundError, match=r"labels in a list are labels=\[…\]"):
        gs.create(store, gs.Schema([gs.Dim("x", (0, 1), labels="ab")], [gs.Attr("v", "int8")]), path="/new")
    assert not gs.exists(store, path="/new")
    for path in ("", "/", "time/"):
        with pytest.raises(gs.SchemaError, match="no path"):
            a.alter(labels={"time": path})
    assert a.dim("time").labels.tolist() == DAYS.tolist()


def test_a_coordinate_that_moves_keeps_and_one_that_goes_leaves_no_labels(store):
    group = gs.group(store, path="/w", mode="r+")
    kept = gs.open(store, path="/w/t")
    group.move("time", "axis")
    assert group["t"].dim("time").labels.tolist() == DAYS.tolist()
    del group["axis"]
    a = group["t"]
    assert a.dim("time").labels is None and a.sel(time=1)["t"].tolist() == [2, 3]
    assert a.read().to_arrow()["time"].to_pylist() == [0, 0, 1, 1, 2, 2]
    assert kept.dim("time").labels.tolist() == DAYS.tolist()  # it shows its version
    a.append(np.ones((1, 2)), axis="time")
    assert not gs.verify(store).damage


def test_schemas_pickle_and_copies_have_labels(store, tmp_path):
    a = gs.open(store, path="/w/t")
    assert pickle.loads(pickle.dumps(a.schema)) == a.schema
    assert pickle.loads(pickle.dumps(a)).dim("time").labels.tolist() == DAYS.tolist()
    dim = gs.Dim("time", (0, 2), labels="time")
    assert pickle.loads(pickle.dumps(dim))._labels == dim._labels and dim.labels is None
    gs.copy(store, tmp_path / "one.gs", path="/w/t", target_path="/")
    assert gs.open(tmp_path / "one.gs").dim("time").labels.tolist() == DAYS.tolist()
    gs.copy(store, tmp_path / "all.gs")
    assert gs.open(tmp_path / "all.gs", path="/w/rain").dim("time").labels.tolist() == DAYS.tolist()
    a = gs.open(store, "r+", path="/w/t")
    a.consolidate("all")
    assert a.dim("time").labels.tolist() == DAYS.tolist()


def test_what_is_derived_has_labels_of_its_own(store, tmp_path):
    a = gs.open(store, path="/w/t")
    made = a.filter(to=tmp_path / "f.gs")
    assert made.dim("time").labels.tolist() == DAYS.tolist()
    made = a.reduce({"m": "mean(t)"}, axis=["x"], to=tmp_path / "r.gs")
    assert made.dim("time").labels.tolist() == DAYS.tolist()
