"""Many files as one array: their order, what overlaps, appends, updates over them and bringing them home."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs

h5py = pytest.importorskip("h5py")


def _run(path: Path, times: Any, seed: int, *, names: tuple[str, ...] = ("e",), scale: bool = True) -> dict[str, Any]:
    """A file of one run: datasets (time, x) in chunks that do not divide it."""
    random = np.random.default_rng(seed)
    values = {name: random.normal(size=(len(times), 7)) for name in names}
    with h5py.File(path, "w") as file:
        for name, of in values.items():
            file.create_dataset(name, data=of, chunks=(min(3, len(times)), 4), compression="gzip", shuffle=True)
        if scale:
            file["time"] = np.asarray(times)
            file["time"].make_scale("time")
            file["x"] = np.arange(7) * 0.5
            file["x"].make_scale("x")
            for name in names:
                file[name].dims[0].attach_scale(file["time"])
                file[name].dims[1].attach_scale(file["x"])
    return values


def test_a_pattern_is_in_the_order_of_coordinates(tmp_path: Path) -> None:
    # The names say another order than the times.
    late = _run(tmp_path / "run_1.h5", [10, 11, 12, 13], 1)["e"]
    early = _run(tmp_path / "run_2.h5", [0, 1, 2, 3, 4], 2)["e"]
    a = gs.attach(tmp_path / "a.gs", str(tmp_path / "run_*.h5"), "/e", concat="time")
    assert isinstance(a, gs.Array)
    assert a.dims == ("time", "x")
    assert (a[...] == np.concatenate([early, late])).all()
    assert (a.sel(time=11, x=0.5)["e"] == late[1, 1]).all()
    assert a.sources.column("state").to_pylist() == ["unchanged"] * 2
    assert a.sources.column("uri").to_pylist() == ["run_2.h5", "run_1.h5"]


def test_without_coordinates_names_are_in_natural_order(tmp_path: Path) -> None:
    values = [_run(tmp_path / f"run_{n}.h5", range(2), n, scale=False)["e"] for n in (1, 2, 10)]
    a = gs.attach(tmp_path / "a.gs", str(tmp_path / "run_*.h5"), "/e", concat="d0")
    assert (np.asarray(a) == np.concatenate(values)).all()
    new = gs.attach(tmp_path / "b.gs", str(tmp_path / "run_*.h5"), "/e", concat="new:run")
    assert isinstance(new, gs.Array)
    assert (new.dims, new.shape) == (("run", "d0", "d1"), (3, 2, 7))
    assert (new[...] == np.stack(values)).all()
    assert (new[1:, ::-1, 3] == np.stack(values)[1:, ::-1, 3]).all()


def test_a_list_keeps_its_order_and_overlaps_name_two_files(tmp_path: Path) -> None:
    _run(tmp_path / "a.h5", [0, 1, 2], 1)
    _run(tmp_path / "b.h5", [2, 3], 2)
    with pytest.raises(gs.errors.InputError, match=r"a\.h5 and .*b\.h5 overlap along time"):
        gs.attach(tmp_path / "x.gs", [tmp_path / "a.h5", tmp_path / "b.h5"], "/e", concat="time")
    with pytest.raises(gs.errors.InputError, match=r"overlap"):
        gs.attach(tmp_path / "x.gs", [tmp_path / "b.h5", tmp_path / "a.h5"], "/e", concat="time")
    assert not gs.exists(tmp_path / "x.gs")
    with pytest.raises(gs.errors.InputError, match=r"concat="):
        gs.attach(tmp_path / "x.gs", [tmp_path / "a.h5", tmp_path / "b.h5"], "/e")
    with pytest.raises(gs.errors.InputError, match=r"no dimension 'z'; they have time, x"):
        gs.attach(tmp_path / "x.gs", [tmp_path / "a.h5", tmp_path / "b.h5"], "/e", concat="z")


def test_more_files_are_appended_in_one_commit(tmp_path: Path) -> None:
    values = [_run(tmp_path / f"r{n}.h5", np.arange(3 * n, 3 * n + 3), n)["e"] for n in range(4)]
    a = gs.attach(tmp_path / "a.gs", tmp_path / "r0.h5", "/e", concat="time")
    assert isinstance(a, gs.Array)
    before = a.version
    assert a.attach([tmp_path / "r1.h5", tmp_path / "r2.h5"], message="more") == before + 1
    assert (a[...] == np.concatenate(values[:3])).all()
    assert (a.sel(time=7)["e"] == values[2][1]).all()
    with pytest.raises(gs.errors.InputError, match="overlap"):
        a.attach(tmp_path / "r1.h5")
    assert (a.version, a.shape) == (before + 1, (9, 7))
    assert a.at(version=before).shape == (3, 7)
    a.attach(tmp_path / "r3.h5")
    assert (gs.open(tmp_path / "a.gs")[...] == np.concatenate(values)).all()


def test_several_datasets_are_attributes_of_one_array(tmp_path: Path) -> None:
    values = _run(tmp_path / "r.h5", range(5), 1, names=("e", "b"))
    a = gs.attach(tmp_path / "a.gs", tmp_path / "r.h5", ["/e", "/b"])
    assert isinstance(a, gs.Array)
    read = a.read()
    assert (read["e"] == values["e"]).all()
    assert (read["b"] == values["b"]).all()
    named = gs.attach(tmp_path / "b.gs", tmp_path / "r.h5", {"energy": "/e", "again": "e"})
    assert isinstance(named, gs.Array)
    assert [attr.name for attr in named.schema.attrs] == ["energy", "again"]
    assert (named["again"][...] == values["e"]).all()
    with h5py.File(tmp_path / "r.h5", "a") as file:
        file["other"] = np.zeros(3)
    with pytest.raises(gs.errors.InputError, match=r"/other has the shape \(3,\) and /e \(5, 7\)"):
        gs.attach(tmp_path / "c.gs", tmp_path / "r.h5", ["/e", "/other"])


def test_updates_lie_over_a_file_and_cells_come_home(tmp_path: Path) -> None:
    expected = _run(tmp_path / "r.h5", range(9), 1)["e"].copy()
    untouched = (tmp_path / "r.h5").read_bytes()
    a = gs.attach(tmp_path / "a.gs", tmp_path / "r.h5", "/e")
    assert isinstance(a, gs.Array)
    attached = a.version
    a[2:4, 1:3] = 7
    expected[2:4, 1:3] = 7
    a.delete(box={"time": (8, 8)})
    assert (np.asarray(a[8]) == 0).all()
    a[8] = 1.5
    expected[8] = 1.5
    assert (a[...] == expected).all()
    assert np.isclose(np.sum(a), expected.sum())
    a.consolidate("tiered")
    assert a.sources.num_rows == 1
    a.consolidate("all")
    assert a.sources.num_rows == 0
    assert (tmp_path / "r.h5").read_bytes() == untouched
    assert not (a.at(version=attached)[...] == expected).all(), "the history is kept"
    os.remove(tmp_path / "r.h5")
    assert (a[...] == expected).all()
    with pytest.raises(gs.errors.SourceChangedError, match=r"r\.h5"):
        a.at(version=attached)[...]


def test_a_store_that_was_sent_reads_no_other_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "stores").mkdir()
    values = _run(tmp_path / "data" / "r.h5", range(3), 1)["e"]
    a = gs.attach(tmp_path / "stores" / "a.gs", tmp_path / "data" / "r.h5", "/e")
    assert (np.asarray(a) == values).all(), "the handle of attach may read it"
    assert (np.asarray(__import__("pickle").loads(__import__("pickle").dumps(a))) == values).all()
    opened = gs.open(tmp_path / "stores" / "a.gs")
    with pytest.raises(gs.errors.AccessError, match=r"outside of the store's folder.*Context\(sources="):
        opened[...]
    for allowed in (tmp_path / "data", tmp_path):
        with_sources = gs.open(tmp_path / "stores" / "a.gs", context=gs.Context(sources=[allowed]))
        assert (with_sources[...] == values).all()
    with pytest.raises(gs.errors.AccessError):
        gs.open(tmp_path / "stores" / "a.gs", context=gs.Context(sources=[tmp_path / "dat"]))[...]
    with pytest.raises(gs.errors.InputError, match="list of folders"):
        gs.Context(sources="/")


def test_a_file_that_changed_is_named(tmp_path: Path) -> None:
    _run(tmp_path / "r.h5", range(3), 1)
    a = gs.attach(tmp_path / "a.gs", tmp_path / "r.h5", "/e")
    assert isinstance(a, gs.Array)
    with h5py.File(tmp_path / "r.h5", "a") as file:
        file["e"][0] = 5
    with pytest.raises(gs.errors.SourceChangedError, match=r"r\.h5 has changed"):
        a[...]
    assert "has changed" in a.sources.column("state").to_pylist()[0]
    assert "has changed" in a.verify().damage[0].message


def test_values_of_varying_length_are_copied(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file["texts"] = np.array(["a", "ü" * 40, ""], dtype=h5py.string_dtype())
        lists = file.create_dataset("lists", (2,), dtype=h5py.vlen_dtype("i4"))
        lists[0], lists[1] = [1, 2, 3], []
        kind = np.dtype([("n", "<i4"), ("s", h5py.string_dtype())])
        file["pairs"] = np.array([(1, "x"), (2, "yy")], dtype=kind)
    a = gs.attach(tmp_path / "a.gs", tmp_path / "r.h5", "/texts")
    assert isinstance(a, gs.Array)
    assert np.asarray(a[...]).tolist() == ["a", "ü" * 40, ""]
    b = gs.attach(tmp_path / "b.gs", tmp_path / "r.h5", "/lists")
    assert isinstance(b, gs.Array)
    assert [list(one) for one in b[...]] == [[1, 2, 3], []]
    c = gs.attach(tmp_path / "c.gs", tmp_path / "r.h5", "/pairs")
    assert isinstance(c, gs.Array)
    assert (c["n"][...].tolist(), np.asarray(c["s"][...]).tolist()) == ([1, 2], ["x", "yy"])
    with pytest.raises(gs.errors.UnsupportedError, match=r'vary in length.*variable="copy"'):
        gs.attach(tmp_path / "d.gs", tmp_path / "r.h5", "/texts", variable="refuse")


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_numpy_are_attached(tmp_path: Path, order: Any) -> None:
    values = np.asarray(np.random.default_rng(1).normal(size=(31, 7, 5)).astype(">f4"), order=order)
    np.save(tmp_path / "x.npy", values)
    a = gs.attach(tmp_path / "a.gs", tmp_path / "x.npy", "/array")
    assert isinstance(a, gs.Array)
    assert (a[...] == values).all()
    assert (a[3:20:4, ::-1, 2] == values[3:20:4, ::-1, 2]).all()


def test_files_of_netcdf_3_are_attached(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(tmp_path / "x.nc", "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(5)
        file.createVariable("v", "i2", ("time", "x"))[:] = np.arange(15).reshape(5, 3)
        file.createVariable("w", "i1", ("time",))[:] = np.arange(5)
        file.createVariable("fixed", "f4", ("x",))[:] = [1, 2, 3]
    for name, wanted in {"v": np.arange(15).reshape(5, 3), "w": np.arange(5), "fixed": [1, 2, 3]}.items():
        a = gs.attach(tmp_path / f"{name}.gs", tmp_path / "x.nc", name)
        assert isinstance(a, gs.Array)
        assert (np.asarray(a[...]) == wanted).all(), name


def _plain(path: Path, values: Any, **scales: Any) -> None:
    """A dataset `e` with scales of these names along its dimensions."""
    with h5py.File(path, "w") as file:
        file["e"] = values
        for axis, (name, coordinates) in enumerate(scales.items()):
            file[name] = np.asarray(coordinates)
            file[name].make_scale(name)
            file["e"].dims[axis].attach_scale(file[name])


def test_files_that_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    a, b = tmp_path / "a.h5", tmp_path / "b.h5"
    _plain(a, np.ones((2, 2)), t=[0, 1], x=[0, 1])
    _plain(b, np.ones((2, 2)), x=[0, 1], t=[2, 3])
    with pytest.raises(gs.errors.InputError, match=r"a\.h5 and .*b\.h5 have other dimensions, or in another order"):
        gs.attach(tmp_path / "s.gs", [a, b], "/e", concat="t")
    _plain(b, np.ones((2, 2)), t=[2, 3], x=[5, 6])
    with pytest.raises(gs.errors.InputError, match="different coordinates along another dimension"):
        gs.attach(tmp_path / "s.gs", [a, b], "/e", concat="t")
    for path, names in ((a, {"A": 0, "B": 1}), (b, {"B": 0, "C": 1})):
        with h5py.File(path, "w") as file:
            file.create_dataset("e", data=[0, 1], dtype=h5py.enum_dtype(names, "i1"))
    with pytest.raises(gs.errors.InputError, match="values of different types"):
        gs.attach(tmp_path / "s.gs", [a, b], "/e", concat="d0")
    for path, units in ((a, "days since 2001-01-01"), (b, "days since 2002-01-01")):
        _plain(path, np.ones(2), t=[0, 1] if path == a else [5, 6])
        with h5py.File(path, "a") as file:
            file["t"].attrs["units"], file["t"].attrs["calendar"] = units, "noleap"
    with pytest.raises(gs.errors.InputError, match="different units"):
        gs.attach(tmp_path / "s.gs", [a, b], "/e", concat="t")
    assert not gs.exists(tmp_path / "s.gs")


def test_files_that_do_not_fit_the_array_are_not_appended(tmp_path: Path) -> None:
    _plain(tmp_path / "a.h5", np.ones((2, 4)))
    a = gs.attach(tmp_path / "a.gs", tmp_path / "a.h5", "/e", concat="d0")
    assert isinstance(a, gs.Array)
    for columns in (3, 7):
        _plain(tmp_path / "b.h5", np.ones((2, columns)))
        with pytest.raises(gs.errors.InputError, match="another dimension differs"):
            a.attach(tmp_path / "b.h5")
    _plain(tmp_path / "b.h5", np.ones((2, 4), "f4"))
    with pytest.raises(gs.errors.InputError, match="float32"):
        a.attach(tmp_path / "b.h5")
    assert (a.shape, (a[...] == 1).all()) == ((2, 4), True)


def test_coordinates_may_descend(tmp_path: Path) -> None:
    _plain(tmp_path / "f1.h5", np.array([8.0, 7.0]), t=[8, 7])
    _plain(tmp_path / "f2.h5", np.array([6.0, 5.0]), t=[6, 5])
    for source in (str(tmp_path / "f?.h5"), [tmp_path / "f1.h5", tmp_path / "f2.h5"]):
        a = gs.attach(tmp_path / "a.gs", source, "/e", concat="t")
        assert np.asarray(a[...]).tolist() == [8, 7, 6, 5]
        gs.delete(tmp_path / "a.gs")
    with pytest.raises(gs.errors.InputError, match="overlap"):
        gs.attach(tmp_path / "a.gs", [tmp_path / "f2.h5", tmp_path / "f1.h5"], "/e", concat="t")


def test_a_change_while_a_file_is_attached_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _plain(tmp_path / "r.h5", np.arange(8.0))
    opened = gs.stores.attach.tree.opened  # type: ignore[attr-defined]

    def changing(path: str) -> Any:
        found = opened(path)
        _plain(tmp_path / "r.h5", np.arange(9.0))
        return found

    monkeypatch.setattr("gridstone.foreign.tree.opened", changing)
    for concat in (None, "d0"):
        with pytest.raises(gs.errors.SourceChangedError, match=r"r\.h5 has changed while it was attached"):
            gs.attach(tmp_path / "a.gs", tmp_path / "r.h5", "/e", concat=concat)
    assert not gs.exists(tmp_path / "a.gs")


def test_a_tree_names_what_it_leaves_out(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file["good"] = np.arange(3)
        file["soft"], file["out"] = h5py.SoftLink("/good"), h5py.ExternalLink("other.h5", "/x")
        file["a\tb"] = np.arange(2)
        file["one"] = 5
    made = gs.attach(tmp_path / "a.gs", tmp_path / "r.h5")
    assert isinstance(made, gs.Group)
    refused = made.meta["not attached"]
    assert {"soft", "out", "a\tb"} == set(refused)
    assert refused["out"] == "it is a link to /x in other.h5"
    assert {entry.path for entry in made.walk()} == {"/good", "/one"}
    with pytest.raises(gs.errors.UnsupportedError, match="single value"):
        gs.attach(tmp_path / "b.gs", tmp_path / "r.h5", "/one")


def test_names_that_were_given_are_known_when_files_are_appended(tmp_path: Path) -> None:
    kind = np.dtype([("a", "<i4"), ("b", "<f8")])
    for name in ("x", "y"):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["c"] = np.ones(3, kind)
    a = gs.attach(tmp_path / "a.gs", tmp_path / "x.h5", {"p": "/c"}, concat="d0")
    assert isinstance(a, gs.Array)
    a.attach(tmp_path / "y.h5")
    assert ([attr.name for attr in a.schema.attrs], a.shape) == (["p.a", "p.b"], (6,))


def test_an_allowed_folder_allows_what_is_below_it(tmp_path: Path) -> None:
    (tmp_path / "data" / "runs").mkdir(parents=True)
    (tmp_path / "stores").mkdir()
    for n in range(2):
        _plain(tmp_path / "data" / "runs" / f"f{n}.h5", np.full(2, float(n)))
    context = gs.Context(sources=[f"file://{tmp_path / 'data'}"])
    uri = tmp_path / "stores" / "a.gs"
    gs.attach(uri, tmp_path / "data" / "runs" / "f0.h5", "/e", concat="d0")
    a = gs.open(uri, mode="r+", context=context)
    assert isinstance(a, gs.Array)
    a.attach(tmp_path / "data" / "runs" / "f1.h5")
    assert np.asarray(a[...]).tolist() == [0, 0, 1, 1]
    with pytest.raises(gs.errors.AccessError, match="may not read"):
        gs.open(uri, mode="r+", context=gs.Context(sources=[])).attach(tmp_path / "data" / "runs" / "f1.h5")


def test_gaps_between_files_are_a_warning(tmp_path: Path) -> None:
    _plain(tmp_path / "f1.h5", np.ones(3), t=[0, 1, 2])
    _plain(tmp_path / "f2.h5", np.ones(3), t=[9, 10, 11])
    with pytest.warns(UserWarning, match=r"along t have gaps: between .*f1\.h5 and .*f2\.h5: 2 to 9"):
        gs.attach(tmp_path / "a.gs", str(tmp_path / "f?.h5"), "/e", concat="t")
