"""A handle stays itself: its version, shape and values, when it is copied, pickled, iterated and given to others."""

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import gridstone as gs
from gridstone.arrays import conversion
from gridstone.errors import BoundsError, ConflictError, InputError, NotFoundError, UnsupportedError

mpl.use("Agg")

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy in a dict": lambda x: copy.deepcopy({"a": [x]})["a"][0],
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "pickle 2": lambda x: pickle.loads(pickle.dumps(x, protocol=2)),
}


@pytest.fixture(params=COPIES)
def copied(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """A way to copy a handle."""
    return COPIES[request.param]


@pytest.fixture
def writer(store_uri: str) -> gs.Array:
    """An array opened for writing that shows version 2, of values 0 to 5."""
    return gs.array(store_uri, np.arange(6), name="v")


def test_copies_of_a_reader_show_its_version(writer: gs.Array, copied: Callable[[Any], Any]) -> None:
    a = gs.open(writer.uri)
    assert isinstance(a, gs.Array)
    writer[...] = 7
    writer.resize(d0=(0, 9))
    for found in (copied(a), copied(copied(a)), copied(a["v"]).array):
        assert (found.version, found.mode, found.shape) == (2, "r", (6,))
        assert found[...].tolist() == list(range(6)) == copied(a["v"])[...].tolist()
        assert found.context == a.context
        assert found.refresh() == 4 and found.shape == (10,)
    assert a.version == 2, "what a copy does moves nothing else"
    assert a.refresh() == 4


def test_copies_of_a_writer_show_its_version_and_write(writer: gs.Array, copied: Callable[[Any], Any]) -> None:
    other = gs.open(writer.uri, mode="r+")
    assert isinstance(other, gs.Array)
    found = copied(writer)
    assert (found.version, found.mode) == (2, "r+") and writer.version == 2
    other[5] = 50
    late = copied(writer)
    for a in (found, late):
        assert (a.version, a.mode, a[...].tolist()) == (2, "r+", list(range(6)))
    assert copied(late).version == 2
    late[0] = 10
    assert late.version == 4 and late[...].tolist() == [10, 1, 2, 3, 4, 50]
    assert (found.version, writer.version) == (2, 2)
    assert found.refresh() == 4 and found.mode == "r+"
    found[1] = 11
    assert found.version == 5
    view = copied(writer["v"])
    assert view.array.version == 2 and view[...].tolist() == list(range(6))
    view[2] = 12
    assert view[...].tolist() == [10, 11, 12, 3, 4, 50]
    with late.writer() as w:
        w.append(np.zeros(6, int))
    assert late.version == 7


def test_a_late_copy_deletes_nothing_that_it_does_not_show(writer: gs.Array, copied: Callable[[Any], Any]) -> None:
    first = gs.open(writer.uri, mode="r+")
    writer[...] = 5
    late = copied(first)
    for a in (late, copied(late)):
        with pytest.raises(ConflictError, match=r"version 2.*version 3|version 2.*is 3.*refresh"):
            a.delete(where="v == 5")
        assert a.version == 2 and a[...].tolist() == list(range(6))
        with pytest.raises(ConflictError, match="refresh"):
            a.delete(where="v == 5", commit=False)
    assert late.delete({"d0": (0, 0)}) == 4, "a box deletes what is in it, whatever it holds"
    assert late.delete(where="v == 5") == 5


def test_a_late_copy_writes_no_cell_that_a_changed_schema_has_moved(
    writer: gs.Array, copied: Callable[[Any], Any]
) -> None:
    first = gs.open(writer.uri, mode="r+")
    writer.resize(d0=(-2, 5))
    late = copied(first)
    for write in (lambda: late.__setitem__(slice(0, 4, 2), 9), lambda: late.__setitem__([0], 9), lambda: late.write(1)):
        with pytest.raises(ConflictError, match=r"schema changed.*refresh"):
            write()
    assert (late.version, late.shape) == (2, (6,))
    assert late.refresh() == 3 and late.shape == (8,)
    late[0] = 9
    assert writer.refresh() == 4 and writer[...].tolist() == [9, 0, 0, 1, 2, 3, 4, 5]


def test_copies_of_old_versions_stay_there(writer: gs.Array, copied: Callable[[Any], Any]) -> None:
    writer[...] = 7
    writer.alter(add=gs.Attr("w", "float64"))
    for a in (writer.at(version=2), gs.open(writer.uri, version=2)):
        found = copied(a)
        assert (found.version, found.mode, found.schema_names) == (2, "r", ["v"])
        assert found["v"][...].tolist() == list(range(6))
        with pytest.raises(BoundsError):
            found.refresh()
        with pytest.raises(gs.errors.AccessError):
            found[0] = 1


def test_copies_of_indexers_and_groups(store_uri: str, copied: Callable[[Any], Any]) -> None:
    root = gs.group(store_uri, mode="a")
    a = root.create("x", gs.Schema([gs.Dim("i", (5, 8))], [gs.Attr("v", "int64")]))
    a[...] = [1, 2, 3, 4]
    assert copied(a.loc)[6:8].tolist() == copied(a["v"].loc)[6:8].tolist() == [2, 3]
    assert copied(a.oindex)[[0, 3]].tolist() == copied(a["v"].vindex)[[0, 3]].tolist() == [1, 4]
    assert copied(a["v"].loc[6]).item() == 2
    found = copied(root)
    assert (list(found), found.mode, found.path) == (["x"], "r+", "/") and found["x"][...].tolist() == [1, 2, 3, 4]
    old = gs.open(store_uri, version=1)
    assert len(copied(old)) == 0 and copied(old).version == 1


def test_copies_of_what_is_gone_say_so(writer: gs.Array) -> None:
    made = pickle.dumps(writer)
    with gs.transaction(writer.uri) as tx:
        for how in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(UnsupportedError, match="copied or pickled"):
                how(tx["/"])
    gs.delete(writer.uri)
    with pytest.raises(NotFoundError):
        pickle.loads(made)
    writer.close()
    with pytest.raises(InputError, match="closed"):
        copy.copy(writer)


def test_copies_in_this_process_keep_the_key(tmp_path: Any) -> None:
    context = gs.Context(key=bytes(range(32)))
    a = gs.create(str(tmp_path / "s.gs"), gs.Schema([gs.Dim("i", (0, 3))], [gs.Attr("v", "int64")]), context=context)
    a[...] = 3
    for how in (copy.copy, copy.deepcopy):
        assert how(context) is context and how(a).context is context and how(a["v"])[...].tolist() == [3] * 4
        found = how(a)
        found[0] = 4
        assert found[0] == 4


# Iteration.

LINES: dict[str, Any] = {
    "numbers": np.array([3.0, 1, 2, 7, 5]),
    "times": np.array(["2020-01-03", "2020-01-01", "2020-01-02"], "M8[s]"),
    "texts": np.array(["c", "a", "b"], object),
    "booleans": np.array([True, False, True]),
    "big-endian": np.array([3, 1, 2], ">i4"),
}


@pytest.mark.parametrize("name", LINES)
def test_python_sees_the_values_of_a_line(store_uri: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "_BLOCK_BYTES", 20)
    values = LINES[name]
    a = gs.array(store_uri, values, name="v", tile=2)
    for handle in (a, a["v"]):
        assert list(handle) == list(values) and tuple(handle) == tuple(values)
        assert sorted(handle) == sorted(values) and [*enumerate(handle)] == [*enumerate(values)]
        assert {type(value) for value in handle} == {type(handle[0])}
        assert list(itertools.islice(handle, 2)) == list(values[:2]) and list(reversed(handle)) == list(values[::-1])
        assert max(handle) == max(values) and list(zip(handle, values, strict=True)) == [(x, x) for x in values]
        assert np.array(list(handle)).tolist() == values.tolist()


def test_rows_of_several_axes_and_attributes(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "_BLOCK_BYTES", 300)
    attrs = [gs.Attr("v", "float64"), gs.Attr("n", "int32", nullable=True), gs.Attr("c", "int16[2]")]
    a = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 6), 2), gs.Dim("y", (0, 2))], attrs))
    values = np.arange(21.0).reshape(7, 3)
    a.write({"v": values, "n": np.ma.array(values.astype(int), mask=values % 4 == 0)})
    assert [row.tolist() for row in a["v"]] == values.tolist()
    assert [row.tolist() for row in a["n"]] == [a["n"][i].tolist() for i in range(7)]
    assert [row.shape for row in a["c"]] == [(3, 2)] * 7
    rows = list(a)
    assert len(rows) == 7 and all(set(row) == {"v", "n", "c"} for row in rows)
    assert [row["v"].tolist() for row in rows] == values.tolist()
    line = gs.array("mem://nulls", np.ma.array([1, 2, 3], mask=[0, 1, 0]), overwrite=True)
    assert [value is np.ma.masked for value in line] == [value is np.ma.masked for value in line["value"]]
    assert list(line)[1] is np.ma.masked


def test_a_pass_shows_one_version(writer: gs.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "_BLOCK_BYTES", 8)
    for handle in (writer, writer["v"]):
        writer[...] = range(6)
        seen = []
        for value in handle:
            seen.append(int(value))
            writer[...] = 100
        assert seen == list(range(6))


def test_sparse_arrays_are_not_iterated(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")], sparse=True)
    a = gs.create(store_uri, schema)
    a.write_cells([1, 2], [5, 6])
    for handle in (a, a["v"]):
        with pytest.raises(UnsupportedError, match="dense"):
            iter(handle)
    assert np.asarray(a["v"]).tolist() == pd.Series(a["v"]).tolist() == [5, 6]


# pandas and matplotlib.


@pytest.mark.parametrize("name", ["numbers", "times", "texts", "booleans"])
def test_pandas_takes_a_handle_as_its_values(store_uri: str, name: str) -> None:
    values = LINES[name]
    a = gs.array(store_uri, values, name="v")
    for handle in (a, a["v"]):
        series = pd.Series(handle, name="s")
        pd.testing.assert_series_equal(series, pd.Series(values, name="s"))
        frame = pd.DataFrame({"v": handle, "k": range(len(values))})
        assert frame["v"].tolist() == pd.Series(values).tolist() and len(frame) == len(values)
        assert pd.Index(handle).tolist() == pd.Index(values).tolist()
    a.refresh()
    assert a.version == 2 and a["v"][...].tolist() == values.tolist()


def test_pandas_is_given_no_zero_for_a_null(store_uri: str) -> None:
    a = gs.array(store_uri, np.ma.array([1.0, 2, 3], mask=[0, 1, 0]), name="v")
    for make in (pd.Series, lambda x: pd.DataFrame({"v": x}), pd.Index):
        for handle in (a, a["v"]):
            with pytest.raises(UnsupportedError, match=r"\[\.\.\.\]"):
                make(handle)
    assert pd.Series(a["v"][...]).isna().tolist() == [False, True, False]


def test_plots_of_handles_show_their_values(store_uri: str) -> None:
    import matplotlib.pyplot as plt

    a = gs.array(store_uri, np.array([3.0, 1, 2]), name="v")
    for handle in (a, a["v"]):
        figure, axes = plt.subplots()
        (line,) = axes.plot(handle)
        assert line.get_ydata().tolist() == [3, 1, 2]
        (line,) = axes.plot(handle, handle)
        assert line.get_xdata().tolist() == [3, 1, 2]
        axes.scatter(handle, handle)
        axes.bar(range(3), handle)
        axes.hist(handle)
        plt.close(figure)
    assert a.version == 2
