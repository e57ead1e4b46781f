"""The job of who collects ship positions: a file a day, each with bounds of its own, loaded as it comes.

The real files are in $GRIDSTONE_TEST_DATA, or in ../shared/data beside the repository.
"""

import os
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gridstone as gs
from gridstone import io

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("GRIDSTONE_TEST_DATA") or ROOT.parent / "shared" / "data")
SAMPLE = DATA / "ais" / "AIS_2022_01_03_sample.csv.gz"
QUICK = gs.Context("64MiB", 2, durability="close")
PARTS = 30


def rows_of(table: pa.Table) -> list[tuple[str, ...]]:
    """The rows as a sorted list of texts: a multiset in which NaN equals NaN."""
    names = sorted(table.column_names)
    return sorted(zip(*([repr(v) for v in table.column(name).to_pylist()] for name in names), strict=True))


def day(number: int, rows: int = 200) -> pd.DataFrame:
    """Positions of one day, further from the first port each day."""
    random = np.random.default_rng(number)
    return pd.DataFrame(
        {
            "lon": random.uniform(-number, number + 1, rows).round(6),
            "lat": random.uniform(30 - number, 31 + number, rows).round(6),
            "time": np.datetime64("2026-03-01", "s") + np.arange(rows) * 60 + np.timedelta64(number, "D"),
            "sog": random.uniform(0, 20, rows).round(1),
        }
    )


@pytest.mark.skipif(not SAMPLE.is_file(), reason=f"no file {SAMPLE}; set GRIDSTONE_TEST_DATA to a folder that has it")
@pytest.mark.parametrize("by", ["BaseDateTime", "LON"])
def test_real_positions_in_thirty_files_in_any_order_are_those_of_one_file(tmp_path: Path, by: str) -> None:
    frame = pd.read_csv(SAMPLE, dtype=str, keep_default_na=False).iloc[:30_000]
    frame["Row"] = np.arange(len(frame))
    key = frame[by].astype(float) if by == "LON" else frame[by]
    parts = [frame.iloc[rows] for rows in np.array_split(np.argsort(key.to_numpy(), kind="stable"), PARTS)]
    files = []
    for number, part in enumerate(parts):
        files.append(tmp_path / f"part-{number}.csv")
        part.to_csv(files[-1], index=False)
    order = np.random.default_rng(5).permutation(PARTS)
    whole = io.from_csv(tmp_path / "whole.gs", files, dims=["LON", "LAT"], context=QUICK)
    # The first file alone, of the types that all of them have.
    narrow = parts[order[0]][["LON", "LAT"]].astype(float)
    dims = [gs.Dim(name, (narrow[name].min(), narrow[name].max()), dtype="float64") for name in narrow]
    first = gs.Schema(dims, whole.schema.attrs, sparse=True, duplicates=True)
    grown = io.from_csv(tmp_path / "grown.gs", files[order[0]], schema=first, context=QUICK)
    for number in order[1:]:
        grown = io.from_csv(tmp_path / "grown.gs", files[number], context=QUICK)
    assert grown.version == PARTS + 1, "a commit a file"
    for mine, all_of_it in zip(grown.domain, whole.domain, strict=True):
        assert mine == all_of_it
    want = rows_of(whole.read().to_arrow())
    assert rows_of(grown.read().to_arrow()) == want
    random = np.random.default_rng(6)
    places = frame[["LON", "LAT"]].astype(float).to_numpy()
    for _ in range(20):
        (west, south), (east, north) = np.sort(places[random.integers(0, len(places), 2)], axis=0)
        box = {"LON": (west, east), "LAT": (south, north)}
        assert rows_of(grown.read(box).to_arrow()) == rows_of(whole.read(box).to_arrow())
    some = places[random.integers(0, len(places), 50)]
    assert rows_of(grown.points(some).to_arrow()) == rows_of(whole.points(some).to_arrow())
    grown.consolidate("all")
    assert rows_of(grown.read().to_arrow()) == want
    # The look back: a version has the domain and the rows of its time.
    old = grown.at(version=2)
    assert len(old.read()) == len(narrow) and old.domain == tuple(dim.domain for dim in dims)


def test_a_week_of_files_of_which_one_has_a_new_column(tmp_path: Path) -> None:
    uri, days = tmp_path / "week.gs", [day(number) for number in range(7)]
    days[4]["draught"] = np.arange(200) / 10
    for number, frame in enumerate(days):
        frame.to_csv(tmp_path / f"day{number}.csv", index=False)
    dims = ["lon", "lat", "time"]
    io.from_csv(uri, tmp_path / "day0.csv", dims=dims, context=QUICK)
    for number in (1, 2, 3):
        io.from_csv(uri, tmp_path / f"day{number}.csv", context=QUICK)
    with pytest.raises(gs.InputError, match=r"'draught'.*evolve"):
        io.from_csv(uri, tmp_path / "day4.csv", context=QUICK)
    assert len(gs.open(uri).read()) == 800, "nothing of the refused day"
    for number in (4, 5, 6):
        a = io.from_csv(uri, tmp_path / f"day{number}.csv", evolve=True, context=QUICK)
    want = pd.concat(days).sort_values(dims, ignore_index=True)
    got = a.read().to_pandas().sort_values(dims, ignore_index=True)
    assert (got["lon"].to_numpy() == want["lon"].to_numpy()).all()
    assert (got["time"].to_numpy() == want["time"].to_numpy().astype(got["time"].dtype)).all()
    assert got["draught"].notna().sum() == 200
    for column, (low, high) in zip(dims, a.domain, strict=True):
        assert (low, high) == (want[column].min(), want[column].max())


def test_loads_side_by_side_do_not_conflict(tmp_path: Path) -> None:
    uri, dims = tmp_path / "side.gs", ["lon", "lat", "time"]
    io.from_pandas(uri, day(0), dims=dims, context=QUICK)
    threads = [
        threading.Thread(target=io.from_pandas, args=(uri, day(n)), kwargs={"context": QUICK}) for n in range(1, 7)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    a = gs.open(uri)
    want = pd.concat([day(n) for n in range(7)])
    assert len(a.read()) == len(want)
    assert a.domain[0] == (want["lon"].min(), want["lon"].max())


def test_a_user_who_wants_the_domain_kept_says_so(tmp_path: Path) -> None:
    uri = tmp_path / "kept.gs"
    io.from_pandas(uri, day(0), dims=["lon", "lat", "time"], context=QUICK)
    with pytest.raises(gs.InputError, match=r"outside the domain.*grow=True"):
        io.from_pandas(uri, day(3), grow=False, context=QUICK)
    assert gs.open(uri).version == 2
