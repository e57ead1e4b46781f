"""Looking again at files that have changed: they grow, are written anew, or no longer fit."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs

h5py = pytest.importorskip("h5py")


def _write(
    path: Path, values: Any, *, times: Any = None, chunks: tuple[int, ...] = (3, 4), names: Any = ("e",)
) -> None:
    with h5py.File(path, "w") as file:
        for name in names:
            limits = (None, *values.shape[1:])
            file.create_dataset(name, data=values, chunks=chunks, maxshape=limits, compression="gzip", fillvalue=-1)
        if times is not None:
            file.create_dataset("time", data=np.asarray(times), chunks=(4,), maxshape=(None,))
            file["time"].make_scale("time")
            for name in names:
                file[name].dims[0].attach_scale(file["time"])


def _grow(path: Path, values: Any, times: Any = None) -> None:
    """Appends rows in place, as a program that measures does."""
    with h5py.File(path, "r+") as file:
        more = len(values)
        for name, rows in (("e", values), ("time", times)):
            if rows is not None:
                dataset = file[name]
                dataset.resize(dataset.shape[0] + more, axis=0)
                dataset[-more:] = rows
    os.utime(path, ns=(0, os.stat(path).st_mtime_ns + 5_000_000))


def _array(found: Any) -> gs.Array:
    assert isinstance(found, gs.Array)
    return found


def test_a_file_that_grows_gives_a_new_version(tmp_path: Path) -> None:
    values = np.arange(35.0).reshape(5, 7)
    _write(tmp_path / "run.h5", values, times=range(5))
    a = _array(gs.attach(tmp_path / "a.gs", tmp_path / "run.h5", "/e"))
    a[1:3, 2:5] = -5.0
    version = a.version
    assert a.refresh_sources() == version == a.version
    more = np.full((4, 7), 100.0)
    _grow(tmp_path / "run.h5", more, [5, 6, 7, 9])
    with pytest.raises(gs.errors.SourceChangedError, match=r"run\.h5"):
        a.read()
    told: list[tuple[int, int]] = []
    assert a.refresh_sources(message="grown", progress=lambda done, total: told.append((done, total))) == version + 1
    expected = np.concatenate([values, more])
    expected[1:3, 2:5] = -5.0
    assert a.shape == (9, 7)
    assert (np.asarray(a) == expected).all()
    assert a.dim("time").labels is not None and a.dim("time").labels.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 9]
    assert (a.sel(time=9)["e"] == 100.0).all()
    assert a.sources.column("state").to_pylist() == ["unchanged"]
    assert told[-1] == (1, 1)
    again = _array(gs.open(tmp_path / "a.gs"))
    assert (np.asarray(again) == expected).all()
    old = _array(gs.open(tmp_path / "a.gs", version=version))
    with pytest.raises(gs.errors.SourceChangedError):
        old.read()
    # What was updated lies in the store, and is there as before.
    assert old.shape == (5, 7)


def test_a_file_that_is_written_anew_is_indexed_anew(tmp_path: Path) -> None:
    _write(tmp_path / "run.h5", np.zeros((6, 8)), chunks=(2, 8))
    a = _array(gs.attach(tmp_path / "a.gs", tmp_path / "run.h5", "/e"))
    a[0, 0] = 7.0
    values = np.random.default_rng(3).normal(size=(9, 8))
    _write(tmp_path / "run.h5", values, chunks=(5, 3))
    a.refresh_sources()
    values[0, 0] = 7.0
    assert (np.asarray(a) == values).all()
    a.consolidate("all")
    assert a.sources.num_rows == 0
    os.remove(tmp_path / "run.h5")
    assert (np.asarray(a) == values).all()
    assert a.refresh_sources() == a.version


def test_many_lives_of_growth_and_updates(tmp_path: Path) -> None:
    random = np.random.default_rng(int(os.environ.get("GRIDSTONE_TEST_SEED", "2016")))
    for life in range(4):
        model = random.normal(size=(int(random.integers(1, 6)), 5))
        path = tmp_path / f"{life}.h5"
        _write(path, model, chunks=(int(random.integers(1, 4)), int(random.integers(1, 7))))
        a = _array(gs.attach(tmp_path / f"{life}.gs", path, "/e"))
        for _ in range(8):
            match int(random.integers(0, 4)):
                case 0:
                    more = random.normal(size=(int(random.integers(1, 5)), 5))
                    _grow(path, more)
                    a.refresh_sources()
                    model = np.concatenate([model, more])
                case 1:
                    low, left = int(random.integers(0, len(model))), int(random.integers(0, 5))
                    part = random.normal(size=model[low : low + 2, left : left + 3].shape)
                    a[low : low + 2, left : left + 3] = part
                    model[low : low + 2, left : left + 3] = part
                case 2:
                    a.consolidate("updates")
                case _:
                    a.vacuum(versions=2, safety_age="0s")
            assert a.shape == model.shape
            assert (np.asarray(a) == model).all(), life


def test_of_several_files_the_last_may_grow(tmp_path: Path) -> None:
    for n in range(3):
        _write(tmp_path / f"run_{n}.h5", np.full((2, 7), float(n)), times=[2 * n, 2 * n + 1])
    a = _array(gs.attach(tmp_path / "a.gs", str(tmp_path / "run_*.h5"), "/e", concat="time"))
    _grow(tmp_path / "run_2.h5", np.full((1, 7), 9.0), [6])
    a.refresh_sources()
    assert np.asarray(a)[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 9]
    _grow(tmp_path / "run_1.h5", np.full((1, 7), 9.0), [7])
    version = a.version
    with pytest.raises(
        gs.errors.InputError, match=r"run_1\.h5 has grown from \(2, 7\) to \(3, 7\), to where run_2\.h5"
    ):
        a.refresh_sources()
    assert a.refresh() == version
    assert np.asarray(a[4:])[:, 0].tolist() == [2, 2, 9]


def test_new_places_along_an_axis_of_files(tmp_path: Path) -> None:
    for n in range(2):
        _write(tmp_path / f"run_{n}.h5", np.full((2, 7), float(n)))
    a = _array(gs.attach(tmp_path / "a.gs", str(tmp_path / "run_*.h5"), "/e", concat="new:run"))
    for n in range(2):
        _write(tmp_path / f"run_{n}.h5", np.full((2, 7), 10.0 + n))
    a.refresh_sources()
    assert np.asarray(a)[:, 1, 3].tolist() == [10, 11]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((4, 7)), r"has the shape \(4, 7\) now, and had \(5, 7\)"),
        (np.zeros((5, 7), dtype="i4"), "int32"),
        (np.zeros((5, 7, 2)), "shape"),
    ],
)
def test_a_file_that_does_not_fit_any_more_is_refused(tmp_path: Path, values: Any, message: str) -> None:
    _write(tmp_path / "run.h5", np.ones((5, 7)))
    a = _array(gs.attach(tmp_path / "a.gs", tmp_path / "run.h5", "/e"))
    version = a.version
    _write(tmp_path / "run.h5", values, chunks=(2,) * values.ndim)
    with pytest.raises(gs.errors.InputError, match=message):
        a.refresh_sources()
    assert a.refresh() == version


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    _write(tmp_path / "run.h5", np.ones((5, 7)))
    a = _array(gs.attach(tmp_path / "a.gs", tmp_path / "run.h5", "/e"))
    os.remove(tmp_path / "run.h5")
    with pytest.raises(gs.errors.SourceChangedError, match=r"run\.h5 is gone"):
        a.refresh_sources()


def test_in_a_transaction(tmp_path: Path) -> None:
    _write(tmp_path / "run.h5", np.ones((5, 7)))
    a = _array(gs.attach(tmp_path / "a.gs", tmp_path / "run.h5", "/e"))
    _write(tmp_path / "run.h5", np.full((6, 7), 2.0))
    with gs.transaction(tmp_path / "a.gs") as t:
        inside = t["/"]
        inside.refresh_sources()
        inside[0, 0] = 3.0
        assert inside[5, 6] == 2.0
    a.refresh()
    assert (a[0, 0], a[5, 6], a.shape) == (3.0, 2.0, (6, 7))


def test_an_array_that_was_not_attached_says_so(tmp_path: Path) -> None:
    a = gs.array(tmp_path / "a.gs", np.ones(4))
    with pytest.raises(gs.errors.InputError, match="was not attached"):
        a.refresh_sources()


@pytest.mark.parametrize("beside", [True, False])
def test_a_copy_elsewhere_reads_the_same_files(tmp_path: Path, beside: bool) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    values = np.arange(35.0).reshape(5, 7)
    _write(here / "run.h5", values)
    a = _array(gs.attach(here / "a.gs", here / "run.h5", "/e"))
    a[0, 0] = -1.0
    values[0, 0] = -1.0
    target = here / "b.gs" if beside else there / "b.gs"
    # A file of the same size and time, as a careless backup leaves one, is not what the copy means.
    _write(there / "run.h5", np.zeros((5, 7)))
    gs.copy(here / "a.gs", target)
    if not beside:
        with pytest.raises(gs.errors.AccessError, match="here"):
            _array(gs.open(target)).read()
    copy = _array(gs.open(target, context=gs.Context(sources=[str(here)])))
    assert (np.asarray(copy) == values).all()
    assert copy.sources.column("uri").to_pylist() == ["run.h5" if beside else str((here / "run.h5").resolve())]
    # A copy of the copy means the same file.
    gs.copy(target, there / "c.gs", context=gs.Context(sources=[str(here)]))
    last = _array(gs.open(there / "c.gs", context=gs.Context(sources=[str(here)])))
    assert (np.asarray(last) == values).all()


@pytest.mark.parametrize("in_group", [True, False])
def test_a_folder_of_zarr_that_grows(tmp_path: Path, in_group: bool) -> None:
    zarr = pytest.importorskip("zarr")
    values = np.arange(12.0).reshape(3, 4)
    folder = tmp_path / "run.zarr"
    kinds = {"shape": (3, 4), "chunks": (2, 3), "dtype": "f8"}
    made = (
        zarr.open_group(folder, mode="w").create_array("e", **kinds) if in_group else zarr.create_array(folder, **kinds)
    )
    made[...] = values
    a = gs.attach(tmp_path / "a.gs", folder, "/e" if in_group else None)
    if isinstance(a, gs.Group):
        a = a[a.children()[0].path]
    a = _array(a)
    a[0, 0] = -1.0
    made.resize((5, 4))
    made[3:] = 7.0
    with pytest.raises(gs.errors.SourceChangedError):
        a.read()
    a.refresh_sources()
    expected = np.concatenate([values, np.full((2, 4), 7.0)])
    expected[0, 0] = -1.0
    assert (np.asarray(a) == expected).all()


def test_the_record_of_many_files_is_packed(tmp_path: Path) -> None:
    paths = [tmp_path / f"run_{n:03}.h5" for n in range(70)]
    for n, path in enumerate(paths):
        _write(path, np.full((1, 3), float(n)), chunks=(1, 3))
    a = _array(gs.attach(tmp_path / "a.gs", paths, "/e", concat="d0"))
    assert np.asarray(a)[:, 0].tolist() == list(range(70))
    assert [one.message for one in a.history()][-1] is None
    assert (np.asarray(a.at(version=a.version - 1)) == np.asarray(a)).all()


@pytest.mark.parametrize("state", ["changed", "gone", "not allowed"])
def test_a_repair_gives_up_no_version_for_a_file(tmp_path: Path, state: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "stores").mkdir()
    _write(outside / "run.h5", np.ones((5, 7)))
    a = _array(gs.attach(tmp_path / "stores" / "a.gs", outside / "run.h5", "/e"))
    a[0, 0] = 2.0
    version = a.version
    uri = a.uri
    context = gs.Context(sources=[] if state == "not allowed" else [str(outside)])
    if state == "changed":
        _grow(outside / "run.h5", np.zeros((1, 7)))
    elif state == "gone":
        os.remove(outside / "run.h5")
    found = gs.repair(uri, dry_run=False, cut=True, context=context)
    assert not found.damage and not found.lost
    again = _array(gs.open(uri, context=context))
    assert again.version == version
    if state == "changed":
        assert gs.verify(uri, context=context).damage
        again = _array(gs.open(uri, mode="r+", context=context))
        again.refresh_sources()
        assert (again[0, 0], again[5, 0], again[4, 6]) == (2.0, 0.0, 1.0)


def test_after_evolution_files_are_attached_and_looked_at_again(tmp_path: Path) -> None:
    _write(tmp_path / "a.h5", np.ones((2, 3)), names=("e", "f"), chunks=(1, 3))
    a = _array(gs.attach(tmp_path / "a.gs", tmp_path / "a.h5", ["/e", "/f"]))
    a.alter(add=gs.Attr("g", "int32", fill=9))
    a.alter(rename={"e": "east"})
    a.alter(drop="f")
    _write(tmp_path / "a.h5", np.full((3, 3), 2.0), names=("e", "f"), chunks=(1, 3))
    a.refresh_sources()
    assert (a["east"][...] == 2.0).all()
    assert (a["g"][...] == 9).all()
    _write(tmp_path / "b.h5", np.full((1, 3), 5.0), names=("e", "f"), chunks=(1, 3))
    a.attach(tmp_path / "b.h5", concat="d0")
    assert a["east"][:, 0].tolist() == [2, 2, 2, 5]
    assert a["g"][:, 0].tolist() == [9, 9, 9, 9]


def test_links_out_of_a_folder_are_not_copied(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for folder, word in (("in", "own"), ("out", "secret")):
        made = zarr.create_array(tmp_path / folder / "z", shape=(2,), chunks=(2,), dtype=str)
        made[:] = [word, word]
    chunk = tmp_path / "in" / "z" / "c" / "0"
    assert gs.attach(tmp_path / "in" / "sound.gs", tmp_path / "in" / "z") is not None
    chunk.unlink()
    chunk.symlink_to(tmp_path / "out" / "z" / "c" / "0")
    with pytest.raises(gs.errors.AccessError, match="link"):
        gs.attach(tmp_path / "in" / "s.gs", tmp_path / "in" / "z", "/array")


def test_a_time_that_is_none_is_read(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    times = np.array(["2000-01-01", "NaT", "2000-01-03"], "M8[ns]")
    dataset = xr.Dataset({"t": ("x", times)})
    dataset.to_netcdf(tmp_path / "a.nc", engine="netcdf4")
    dataset.to_zarr(tmp_path / "a.zarr")
    for name in ("a.nc", "a.zarr"):
        a = _array(gs.attach(tmp_path / f"{name}.gs", tmp_path / name, "/t"))
        assert np.array_equal(np.asarray(a).astype("M8[ns]"), times, equal_nan=True)


def test_labels_follow_coordinates_that_change_alone(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "run.zarr", mode="w")
    group.create_array("e", shape=(3, 2), chunks=(2, 2), dtype="f8", dimension_names=["time", "x"])[...] = 1.0
    group.create_array("time", shape=(3,), chunks=(3,), dtype="i8", dimension_names=["time"])[...] = [0, 1, 2]
    a = _array(gs.attach(tmp_path / "a.gs", tmp_path / "run.zarr", "/e"))
    assert a.dim("time").labels is not None
    version = a.version
    assert a.refresh_sources() == version
    group["time"][...] = [10, 20, 40]
    assert a.refresh_sources() == version + 1
    assert a.dim("time").labels.tolist() == [10, 20, 40]
    assert (np.asarray(a) == 1.0).all()
