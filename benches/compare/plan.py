"""The rows of the comparison: what is done, by which systems, on which store, and what is to be reached."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import archives
import cells
import datasets
import dense
import parallel
import questions
import startup
import upkeep
from files import Files
from inputs import MANY, WARMUP_READS, Size
from reach import (
    Reach,
    at_most,
    before_the_end,
    crossover,
    faster,
    growth_at_most,
    near_limit,
    no_larger,
    no_larger_than_best,
    no_slower,
    scaling,
    sooner,
    within_case,
    within_variant,
)
from systems import (
    attached,
    duckdb,
    gridstone,
    hdf5,
    icechunk,
    netcdf,
    package,
    parquet,
    raw,
    tensorstore,
    tiledb,
    zarr,
    zstd,
)
from systems.base import System
from task import Builder, Procedure
from weather import MONTH, Weather


@dataclass(frozen=True)
class Case:
    """One line of the results. Its key is the row's, with what tells the row's cases apart."""

    key: str
    family: str
    """Cases of one family share a chart."""
    title: Callable[[Size], str]
    systems: Sequence[System]
    """Gridstone's judged variant first."""
    run: Procedure
    store: str = ""
    """The store that it reads or copies, of `STORES`."""
    reaches: tuple[Reach, ...] = ()
    needs: tuple[str, ...] = ()
    """Input files, of `Inputs.make`."""
    threads: int = 2
    processes: int = 1
    bare: bool = False
    """Whether the procedure prepares the system itself."""
    group: str = ""
    """Cases of one group are parts of what one process finds."""
    part: str = ""

    @property
    def row(self) -> str:
        """The row of the targets."""
        return self.key.partition("-")[0]


STORES: dict[str, Builder] = {
    "dense": dense.with_updates(0),
    "dense+10": dense.with_updates(10),
    "dense+100": dense.with_updates(100),
    "dense+1000": dense.with_updates(1_000),
    "dense+merged": upkeep.merged(dense.with_updates(1_000)),
    "cells": cells.build_loaded(0),
    "cells+10": cells.build_loaded(10),
    "cells+100": cells.build_loaded(100),
    "cells+1000": cells.build_loaded(1_000),
    "cells+merged": upkeep.merged(cells.build_loaded(1_000)),
    "piled": upkeep.piled,
    "specks": upkeep.specks(100_000),
    **questions.BUILDERS,
    **archives.BUILDERS,
    **datasets.BUILDERS,
    "commits1": cells.build_commits(1),
    "commits100": cells.build_commits(100),
    "commits1000": cells.build_commits(1_000),
}

STORE_NEEDS = {name: () if name.startswith(("dense", "specks")) else ("cells",) for name in STORES}
STORE_NEEDS |= {name: (name,) for name in (*questions.BUILDERS, *archives.BUILDERS, *datasets.BUILDERS)}


def _text(text: str) -> Callable[[Size], str]:
    def title(size: Size) -> str:
        return text.format(
            n=size.side, t0=size.tile[0], t1=size.tile[1], box=size.box, cells=size.cells, rows=size.rows, some=size
        )

    return title


def _peers(variant: str) -> list[System]:
    made = [tiledb.Dense, hdf5.Dense, zarr.Dense, zarr.Zarrs, tensorstore.Dense]
    return [kind(variant) for kind in made]


_RAW, _MAPPED = raw.Dense(), raw.Mapped()
_MEMORY = [raw.Memory(), raw.Memory("two threads")]
_NONE = [gridstone.Dense("none"), *_peers("none")]
_PLAIN = [*_NONE, _RAW]
_BOXES = [*_NONE, _MAPPED]
"""Where a flat file is read or changed in places that do not lie in a row, which is no limit."""
_ZSTD = [gridstone.Dense("zstd:3"), gridstone.Dense("auto"), *_peers("zstd:3")]
_PACKED = [
    gridstone.Dense("auto"),
    gridstone.Dense("zstd:3"),
    gridstone.Dense("shuffle + zstd:3"),
    *_peers("zstd:3"),
    *_peers("shuffle + zstd:3"),
]
_GZIP = [gridstone.Dense("gzip:6"), *_peers("gzip:6")]
_IN_PLACE = [gridstone.Dense("none"), tiledb.Dense("none"), hdf5.Dense("none")]
_THREADED = [system for system in _ZSTD if system.family != "h5py" and system.variant != "auto"]


def _count(size_count: int) -> str:
    return f"{size_count // 1000}k" if size_count < 1_000_000 else f"{size_count // 1_000_000}m"


def _dense_loads() -> list[Case]:
    shown = "{n:,} x {n:,} int32, tile {t0:,} x {t1:,}"
    packed = (faster(2, "zstd:3"), faster(1.2, "shuffle + zstd:3"), no_larger())
    return [
        Case("D1a", "load", _text(f"load uncompressed, {shown}"), _PLAIN, dense.load("paper"),
             reaches=(near_limit(1.1), faster(2.5, "tiledb"))),
        Case("D1b", "load", _text(f"load compressed, {shown}"), _PACKED, dense.load("paper"), reaches=packed),
        Case("D1b-field", "load", _text("the same, of a smooth field with noise"), _PACKED, dense.load("field"),
             reaches=packed, needs=("field",)),
        Case("D1c", "load", _text("load gzip-6, a fifth of it"), _GZIP, dense.load("fifth"),
             reaches=(faster(2, "zarr"), no_larger("zarr"))),
    ]  # fmt: skip


def _dense_updates() -> list[Case]:
    found = [
        Case(f"D2-{_count(n)}", "update", _updates(n, "uncompressed"), _BOXES, dense.update(n), "dense", (faster(2),))
        for n in (1_000, 10_000, 100_000)
    ]
    found += [
        Case(f"D2-zstd-{_count(n)}", "update", _updates(n, "compressed"), _ZSTD, dense.update(n), "dense", (faster(2),))
        for n in (1_000, 10_000, 100_000)
    ]
    for how in ("full", "close"):
        reaches = (at_most(1.2),) if how == "close" else ()
        title = _text(f"commit of 1,000 cells to a dense array, durability {how}")
        run = dense.commit(durable=how == "full")
        found.append(Case(f"D5b-{how}", "update", title, _IN_PLACE, run, "dense", reaches))
    title = _text(f"mean of {MANY} commits of 1,000 cells to a dense array, one after the other, durability close")
    run = dense.commit(durable=False, many=True)
    return [*found, Case("D5b-mean", "update", title, _IN_PLACE, run, "dense")]


def _updates(count: int, what: str) -> Callable[[Size], str]:
    return lambda size: f"{size.some(count):,} random updates, {what}, durable"


def _dense_reads() -> list[Case]:
    box = "{box:,} x {box:,} box"
    found = [
        Case("D3a", "read", _text("one tile, uncompressed"), _BOXES, dense.read("tile"), "dense",
             (faster(1.2), faster(5, "tiledb"))),
        Case("D3b-column", "read", _text("one column, uncompressed"), _BOXES, dense.read("column"), "dense",
             (faster(2),)),
        Case("D3b-row", "read", _text("one row, uncompressed"), _PLAIN, dense.read("row"), "dense", (faster(1),)),
        Case("D3c-warm", "read", _text(f"random {box}, warm"), _BOXES, dense.read("box"), "dense", (faster(2),)),
        Case("D3c-cold", "read", _text(f"open + random {box}, cold"), _BOXES, dense.read_cold("box"), "dense",
             (faster(1.2),)),
        Case("D3d-tile", "read", _text("one tile, zstd"), _ZSTD, dense.read("tile"), "dense", (faster(1.5),)),
        Case("D3d-box", "read", _text(f"random {box}, zstd"), _ZSTD, dense.read("box"), "dense", (faster(4),)),
        Case("D3d-row", "read", _text("one row, zstd"), _ZSTD, dense.read("row"), "dense", (faster(20),)),
    ]  # fmt: skip
    for count, times in ((1_000, 1.0), (10_000, 1.5), (100_000, 1.5)):
        found.append(Case(f"D4-{_count(count)}", "points", _elements(count, "uncompressed"), _BOXES,
                          dense.points(count), "dense", (faster(times),)))  # fmt: skip
    found.append(Case("D4-zstd-1k", "points", _elements(1_000, "zstd"), _ZSTD, dense.points(1_000), "dense",
                      (faster(10),)))  # fmt: skip
    for updates, times in ((0, None), (10, None), (100, 1.1), (1_000, 1.5)):
        state = f"dense+{updates}" if updates else "dense"
        reaches = () if times is None else (within_case(times, "D5a-0"),)
        title = _after(updates)
        run = dense.read("box", state, updates=updates)
        found.append(Case(f"D5a-{updates}", "read", title, _IN_PLACE, run, state, reaches))
    scans = ((_NONE, "none", (faster(2),)), (_ZSTD, "zstd", (faster(1.5),)))
    for systems, name, reaches in scans:
        limits = [_RAW, raw.Dense("two threads"), *_MEMORY] if name == "none" else _MEMORY
        title = _text(f"everything into a reused buffer, {name}")
        found.append(Case(f"D6-{name}", "scan", title, [*systems, *limits], dense.scan, "dense", reaches))
    return found


def _elements(count: int, what: str) -> Callable[[Size], str]:
    return lambda size: f"{size.some(count):,} random elements, {what}"


def _after(updates: int) -> Callable[[Size], str]:
    return lambda size: f"box read at 1 + {size.times(updates) if updates else 0:,} fragments"


def _parallel() -> list[Case]:
    found = []
    for what, run, words in (
        ("load", parallel.load, "load zstd"),
        ("box", parallel.read, f"{parallel.BOXES} boxes of the zstd array"),
    ):
        for key, threads, processes in (("t1", 1, 1), ("t2", 2, 1), ("p2", 1, 2)):
            reaches = () if key == "t1" else (scaling(1.8, f"P1-{what}-t1", f"P1-{what}-t2"),)
            systems = [*_THREADED, zstd.Dense()] if processes == 1 else _THREADED
            title = _text(f"{words}, {processes} process x {threads} thread".replace("2 process", "2 processes")
                          .replace("2 thread", "2 threads"))  # fmt: skip
            found.append(Case(f"P1-{what}-{key}", "parallel", title, systems, run, "dense" if what == "box" else "",
                              reaches, threads=threads, processes=processes))  # fmt: skip
    return found


def _cell_cases() -> list[Case]:
    one = gridstone.Cells("auto, one write")
    orders = [one, gridstone.Cells("auto, one write, hilbert")]
    peers = [tiledb.Cells("row"), tiledb.Cells("hilbert"), duckdb.Cells("sorted"), duckdb.Parquet("DuckDB"),
             parquet.PyArrow("pyarrow"), parquet.Polars("polars"), duckdb.Cells("sorted, Arrow")]  # fmt: skip
    loaders = [
        gridstone.Cells("auto"),
        gridstone.Cells("zstd:3"),
        one,
        *peers[:-1],
        duckdb.Cells("unsorted"),
        raw.Cells(),
    ]
    writers = [one, peers[0], peers[2], parquet.PyArrow("pyarrow")]
    found = [
        Case("S1a", "cells load", _text("load {cells:,} cells in 12 unsorted batches"), loaders, cells.load,
             reaches=(faster(2), no_larger_than_best()), needs=("cells",)),
    ]  # fmt: skip
    targets = {
        "S2a": ("dense", {1_000: 2.5, 10_000: 2.5, 100_000: 2, 1_000_000: 2}),
        "S2b": ("thin", {1_000: 2, 10_000: 2}),
    }
    for row, (area, counts) in targets.items():
        for count, times in counts.items():
            own = [*orders, gridstone.Cells("auto, 12 commits")] if row == "S2a" else orders
            found.append(Case(f"{row}-{_count(count)}", "cells read", _cell_box(count, area), [*own, *peers],
                              cells.read(f"{area}{count}"), "cells", (faster(times),), ("cells",)))  # fmt: skip
    found.append(Case("S2c", "cells read", _selected(100_000), [*orders, *peers],
                      cells.select("dense100000", "sog", 150), "cells", (faster(2),), ("cells",)))  # fmt: skip
    for how, most in (("full", 1.5), ("close", 0.7)):
        title = _text(f"commit of 1,000 cells, durability {how}")
        found.append(Case(f"S3a-{how}", "cells commit", title, writers, cells.commit(durable=how == "full"), "cells",
                          (at_most(most),), ("cells",)))  # fmt: skip
    title = _text(f"mean of {MANY} commits of 1,000 cells, one after the other, durability close")
    run = cells.commit(durable=False, many=True)
    found.append(Case("S3a-mean", "cells commit", title, writers, run, "cells", needs=("cells",)))
    readers = [one, peers[0], tiledb.Cells("row, gathered"), *peers[2:5]]
    for commits, times in ((0, 1.5), (10, None), (100, None), (1_000, 2.0)):
        state = f"cells+{commits}" if commits else "cells"
        run = cells.read("dense1000", state, commits=commits)
        reaches = () if times is None else (faster(times),)
        found.append(Case(f"S3b-{commits}", "cells read", _box_after(commits), readers, run, state, reaches,
                          ("cells",)))  # fmt: skip
    return [*found, *_openings(readers)]


def _cell_box(count: int, area: str) -> Callable[[Size], str]:
    where = "harbours" if area == "dense" else "open sea"
    return lambda size: f"box of {max(10, round(count * size.scale)):,} cells, {where}"


def _selected(count: int) -> Callable[[Size], str]:
    return lambda size: f"one attribute in a box of {max(10, round(count * size.scale)):,} cells, where it is large"


def _box_after(commits: int) -> Callable[[Size], str]:
    return lambda size: (
        f"box of 1,000 cells (times the scale) at 1 + {size.times(commits) if commits else 0:,} fragments"
    )


def _openings(readers: list[System]) -> list[Case]:
    found = [Case("O1-dense", "open", _text("open a dense array + one cell"), _PLAIN, dense.open_one, "dense",
                  (at_most(0.5),))]  # fmt: skip
    for count, most in ((1, 0.5), (100, 2), (1_000, 8)):
        found.append(Case(f"O1-{count}", "open", _opened(count), readers, cells.look_up(count), f"commits{count}",
                          (at_most(most),), ("cells",)))  # fmt: skip
    return found


def _opened(count: int) -> Callable[[Size], str]:
    return lambda size: f"open a sparse array of {size.times(count):,} fragments + one cell"


def _tables() -> list[Case]:
    systems = [gridstone.Csv(""), tiledb.Csv(""), duckdb.Csv("unsorted"), duckdb.Csv("sorted"),
               duckdb.Csv("sorted Parquet"), parquet.Csv("polars, sorted")]  # fmt: skip
    title = _text("load a CSV file of {rows:,} rows")
    small = _text("load a CSV file of {rows:,} rows in a quarter of its size")
    return [
        Case("M1", "table", title, systems, cells.load_csv, reaches=(faster(1),), needs=("csv",)),
        Case("M1-budget", "table", small, [gridstone.Csv(", budget 64 MiB")], cells.load_csv,
             reaches=(growth_at_most(64),), needs=("csv",)),
    ]  # fmt: skip


def _questions() -> list[Case]:
    own = gridstone.Table("auto")
    tables = [own, duckdb.Table("unsorted"), duckdb.Table("sorted")]
    hours = questions.Question({"n": ("count", ""), "mean": ("mean", "sog")}, {"t": 3_600, "x": 10_000, "y": 10_000})
    bins = questions.Question({"n": ("count", ""), "total": ("sum", "b")}, {"x": 10_000})
    values = questions.Question({"n": ("count", ""), "total": ("sum", "b")}, {"a": None})
    cubes = [gridstone.Cube("auto"), gridstone.Cube("zstd:3"), zarr.Cube(), zarr.ZarrsCube(), zarr.DaskCube()]
    in_half = questions.ask_half("tracks", hours)
    found = [
        Case("M2", "question", _text("coordinates and an attribute where that is above its median, of {rows:,} cells"),
             tables, questions.select, "rows", (faster(2),)),
        Case("M4", "question", _text("count and sum by bins of a dimension, of {rows:,} cells"), tables,
             questions.ask("rows", bins), "rows", (faster(1.5),)),
        Case("Q1", "question", _text("count and sum by an attribute of one value per ten cells, of {rows:,} cells"),
             tables, questions.ask("rows", values), "rows", (faster(1),)),
        Case("Q2", "question", _text("count and mean by hour and square of a degree, half of {cells:,} positions"),
             tables, in_half, "tracks", (faster(1.5),)),
        Case("Q6", "question", _text("the same in SQL, through gridstone.sql"),
             [gridstone.Table("auto, SQL"), own, *tables[1:]], in_half, "tracks", (faster(0.8),)),
    ]  # fmt: skip
    for call, times in (("max", 2), ("sum", 10)):
        question = questions.Question({"found": (call, "b")})
        found.append(Case(f"M3-{call}", "question", _text(f"{call} of an attribute of {{rows:,}} cells"), tables,
                          questions.ask("rows", question), "rows", (faster(times),)))  # fmt: skip
    for axes, words in (((0,), "axis 0"), ((1, 2), "axes 1 and 2")):
        title = _cubed(words)
        found.append(Case(f"Q3-{len(axes)}", "question", title, cubes, questions.mean(axes), "cube", (faster(2),)))
    return sorted(found, key=lambda case: case.key)


def _cubed(words: str) -> Callable[[Size], str]:
    return lambda size: f"mean along {words} of {' x '.join(f'{n:,}' for n in size.cube)} float32"


def _startups() -> list[Case]:
    packages = [
        package.Package(name) for name in ("gridstone", "tiledb", "h5py", "zarr", "tensorstore", "duckdb", "numpy")
    ]
    title = _text('python -c "import …" less python -c pass')
    found = [Case("import", "import", title, packages, startup.imports, reaches=(at_most(150),), bare=True)]
    box, full = "read of a {box:,} x {box:,} box, zstd", f"until a read of {WARMUP_READS} is at full speed"
    parts = {
        "import": "import",
        "first": f"open + first {box}",
        "second": f"second {box}",
        "fifth": f"fifth {box}",
        "twentieth": f"twentieth {box}",
        "full": f"open + reads of a {{box:,}} x {{box:,}} box, zstd, {full}",
    }
    for group in ("warmup", "warmup-cold"):
        cold = group == "warmup-cold"
        run, words = startup.warmup(cold=cold), "a fresh process, cold" if cold else "a fresh process"
        for part in ("first", "twentieth", "full") if cold else parts:
            found.append(Case(f"{group}-{part}", group.replace("-", " "), _text(f"{words}: {parts[part]}"), _ZSTD, run,
                              "dense", bare=True, group=group, part=part))  # fmt: skip
    return found


_BUDGETS = (16, 64, 1024)
"""MiB."""


def _merges() -> list[Case]:
    def arrays(flags: str) -> gridstone.Dense:
        return gridstone.Dense(f"none{flags}")

    def points(flags: str) -> gridstone.Cells:
        return gridstone.Cells(f"auto, one write{flags}")

    sparse = [tiledb.Cells("row"), tiledb.Cells("hilbert"), duckdb.Cells("sorted"), duckdb.Parquet("DuckDB")]
    whole = _text("merge 12 unsorted batches of {cells:,} cells")
    small = _counted("merge {cells:,} cells and {count:,} commits of 1,000")
    many = _counted("merge {count:,} updates of a dense array")
    after = _counted("box read after a merge of 1 + {count:,} fragments")
    dense_merge, cells_merge = upkeep.merge_dense(1_000), upkeep.merge_cells("cells+1000", 1_000)
    found = [
        Case("D5c", "merge", many, [arrays(""), arrays(", all"), tiledb.Dense("none")], dense_merge, "dense+1000",
             (faster(3), growth_at_most(64))),
        Case("D5a-merged", "read", after, _IN_PLACE[:2], dense.read("box", "dense+merged", updates=1_000),
             "dense+merged"),
        Case("S1b", "merge", whole, [gridstone.Cells("auto"), *sparse],
             upkeep.merge_cells("piled"), "piled", (faster(2), growth_at_most(256)), ("cells",)),
        Case("S3c", "merge", small, [points(""), points(", tiered"), *sparse], cells_merge, "cells+1000",
             (faster(2), growth_at_most(256)), ("cells",)),
        Case("S3b-merged", "cells read", after, [points(""), *sparse],
             cells.read("dense1000", "cells+merged", commits=1_000), "cells+merged", (), ("cells",)),
    ]  # fmt: skip
    for budget in _BUDGETS:
        flags, reaches = f", all, budget {budget} MiB", (growth_at_most(budget + 32),)
        found.append(Case(f"D5c-budget-{budget}", "merge", _within(many, budget), [arrays(flags)], dense_merge,
                          "dense+1000", reaches))  # fmt: skip
        found.append(Case(f"S3c-budget-{budget}", "merge", _within(small, budget), [points(flags)], cells_merge,
                          "cells+1000", reaches, ("cells",)))  # fmt: skip
    title = _opened(100_000)
    found.append(Case("O2", "open", title, [gridstone.Cells("auto")], upkeep.look_up(100_000), "specks"))
    return found


def _counted(text: str) -> Callable[[Size], str]:
    return lambda size: text.format(count=size.times(1_000), cells=size.cells)


def _within(title: Callable[[Size], str], budget: int) -> Callable[[Size], str]:
    return lambda size: f"{title(size)}, all of it, budget {budget} MiB"


def _foreign() -> list[Case]:
    own, loaded, home, peer = attached.Attached(), attached.Loaded("auto"), attached.Home(), hdf5.Files()
    like, both = attached.Loaded("shuffle + gzip:4"), [own, loaded, peer]
    taken = [own, loaded, home, peer]
    first = (sooner(20, "loaded"), no_slower(1.3, "h5py"))
    boxes = "box of 20 steps of {stack}, "
    found = [
        Case("H5a", "foreign first", _filed("attach {stack}, gzip-4 + shuffle, and the mean of {chunks} whole chunks"),
             taken, archives.first_mean, reaches=first, needs=("stack",)),
        Case("H5a-process", "foreign first", _filed("the same, a process of its own: imports and all"), [own, peer],
             archives.process, reaches=(no_slower(1.3, "h5py"),), needs=("stack",)),
        Case("H5b", "foreign read", _filed("everything into a reused buffer, {stack}"), both, archives.scan, "stack",
             (faster(1.7, "h5py"),)),
        Case("H5b-question", "foreign read", _filed("the mean of everything, {stack}"), both, archives.scan_mean,
             "stack", (faster(1.7, "h5py"),)),
        Case("H5c", "foreign read", _filed(boxes + "a fifth of each side; mean of 100, one after the other"), both,
             archives.many_boxes, "stack", (faster(1.5),)),
        Case("H5d", "foreign read", _filed(boxes + "whole chunks"), [own, like, loaded, peer], archives.read("whole"),
             "stack", (within_variant(1.1, like.variant),)),
        Case("H5d-part", "foreign read", _filed(boxes + "a quarter of each chunk"), [own, like, loaded, peer],
             archives.read("part"), "stack"),
        Case("H5e-attach", "foreign many", _filed("attach {runs:,} files of 100 chunks as one array"), [own, peer],
             archives.join, reaches=(at_most(10_000),), needs=("series",)),
        Case("H5e-open", "foreign many", _filed("open what {runs:,} files became, and read one cell"), [own, peer],
             archives.look_up, "series", (at_most(50),)),
        Case("H5g", "foreign question", _filed("count, mean by bins of energy above two, of {count:,} particles"), both,
             archives.spectrum, "particles", (faster(1.5, "h5py"),)),
        Case("H5g-first", "foreign first", _filed("attach eight datasets of {count:,} particles, and ask so"), both,
             archives.first_spectrum, reaches=(before_the_end("loaded"),), needs=("particles",)),
        Case("H5h", "foreign question", _filed("attach {stack}, then 100 means of 25 steps"), taken,
             archives.aggregations, reaches=(crossover("loaded"), crossover("brought home")), needs=("stack",)),
    ]  # fmt: skip
    return found


def _filed(text: str) -> Callable[[Size], str]:
    def title(size: Size) -> str:
        files = Files(Path(), size.scale)
        stack = " x ".join(f"{n:,}" for n in files.shape)
        chunks = 4 * (files.first[0].stop - files.first[0].start)
        return text.format(stack=stack, chunks=chunks, runs=len(files.runs), count=files.count)

    return title


_SHUFFLED = "shuffle + zstd:3"


def _datasets() -> list[Case]:
    own, days = gridstone.Dataset("auto, even"), gridstone.Dataset("auto, days")
    packed = gridstone.Dataset(f"{_SHUFFLED}, even")
    even = [zarr.Dataset("zstd:3, even"), zarr.Dataset(f"{_SHUFFLED}, even"), zarr.ZarrsDataset(f"{_SHUFFLED}, even"),
            icechunk.Dataset(f"{_SHUFFLED}, even"), netcdf.Dataset(f"{_SHUFFLED}, even"),
            netcdf.H5netcdf(f"{_SHUFFLED}, even")]  # fmt: skip
    daily = [kind(f"{_SHUFFLED}, days") for kind in (zarr.Dataset, icechunk.Dataset, netcdf.Dataset)]
    all_of_it = [own, packed, days, *even, *daily]
    appenders = [own, days, *(system for system in (*even[1:-1], *daily))]
    reducing, means = (
        gridstone.Dataset("auto, even, reduce"),
        "mean over time of {part} of {{weather}} through Dask, two ",
    )
    whole = [own, reducing, even[1], *even[2:4]]
    found = [
        Case("X1", "dataset", _skies("write {weather} from memory"), all_of_it, datasets.load,
             reaches=(faster(1.5, "even"), no_larger("even")), needs=("weather",)),
        Case("X2-map", "dataset", _skies("open {weather}, and one map"), all_of_it, datasets.read("map"), "weather",
             (faster(1.2, "even"),)),
        Case("X2-series", "dataset", _skies("open {weather}, and the series of a point"), all_of_it,
             datasets.read("series"), "weather", (faster(3, "even"),)),
    ]  # fmt: skip
    for durable in (True, False):
        group = "X3" if durable else "X3-close"
        run, how = datasets.append(durable=durable), "full" if durable else "close"
        for part, words in (("append", "append a day, mean of {appended}"), ("series", "then, open and a point's")):
            title = _skies(f"{words}, durability {how}" if part == "append" else f"{words} series")
            found.append(Case(f"{group}-{part}", "dataset", title, appenders, run, reaches=(faster(2, "even"),),
                              needs=("weather",), group=group, part=part))  # fmt: skip
    found += [
        Case("X4", "dataset", _skies(means.format(part="a quarter") + "threads"), [own, reducing, *even],
             datasets.mean(), "weather", (faster(1.2),)),
        Case("X4-processes", "dataset", _skies(means.format(part="a quarter") + "processes"), [own, *even],
             datasets.mean(processes=True), "weather", (faster(1.2),)),
        Case("X4-all", "dataset", _skies(means.format(part="all") + "threads"), whole, datasets.mean(part="all"),
             "weather"),
        Case("X5", "dataset", _skies("open a NetCDF file of {month} maps where it lies, and draw one"),
             [attached.Plot(), netcdf.Files("h5netcdf"), netcdf.Files("netCDF4")], datasets.plot, needs=("month",)),
    ]  # fmt: skip
    return found


def _skies(text: str) -> Callable[[Size], str]:
    def title(size: Size) -> str:
        weather = Weather(Path(), size.scale)
        shape = " x ".join(f"{n:,}" for n in weather.shape)
        return text.format(weather=shape, month=MONTH, appended=weather.appended)

    return title


PLAN: tuple[Case, ...] = (
    *_dense_loads(),
    *_dense_updates(),
    *_dense_reads(),
    *_parallel(),
    *_cell_cases(),
    *_merges(),
    *_tables(),
    *_questions(),
    *_foreign(),
    *_datasets(),
    *_startups(),
)
