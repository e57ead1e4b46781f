"""What an append does to the rest of a group: labels go on, what does not grow stays, and nothing is invented."""

import contextlib

import numpy as np
import pytest
import xarray as xr
from xarray_stores import opened

import gridstone as gs
from gridstone.errors import InputError

DAYS = np.array(["2000-01-01", "2000-01-02", "2000-01-03"], "datetime64[ns]")
NOON = np.array(["2000-01-04T12"], "datetime64[ns]")


def _timed(times, **options):
    return xr.Dataset({"v": ("t", np.arange(len(times), dtype="f8"))}, {"t": ("t", times)}, **options)


def _refused(uri, words, act):
    version = gs.open(uri).version
    with pytest.raises(InputError, match=words):
        act()
    assert gs.open(uri).version == version


def _labelled(uri, values=DAYS):
    store = gs.group(uri, mode="a")
    store.create("v", gs.Schema([gs.Dim("t", (0, 2), labels=values)], [gs.Attr("v", "float64")]))
    store.create("w", gs.Schema([gs.Dim("t", (0, 2), labels=values)], [gs.Attr("w", "float64")]))
    for name in "vw":
        store[name].write({name: np.arange(3.0)})


@pytest.mark.parametrize("is_lazy", [False, True])
def test_labels_of_plain_arrays_go_on(tmp_path, is_lazy):
    uri = tmp_path / "a.gs"
    _labelled(uri)
    more = _timed(NOON)
    more["w"] = more.v + 1
    gs.to_gridstone(more.chunk() if is_lazy else more, uri, append_dim="t")
    found = opened(uri).load()
    assert found.t.values.tolist() == [*DAYS.tolist(), *NOON.tolist()]
    assert found.w.values.tolist() == [0, 1, 2, 1]
    assert gs.open(uri)["v"].dim("t").labels.astype("M8[ns]").tolist() == found.t.values.tolist()


@pytest.mark.parametrize("is_lazy", [False, True])
def test_appends_without_the_labels_are_refused(tmp_path, is_lazy):
    uri = tmp_path / "a.gs"
    _labelled(uri)
    more = xr.Dataset({"v": ("t", [7.0]), "w": ("t", [8.0])})
    _refused(uri, "label", lambda: gs.to_gridstone(more.chunk() if is_lazy else more, uri, append_dim="t"))
    assert opened(uri).t.values.tolist() == DAYS.tolist()


def test_a_coordinate_that_was_removed_comes_with_the_new_positions(tmp_path):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(_timed(DAYS), uri)
    del gs.group(uri, mode="r+")["t"]
    gs.to_gridstone(_timed(NOON), uri, append_dim="t")
    found = opened(uri).load()
    assert np.isnat(found.t.values[:3]).all() and found.t.values[3] == NOON[0]
    assert found.v.values.tolist() == [0, 1, 2, 0]


def test_variables_without_positions_are_as_they_are_there(tmp_path):
    uri = tmp_path / "a.gs"
    given = xr.Dataset({"v": ("t", [1.0]), "none": ("x", np.zeros(0)), "also": (("t", "x"), np.zeros((1, 0)))})
    gs.to_gridstone(given, uri)
    gs.to_gridstone(given, uri, append_dim="t")
    assert opened(uri).sizes == {"t": 2, "x": 0}


@pytest.mark.parametrize("is_lazy", [False, True])
def test_own_coordinates_go_on(tmp_path, is_lazy):
    uri = tmp_path / "a.gs"
    gs.group(uri, mode="a").create(
        "v", gs.Schema([gs.Dim("t", ("2000-01-01", "2000-01-03"), dtype="datetime64[D]")], [gs.Attr("v", "float64")])
    )
    gs.open(uri, "r+", path="/v").write({"v": np.arange(3.0)})
    other = _timed(np.array(["2000-01-09"], "datetime64[ns]"))
    _refused(uri, "2000-01-04", lambda: gs.to_gridstone(other.chunk() if is_lazy else other, uri, append_dim="t"))
    more = _timed(np.array(["2000-01-04"], "datetime64[ns]"))
    gs.to_gridstone(more.chunk() if is_lazy else more, uri, append_dim="t")
    found = opened(uri).load()
    assert found.t.values.astype("M8[D]").astype(str).tolist() == [f"2000-01-0{day}" for day in (1, 2, 3, 4)]
    assert found.v.values.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("name", ["lat", "scalar", "mask", "text"])
def test_what_does_not_grow_must_be_as_it_is_there(tmp_path, name, is_lazy):
    uri = tmp_path / "a.gs"

    def made(changed=None):
        given = {
            "v": (("t", "lat"), np.ones((1, 2))),
            "mask": ("lat", np.array([1.0, np.nan])),
            "scalar": ((), 1),
            "text": ("lat", np.array(["a", None], object)),
        }
        found = xr.Dataset(given, {"lat": [1.0, 2.0]})
        if changed is not None:
            others = {"lat": [2.0, 1.0], "mask": [1.0, 1.0], "scalar": 2, "text": np.array(["a", "b"], object)}
            found[changed] = (found[changed].dims, others[changed])
        return found

    gs.to_gridstone(made(), uri)
    other = made(name)
    if is_lazy:
        other = other.chunk() if name != "text" else other.chunk({"lat": 1})
    with pytest.warns(xr.SerializationWarning) if is_lazy else _nothing():
        _refused(uri, repr(name), lambda: gs.to_gridstone(other, uri, append_dim="t"))
    gs.to_gridstone(made(), uri, append_dim="t")
    more = made()
    more["mask"] = more["mask"].chunk()
    gs.to_gridstone(more, uri, append_dim="t")
    xr.testing.assert_identical(opened(uri).isel(t=[0]).load(), made())
    assert opened(uri).sizes == {"t": 3, "lat": 2}


def _nothing():
    return contextlib.nullcontext()


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize(
    ("values", "earlier"),
    [
        ([5, 6], [np.nan] * 3),
        (np.array([5, 6], "u1"), [np.nan] * 3),
        ([True, False], [np.nan] * 3),
        (["long", "x"], [np.nan] * 3),
        (np.array([b"ab", b"c"]), [np.nan] * 3),
        ([1.5, 2.5], [np.nan] * 3),
        (NOON.repeat(2), [np.datetime64("NaT")] * 3),
    ],
)
def test_nothing_is_invented_before_a_new_variable(tmp_path, values, earlier, is_lazy):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(xr.Dataset({"v": ("x", [1.0, 2.0, 3.0])}), uri)
    more = xr.Dataset({"v": ("x", [4.0, 5.0]), "n": ("x", values)})
    gs.to_gridstone(more.chunk() if is_lazy else more, uri, append_dim="x")
    found = opened(uri).load()
    assert [str(one) for one in found.n.values[:3]] == [str(one) for one in earlier]
    assert found.n.values[3:].tolist() == np.asarray(values).tolist()
    gs.to_gridstone(more, uri, append_dim="x")
    assert opened(uri).n.values[5:].tolist() == np.asarray(values).tolist()


def test_new_packed_variables_are_refused_behind_others(tmp_path):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(xr.Dataset({"v": ("x", [1.0])}), uri)
    more = xr.Dataset({"v": ("x", [4.0]), "n": ("x", [2.5])})
    act = {"append_dim": "x", "encoding": {"n": {"dtype": "int16", "scale_factor": 0.5}}}
    _refused(uri, "'n'", lambda: gs.to_gridstone(more, uri, **act))


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("kind", ["U8", object])
def test_texts_longer_than_the_noted_width(tmp_path, kind, is_lazy):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(xr.Dataset({"v": ("x", np.array(["ab", "cd", "e"]))}), uri)

    def part(text):
        given = xr.Dataset({"v": ("x", np.array([text], kind))})
        return given.chunk() if is_lazy else given

    _refused(uri, "longer", lambda: gs.to_gridstone(part("longtext"), uri, region={"x": slice(1, 2)}))
    if not is_lazy:
        gs.to_gridstone(part("xy"), uri, region={"x": slice(1, 2)})
        assert opened(uri).v.values.tolist() == ["ab", "xy", "e"]
    gs.open(uri, "r+", path="/v").write({"v": np.array(["longtext"], object)}, {"x": (1, 1)})
    with opened(uri) as found:
        assert found.v.values.tolist() == ["ab", "longtext", "e"] and found.v[1].values == "longtext"
        assert opened(uri).v[[0, 2]].values.dtype == "U2"


def test_new_packed_variables_with_a_fill_value_are_missing_before(tmp_path):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(xr.Dataset({"v": ("x", [1.0])}), uri)
    more = xr.Dataset({"v": ("x", [4.0]), "n": ("x", [2.5])})
    encoding = {"n": {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -9}}
    gs.to_gridstone(more, uri, append_dim="x", encoding=encoding)
    assert opened(uri).n.values.tolist()[1:] == [2.5] and np.isnan(opened(uri).n.values[0])


def test_an_append_adds_no_variable_where_the_mode_has_none(tmp_path):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(xr.Dataset({"v": ("x", [1.0])}), uri)
    more = xr.Dataset({"v": ("x", [4.0]), "n": ("x", [2.5])})
    version = gs.open(uri).version
    with pytest.raises(gs.NotFoundError, match="'n'"):
        gs.to_gridstone(more, uri, append_dim="x", mode="r+")
    assert gs.open(uri).version == version
    gs.to_gridstone(more[["v"]], uri, append_dim="x", mode="r+")
    assert opened(uri).v.values.tolist() == [1, 4]


@pytest.mark.parametrize("is_lazy", [False, True])
def test_a_tree_grows_with_the_coordinates_above(tmp_path, is_lazy):
    uri = tmp_path / "a.gs"

    def tree(first, last):
        below = xr.Dataset({"w": (("t", "y"), np.arange(2.0 * first, 2 * last).reshape(-1, 2))})
        top = xr.Dataset({"v": ("t", np.arange(first, last))}, {"t": np.arange(first, last) * 1.5})
        made = xr.DataTree.from_dict({"/": top, "/a": below, "/a/b": below.w[:, 0].to_dataset(name="u")})
        return made.chunk() if is_lazy else made

    gs.to_gridstone(tree(0, 3), uri)
    gs.to_gridstone(tree(3, 5), uri, append_dim="t")
    with xr.open_datatree(uri, engine="gridstone") as found:
        xr.testing.assert_identical(found.load(), tree(0, 5).load())
    assert gs.open(uri, path="/a/b/u").dim("t").labels.tolist() == [0, 1.5, 3, 4.5, 6]
    # A group by itself would be longer than the coordinates that it has from above.
    alone = tree(5, 6)["a"].to_dataset(inherit=False)
    _refused(uri, "another group", lambda: gs.to_gridstone(alone, uri, group="/a", append_dim="t"))
