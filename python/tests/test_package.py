"""The package: what it exports, how fast it imports, stores, groups, contexts, pickling."""

import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone import errors


def test_import_leaves_the_heavy_libraries_alone() -> None:
    heavy = ("pandas", "pyarrow", "matplotlib", "rich", "click")
    code = f"import sys, gridstone; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_exported_name_exists() -> None:
    for name in gs.__all__:
        assert getattr(gs, name) is not None
    assert gs.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="no attribute"):
        gs.nothing  # noqa: B018


def test_every_error_is_a_name_of_the_package() -> None:
    kinds = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and not name.startswith("_")}
    assert set(kinds) == set(errors.__all__) and set(kinds) < set(gs.__all__)
    for name, kind in kinds.items():
        assert getattr(gs, name) is kind and issubclass(kind, errors.GridstoneError | UserWarning)


def test_only_public_names_are_shown() -> None:
    """Whatever parts have been imported, which Python makes attributes of the package, and none hides a public name."""
    code = (
        "import importlib, pkgutil, types, gridstone as gs\n"
        "for part in pkgutil.walk_packages(gs.__path__, 'gridstone.'):\n"
        "    part.name.endswith('__main__') or importlib.import_module(part.name)\n"
        "shown = [name for name in dir(gs) if not name.startswith('__')]\n"
        "modules = [name for name in shown if isinstance(getattr(gs, name), types.ModuleType)]\n"
        "print(shown == sorted(set(gs.__all__) - {'__version__'}), modules)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True ['chart', 'errors', 'io', 'partials', 'plot', 'xarray']"


@pytest.mark.parametrize(
    ("name", "base"),
    [("SchemaError", ValueError), ("BoundsError", IndexError), ("NotFoundError", FileNotFoundError),
     ("BudgetError", MemoryError), ("ExistsError", FileExistsError), ("StorageError", OSError),
     ("AccessError", PermissionError), ("InputError", ValueError), ("ConflictError", Exception),
     ("UnsupportedError", Exception)],
)  # fmt: skip
def test_errors_are_what_python_code_catches(name: str, base: type[Exception]) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, base) and issubclass(kind, errors.GridstoneError)
    assert str(kind("what happened")) == "what happened"
    assert str(pickle.loads(pickle.dumps(kind("what happened")))) == "what happened"


def test_stores(store_uri: str) -> None:
    assert not gs.exists(store_uri)
    with pytest.raises(errors.NotFoundError):
        gs.open(store_uri)
    with pytest.raises(errors.NotFoundError):
        gs.delete(store_uri)
    gs.array(store_uri, np.zeros(3))
    assert gs.exists(store_uri) and gs.ls(store_uri) == [("/", "/", "array")]
    with pytest.raises(errors.ExistsError):
        gs.array(store_uri, np.zeros(3))
    assert gs.array(store_uri, np.ones(4), overwrite=True)[...].tolist() == [1] * 4
    assert gs.open(store_uri).shape == (4,)
    with pytest.raises(errors.NotFoundError):
        gs.open(store_uri, version=99)
    for wrong in ({"mode": "w"}, {"mode": "r+", "version": 1}, {"version": 1, "timestamp": 2}):
        with pytest.raises(errors.InputError):
            gs.open(store_uri, **wrong)
    gs.delete(store_uri)
    assert not gs.exists(store_uri)


def test_groups(store_uri: str) -> None:
    root = gs.group(store_uri, mode="a")
    root.create("a", gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", int)]))
    inner = root.group("inner")
    gs.array(store_uri, np.arange(3), path="/inner/b")
    assert [(e.name, e.kind) for e in gs.ls(store_uri)] == [("a", "array"), ("inner", "group")]
    assert "b" in inner and len(inner) == 1 and list(root) == ["a", "inner"]
    assert root["a"].shape == (10,) and inner["b"][...].tolist() == [0, 1, 2]
    assert gs.group(store_uri, path="/inner").path == "/inner"
    assert pickle.loads(pickle.dumps(gs.group(store_uri)))["a"].path == "/a"
    with pytest.raises(errors.NotFoundError):
        root["c"]


def test_what_an_array_says_of_itself(store_uri: str) -> None:
    array = gs.array(store_uri, np.zeros((100, 200), np.float32), tile=(30, 50))
    assert (array.ndim, array.shape, array.dims) == (2, (100, 200), ("d0", "d1"))
    assert (array.dtype, array.nbytes, array.chunks, array.tile) == (np.float32, 80_000, (30, 50), (30, 50))
    assert array.domain == ((0, 99), (0, 199)) == array.nonempty_domain
    assert not array.sparse and array.mode == "r+" and array.timestamp.tzinfo is not None
    assert array.fragments.num_rows == 1 and array.fragments["cells"].to_pylist() == [20_000]
    assert array.tiles().num_rows == 16 and set(array.tiles().column_names) >= {"fragment", "cells", "d0_lo", "d1_hi"}
    assert "dense" in repr(array) and "<table>" in array._repr_html_() and "value" in repr(array["value"])
    assert array.verify()["damage"] == []
    with array:
        pass
    with pytest.raises(errors.InputError, match="closed"):
        array[0]
    assert "closed" in repr(array)


def test_brackets_raise_what_a_mapping_would(store_uri: str) -> None:
    """A name that is not there is a KeyError too, told as all errors are, and pickled."""
    array = gs.array(store_uri, np.arange(6).reshape(2, 3))
    for found, kind in ((array, errors.SchemaError), (array.read(), errors.InputError)):
        with pytest.raises(KeyError, match=r"^[a-z ]+ 'zz'; there are 'value'$") as told:
            found["zz"]
        assert isinstance(told.value, kind) and isinstance(told.value, ValueError)
        again = pickle.loads(pickle.dumps(told.value))
        assert type(again) is type(told.value) and str(again) == str(told.value) and again.args == told.value.args
    with pytest.raises(KeyError):
        array["zz"] = 3
    with pytest.raises(errors.SchemaError) as plain:
        array.schema.attr("zz")
    assert type(plain.value) is errors.SchemaError


def test_sizes_and_membership(store_uri: str, stores: Stores) -> None:
    array = gs.array(store_uri, np.zeros((4, 5), [("a", "f4"), ("b", "i8")]))
    assert (array.size, array.nbytes, np.size(array)) == (20, 240, 20)
    assert [(array[name].size, array[name].nbytes) for name in "ab"] == [(20, 80), (20, 160)]
    dims = [gs.Dim("x", (0, 2**40 - 1), 10), gs.Dim("y", (0, 2**40 - 1), 10)]
    cells = gs.create(stores("s"), gs.Schema(dims, [gs.Attr("v", "float32[3]")], sparse=True))
    assert cells.size == 2**80 and cells["v"].nbytes == 0
    cells.write_cells({"x": [1, 2], "y": [1, 2]}, np.zeros((2, 3), "f4"))
    assert cells["v"].nbytes == 24 and cells["v"].size == 2**80
    floats = gs.create(stores("f"), gs.Schema([gs.Dim("x", (0.0, 1.0), dtype="f8")], [gs.Attr("v", int)], sparse=True))
    with pytest.raises(errors.SchemaError, match="no number of positions"):
        floats.size  # noqa: B018
    for held, name in ((array, "a"), (array["b"], "b"), (cells, "v"), (floats["v"], "v")):
        for value in (3, "a", None):
            with pytest.raises(TypeError, match=rf"gridstone\.col\('{name}'\) == value.*schema_names"):
                assert value in held


def test_nothing_written(store_uri: str) -> None:
    array = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "float32", fill=2.5)]))
    assert array.nonempty_domain is None and array.fragments.num_rows == 0 and array.tiles().num_rows == 0
    assert array[...].tolist() == [2.5] * 10


@pytest.mark.parametrize(
    ("shape", "itemsize", "tile"),
    [((100,), 8, (100,)), ((10_000, 10_000), 4, (625, 625)), ((4, 1_000_000), 1, (4, 250_000))],
)
def test_automatic_tiles(shape: tuple[int, ...], itemsize: int, tile: tuple[int, ...]) -> None:
    from gridstone.schema.tile_shape import auto_tile

    assert auto_tile(shape, itemsize) == tile


def test_pickles_are_small_and_show_the_same(store_uri: str) -> None:
    array = gs.array(store_uri, np.arange(100_000))
    reader = gs.open(store_uri)
    data = pickle.dumps(reader)
    assert len(data) < 1_000
    array[0] = 7
    again = pickle.loads(data)
    assert again[0] == 0 and again.version == reader.version
    assert again.refresh() == array.version and again[0] == 7
    assert pickle.loads(pickle.dumps(array)).mode == "r+"
    with pytest.raises(errors.BoundsError):
        pickle.loads(pickle.dumps(array.at(version=1))).refresh()


def test_threads_share_an_array(store_uri: str) -> None:
    values = np.arange(90_000).reshape(300, 300)
    array = gs.array(store_uri, values, tile=(50, 50))
    wrong: list[int] = []

    def work(number: int) -> None:
        for i in range(20):
            if not np.array_equal(array[number : number + 100, i:], values[number : number + 100, i:]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_reads(store_uri) -> None:
    array = gs.array(store_uri, np.arange(10_000))
    assert array[...].sum() == 49_995_000
    child = os.fork()
    if child == 0:
        os._exit(0 if array[...].sum() == 49_995_000 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_contexts() -> None:
    context = gs.Context("64MiB", threads=2, cache="1.5MB", durability="close")
    assert (context.memory_budget, context.cache, context.threads) == (64 << 20, 1_500_000, 2)
    assert pickle.loads(pickle.dumps(context)) == context
    for wrong in (
        {"memory_budget": "much"},
        {"threads": 0},
        {"durability": "some"},
        {"verify": "never"},
        {"memory_budget": 0},
        {"key": b"k"},
    ):
        with pytest.raises(errors.InputError):
            gs.Context(**wrong)
    with pytest.raises(errors.UnsupportedError):
        gs.Context(io="mmap")


def test_progress_is_told(store_uri: str) -> None:
    told: list[tuple[int, int]] = []
    array = gs.array(store_uri, np.zeros((500, 500)))
    array.read(progress=lambda done, total: told.append((done, total)))
    assert told and told[-1][0] == told[-1][1] > 0


def test_importing_takes_no_other_library_along() -> None:
    heavy = ["pandas", "polars", "scipy", "sparse", "pyarrow.dataset", "pyarrow.parquet"]
    code = f"import sys, gridstone.io; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
