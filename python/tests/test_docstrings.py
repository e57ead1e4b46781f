"""The examples of docstrings run as printed, each in a folder with the stores that it takes for granted.

An example is a block of `>>>`, whose output is compared, or an indented block of code. Docstrings of the reference that
show one are found by walking through the package, so that none is left out.
"""

import doctest
import importlib
import inspect
import pkgutil
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dask
import dask.array as da
import duckdb
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

import gridstone as gs
from gridstone.dask import blocks
from gridstone.xarray.backend import GridstoneBackend

ROOT = Path(__file__).parents[2]
APART = ("gridstone.cli", "gridstone.demo", "gridstone.__main__", "gridstone.foreign.worker", "gridstone.foreign.child")
SECTION = re.compile(r"(Args|Returns|Raises|Yields|Example|Examples):$")


def modules() -> Iterator[ModuleType]:
    yield gs
    for part in pkgutil.walk_packages(gs.__path__, "gridstone."):
        if not part.name.startswith(APART):
            yield importlib.import_module(part.name)


def documented() -> dict[str, str]:
    """The docstrings of public functions, classes and methods, by where they are defined."""
    found: dict[str, str] = {}
    for module in modules():
        for name, one in vars(module).items():
            if not name.startswith("_") and getattr(one, "__module__", None) == module.__name__:
                found |= _docstrings(f"{module.__name__.removeprefix('gridstone.')}.{name}", one)
    return found


def _docstrings(name: str, one: Any) -> Iterator[tuple[str, str]] | dict[str, str]:
    found = {name: one.__doc__ or ""} if inspect.isclass(one) or callable(one) else {}
    for member, held in vars(one).items() if inspect.isclass(one) else ():
        plain = getattr(held, "fget", None) or getattr(held, "__func__", held)
        is_ours = inspect.isfunction(plain) and plain.__module__.startswith("gridstone.")
        if is_ours and (not member.startswith("_") or member in ("__getitem__", "__setitem__")):
            found[f"{name}.{member}"] = plain.__doc__ or ""
    return {key: inspect.cleandoc(text) for key, text in found.items()}


def blocks_of(text: str) -> list[str]:
    """The indented blocks of code that stand between paragraphs."""
    blocks: list[str] = []
    lines, in_section, in_block = text.splitlines(), False, False
    for number, line in enumerate(lines):
        if SECTION.match(line):
            in_section = True
        elif line and not line.startswith(" "):
            in_section = False
        is_code = line.startswith("    ") and not in_section and not line.lstrip().startswith((">>>", "..."))
        if is_code and (in_block or (number and not lines[number - 1])):
            blocks = [*blocks[:-1], f"{blocks[-1]}\n{line[4:]}"] if in_block else [*blocks, line[4:]]
            in_block = True
        else:
            in_block = False
    return blocks


TEXTS = documented()
PROMPTED = sorted(name for name, text in TEXTS.items() if ">>>" in text)
BLOCKS = sorted(name for name, text in TEXTS.items() if blocks_of(text))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stores and files that examples name."""
    folder = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(1)
    names = ("lon", "t", "mmsi", "sog", "kind", "status", "ship", "k", "v")
    kinds = ("float64", "datetime64[s]", "int32", "float32", "string", "string", "int16", "int8", "float64")
    attrs = [gs.Attr(name, kind) for name, kind in zip(names, kinds, strict=True)]
    ships = gs.create(folder / "ais.gs", gs.Schema([gs.Dim("x", (0, 999))], attrs, sparse=True, duplicates=True))
    ships.write_cells({"x": np.arange(0, 1000, 2)}, cells(rng, 500))
    days = np.arange("2026-03-01", "2026-03-06", dtype="M8[D]")
    for name, attr in (("sea", "v"), ("air", "t")):
        dims = {"day": days, "lat": np.linspace(50, 59, 10), "lon": np.linspace(0, 19, 20)}
        made = gs.array(folder / f"{name}.gs", np.zeros((5, 10, 20)), dims=list(dims), coords=dims, name=attr)
        made[0:2] = rng.normal(size=(2, 10, 20))
        made[2] = rng.normal(size=(10, 20))
    by_row = gs.Schema([gs.Dim("y", (0, 19)), gs.Dim("x", (0, 5))], [gs.Attr("t", float)])
    gs.create(folder / "long.gs", by_row)
    rows = gs.create(folder / "rows.gs", gs.Schema([gs.Dim("y", (0, 4)), gs.Dim("x", (0, 3))], [gs.Attr("v", float)]))
    rows[...] = 1
    by_day = gs.Schema([gs.Dim("day", (0, 9))], [gs.Attr("v", float)], sparse=True)
    for path in ("/ships", "/north/buoys"):
        gs.create(folder / "store.gs", by_day, path=path).write_cells([0, 5], [1.0, 2.0])
    genes = gs.create(
        folder / "genes.gs", gs.Schema([gs.Dim("gene", dtype="string")], [gs.Attr("v", float)], sparse=True)
    )
    genes.write_cells([["ACE", "BRCA1", "BRCA2", "TP53"]], [1.0, 2.0, 3.0, 4.0])
    shutil.copytree(folder / "ais.gs", folder / "quick.gs")
    shutil.copytree(ROOT / "vectors" / "gs0" / "many_commits" / "store", folder / "old.gs")
    with h5py.File(folder / "run.h5", "w") as file:
        file["e"] = np.arange(24.0).reshape(4, 6)
    return folder


def cells(rng: np.random.Generator, count: int) -> dict[str, Any]:
    return {
        "lon": rng.uniform(0, 20, count),
        "t": np.datetime64("2026-03-01", "s") + np.sort(rng.integers(0, 86_400, count)),
        "mmsi": rng.choice([123456789, 367000001], count),
        "sog": rng.uniform(0, 25, count).astype("float32"),
        "kind": rng.choice(["tug", "ferry", "cargo"], count).astype(object),
        "status": rng.choice(["moored", "under way"], count).astype(object),
        "ship": rng.integers(0, 9, count).astype("int16"),
        "k": rng.integers(0, 3, count).astype("int8"),
        "v": rng.normal(size=count),
    }


# Which store `a` is, for examples that name it without opening it; the others have the ships.
ARRAYS = {
    "arrays.append.Appendable.append": "rows.gs",
    "arrays.attached.Attached.refresh_sources": "attached.gs",
    "arrays.drawing.Drawable.plot": "air.gs",
    "arrays.reduce.Reducible.sum": "sea.gs",
    "arrays.reduce.ReducibleArray.reduce": "air.gs",
    "context.showing.set_options": "sea.gs",
    "dask.blocks.write_blocks": "long.gs",
    "plot.plot": "air.gs",
    "stores.transaction.commit": "sea.gs",
}


# Stores that an example makes: they are not there before.
MADE = {"dask.store.store": "sea.gs", "xarray.write.to_gridstone": "sea.gs"}


def of_other_libraries(name: str) -> dict[str, Any]:
    """A dataset of xarray, which `reduce` takes from a store, and arrays of Dask."""
    days = np.arange("2026-01-01", "2026-01-06", dtype="M8[D]").astype("M8[ns]")
    coords = {"time": days, "lat": [50.0, 51.0], "lon": [1.0, 2.0, 3.0]}
    ds = xr.Dataset({"t": (("time", "lat", "lon"), np.arange(30.0).reshape(5, 2, 3))}, coords)
    if name == "xarray.reduction.reduce":
        gs.to_gridstone(ds, "days.gs")
        ds = xr.open_dataset("days.gs", engine=GridstoneBackend)
    x = da.zeros((4, 6), chunks=(2, 3))
    held = {"write_blocks": blocks.write_blocks, "receipts_of": blocks.receipts_of, "dask": dask}
    return {"ds": ds, "x": x, "t": x + 1, "s": x + 2, **held}


@pytest.fixture
def names(
    request: pytest.FixtureRequest, stores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """What an example finds, in a folder of its own."""
    name = request.node.callspec.params["name"]
    folder = tmp_path / "here"
    shutil.copytree(stores, folder)
    monkeypatch.chdir(folder)
    if ARRAYS.get(name) == "attached.gs":
        gs.attach("attached.gs", "run.h5", "/e")
    held: dict[str, Any] = {"gs": gs, "np": np, "pd": pd, "pl": pl, "duckdb": duckdb, "h5py": h5py}
    ships, genes = gs.open("ais.gs", "r+"), gs.open("genes.gs")
    a = gs.open(ARRAYS.get(name, "ais.gs"), "r+")
    if name in MADE:
        gs.delete(MADE[name])
    boxes = [{"x": (0, 499)}, {"x": (500, 999)}]
    held |= {"a": a, "ships": ships, "genes": genes, "boxes": boxes, "box": boxes[0]}
    held |= of_other_libraries(name)
    with gs.set_options():  # What an example sets is as before after it.
        yield held


def test_there_are_examples() -> None:
    assert len(PROMPTED) >= 25 and len(BLOCKS) >= 14, "the docstrings have lost their examples"
    assert set(ARRAYS) <= {*PROMPTED, *BLOCKS, *TEXTS}, "an array is prepared for an example that is gone"
    assert "stores.store.open" in TEXTS and "arrays.read.Readable.read" in TEXTS


@pytest.mark.parametrize("name", PROMPTED)
def test_examples_give_what_they_print(name: str, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(TEXTS[name], names, name, None, 0)
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_ONLY_FIRST_FAILURE)
    outcome = runner.run(test, out=printed.append)
    assert outcome.attempted > 0 and outcome.failed == 0, "".join(printed)


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_code_run(name: str, names: dict[str, Any]) -> None:
    for block in blocks_of(TEXTS[name]):
        exec(compile(block, name, "exec"), names)


def test_an_example_that_is_wrong_is_noticed() -> None:
    wrong = "Doubles.\n\n    1 / 0\n\nExample:\n    >>> 1 + 1\n    3\n"
    assert blocks_of(wrong) == ["1 / 0"]
    test = doctest.DocTestParser().get_doctest(wrong, {}, "wrong", None, 0)
    assert doctest.DocTestRunner().run(test, out=lambda _: None).failed == 1
