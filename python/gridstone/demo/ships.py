"""Ship positions as a receiver network would log them, for a sea that does not exist; the same for the same seed."""

from pathlib import Path

import numpy as np

from ..column.datatype import AnyArray
from . import sea

HEADER = "MMSI,BaseDateTime,LAT,LON,SOG,COG,Heading,VesselName,CallSign,VesselType,Status,Length"
DRAUGHT = "Draft"
_FIRST = (
    "ALBATROSS,ARCTIC,ATLANTIC,AURORA,BALTIC,BLUE,CAPE,CORAL,EASTERN,FALCON,GOLDEN,GRAND,HARBOUR,ISLAND,LADY,MISTRAL"
)
_SECOND = (
    "BAY,BREEZE,CARRIER,DAWN,EAGLE,EXPLORER,EXPRESS,FORTUNE,HERON,HOPE,HORIZON,PEARL,PIONEER,PRIDE,SPIRIT,STAR,TRADER"
)
_TYPES = np.array([30, 31, 37, 52, 60, 70, 80])
_SHARES = np.array([0.2, 0.12, 0.25, 0.08, 0.1, 0.15, 0.1])


def write_csv(path: Path, cells: int, seed: int, day: int = 0) -> None:
    """Writes `cells` positions: nine of ten in fifty harbours, the others on lanes, along coasts and out at sea.

    Those of a later day are of a sea further east, and have a column more: the draught.
    """
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    columns = positions(cells, seed, day)
    names = HEADER.split(",")
    if day:
        columns[DRAUGHT] = np.random.default_rng(seed).gamma(4, 1.6, cells).round(1)
        names.append(DRAUGHT)
    table = pa.table({name: columns[name] for name in names})
    pa_csv.write_csv(table, path, pa_csv.WriteOptions(quoting_style="needed"))


def positions(cells: int, seed: int, day: int = 0) -> dict[str, object]:
    """The columns of the file, in order of time; None or masked where a value is missing."""
    random = np.random.default_rng(seed)
    waters = sea.make(seed)
    kinds = random.choice(4, cells, p=[0.90, 0.05, 0.038, 0.012])
    lon, lat, course = (np.empty(cells) for _ in range(3))
    for kind, place in enumerate((_in_harbour, _on_lane, _along_coast, _at_sea)):
        rows = np.flatnonzero(kinds == kind)
        lon[rows], lat[rows], course[rows] = place(waters, len(rows), random)
    speed = np.where(kinds == 0, random.exponential(0.4, cells), random.normal(13, 4, cells)).clip(0, 40)
    return _columns(lon + day * (sea.EAST - sea.WEST), lat, course, speed, kinds, random, day)


Placed = tuple[AnyArray, AnyArray, AnyArray]


def _in_harbour(waters: sea.Sea, count: int, random: np.random.Generator) -> Placed:
    """Quays in rows, basins around them; a few harbours are far busier than the rest."""
    weights = 1.0 / np.arange(1, len(waters.harbours) + 1) ** 0.7
    which = random.choice(len(waters.harbours), count, p=weights / weights.sum())
    base_lon, base_lat = sea.degrees(waters.harbours)
    quay = random.integers(0, 14, count)
    turn = (which * 0.73) % np.pi
    along = random.uniform(-1, 1, count) * 0.035 * (1 + which % 3)
    across = (quay - 7) * 0.004 + random.normal(0, 0.0004, count)
    basin = random.random(count) < 0.25
    spread = random.normal(0, 0.055, (2, count))
    lon = base_lon[which] + np.where(basin, spread[0], along * np.cos(turn) - across * np.sin(turn)) * 1.7
    lat = base_lat[which] + np.where(basin, spread[1], along * np.sin(turn) + across * np.cos(turn))
    return lon, lat, random.uniform(0, 360, count)


def _on_lane(waters: sea.Sea, count: int, random: np.random.Generator) -> Placed:
    weights = np.array([len(lane) for lane in waters.lanes], np.float64) * (0.4 + random.pareto(1.4, len(waters.lanes)))
    which = np.sort(random.choice(len(waters.lanes), count, p=weights / weights.sum()))
    lon, lat, course = (np.empty(count) for _ in range(3))
    for number in np.unique(which):
        rows = np.flatnonzero(which == number)
        lane = waters.lanes[number]
        at = random.uniform(0, len(lane) - 1.001, len(rows))
        low = at.astype(np.int64)
        ahead = lane[low + 1] - lane[low]
        side = np.where(random.random(len(rows)) < 0.5, 1.0, -1.0)
        drift = side * 0.22 + random.normal(0, 0.11, len(rows))
        normal = np.column_stack([-ahead[:, 1], ahead[:, 0]])
        lon[rows], lat[rows] = sea.degrees(lane[low] + ahead * (at - low)[:, None] + normal * drift[:, None])
        course[rows] = np.degrees(np.arctan2(ahead[:, 1] * side, ahead[:, 0] * side)) % 360
    return lon, lat, course


def _along_coast(waters: sea.Sea, count: int, random: np.random.Generator) -> Placed:
    """Fishing boats and yachts that hug the land."""
    coast = waters.coast
    here = coast[random.integers(len(coast), size=count)] + random.uniform(-0.5, 0.5, (count, 2))
    lon, lat = sea.degrees(here + random.normal(0, 0.35, (count, 2)))
    return lon, lat, random.uniform(0, 360, count)


def _at_sea(waters: sea.Sea, count: int, random: np.random.Generator) -> Placed:
    lon, lat = np.empty(0), np.empty(0)
    while lon.size < count:
        x, y = random.uniform(sea.WEST, sea.EAST, count), random.uniform(sea.SOUTH, sea.NORTH, count)
        wet = ~sea.is_land(waters, x, y)
        lon, lat = np.concatenate([lon, x[wet]]), np.concatenate([lat, y[wet]])
    return lon[:count], lat[:count], random.uniform(0, 360, count)


def _columns(
    lon: AnyArray,
    lat: AnyArray,
    course: AnyArray,
    speed: AnyArray,
    kinds: AnyArray,
    random: np.random.Generator,
    day: int,
) -> dict[str, object]:
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = lon.size
    ships = max(50, cells // 110)
    ship = random.integers(0, ships, cells)
    mmsi = 200_000_000 + random.permutation(500_000_000 // 97)[:ships] * 97
    first, second = np.array(_FIRST.split(",")), np.array(_SECOND.split(","))
    names = np.char.add(np.char.add(random.choice(first, ships), " "), random.choice(second, ships))
    signs = pa.array([f"GS{number:05d}" for number in range(ships)])
    types, lengths = random.choice(_TYPES, ships, p=_SHARES), random.gamma(3, 18, ships).astype(np.int64) + 6
    nameless, silent = random.random(ships) < 0.04, random.random(cells) < 0.15
    times = np.datetime64("2026-03-01", "s") + np.timedelta64(day, "D") + np.sort(random.integers(0, 86_400, cells))
    ship = pa.array(ship)
    return {
        "MMSI": pa.array(mmsi).take(ship),
        "BaseDateTime": pc.strftime(pa.array(times), "%Y-%m-%dT%H:%M:%S"),
        "LAT": lat.clip(-90, 90).round(5),
        "LON": lon.clip(-180, 180).round(5),
        "SOG": speed.round(1),
        "COG": course.round(1),
        "Heading": pa.array((course.astype(np.int64) + 3) % 360, mask=silent),
        "VesselName": pa.array(names, mask=nameless).take(ship),
        "CallSign": signs.take(ship),
        "VesselType": pa.array(types).take(ship),
        "Status": np.where(kinds == 0, 5, 0),
        "Length": pa.array(lengths).take(ship),
    }
