"""A sea that does not exist: fractal land, harbours on its coasts, and shipping lanes that keep to the water."""

import heapq
from dataclasses import dataclass

import numpy as np

from ..column.datatype import AnyArray

WEST, EAST, SOUTH, NORTH = -14.0, 14.0, 46.0, 62.0
_ROWS, _COLUMNS = 132, 231
_LAND = 0.36


def terrain(rows: int, columns: int, seed: int, roughness: float = 2.1) -> AnyArray:
    """Heights of mean 0 and deviation 1 whose power falls as frequency ** -roughness (spectral synthesis)."""
    random = np.random.default_rng(seed)
    spectrum = np.fft.rfft2(random.standard_normal((rows, columns)))
    across = np.fft.rfftfreq(columns)[None, :] * columns
    down = np.fft.fftfreq(rows)[:, None] * rows
    frequency = np.hypot(across, down)
    frequency[0, 0] = 1.0
    spectrum *= np.maximum(frequency, 1.6) ** -roughness
    spectrum[0, 0] = 0.0
    heights = np.fft.irfft2(spectrum, (rows, columns))
    made: AnyArray = heights / heights.std()
    return made


@dataclass(frozen=True)
class Sea:
    """Land on a grid, and where ships are."""

    land: AnyArray
    """(rows, columns) of bool, from the south-west."""
    harbours: AnyArray
    """(n, 2): rows and columns of water beside land."""
    lanes: list[AnyArray]
    """Each (k, 2): rows and columns from one harbour to another, over water."""

    @property
    def coast(self) -> AnyArray:
        """(n, 2): rows and columns of all water beside land."""
        return _beside(self.land)


def make(seed: int, harbours: int = 50) -> Sea:
    """A sea with harbours far enough apart, and lanes between them."""
    random = np.random.default_rng(seed)
    open_water = _open_water(seed)
    coast = _beside(~open_water)
    chosen = [coast[random.integers(len(coast))]]
    while len(chosen) < harbours:
        some = coast[random.integers(len(coast), size=24)]
        apart = np.min([np.hypot(*(some - c).T) for c in chosen], axis=0)
        chosen.append(some[int(np.argmax(apart * random.uniform(0.3, 1.0, len(some))))])
    places = np.array(chosen)
    return Sea(~open_water, places, _lanes(~open_water, places, random))


def _open_water(seed: int) -> AnyArray:
    """One body of water that reaches from end to end, the first that seeds from `seed` on give."""
    best: AnyArray | None = None
    for attempt in range(12):
        heights = terrain(_ROWS, _COLUMNS, seed + 1_000 * attempt)
        water = _largest(heights <= np.quantile(heights, 1 - _LAND))
        if best is None or water.sum() > best.sum():
            best = water
        if best[:, 2:-2].any(axis=0).all() and best.mean() > 0.58:
            break
    assert best is not None
    return best


def _beside(land: AnyArray) -> AnyArray:
    near = np.zeros_like(land)
    for axis in (0, 1):
        for step in (-1, 1):
            near |= np.roll(land, step, axis)
    near &= ~land
    near[[0, -1], :] = False
    near[:, [0, -1]] = False
    return np.argwhere(near)


def _largest(water: AnyArray) -> AnyArray:
    """The largest connected body of water, by growing from its deepest points."""
    best = np.zeros_like(water)
    left = water.copy()
    while left.sum() > best.sum():
        grown = np.zeros_like(water)
        grown[tuple(np.argwhere(left)[0])] = True
        count = 0
        while count != grown.sum():
            count = int(grown.sum())
            wide = grown.copy()
            wide[1:] |= grown[:-1]
            wide[:-1] |= grown[1:]
            wide[:, 1:] |= wide[:, :-1]
            wide[:, :-1] |= wide[:, 1:]
            grown = wide & water
        best = grown if grown.sum() > best.sum() else best
        left &= ~grown
    return best


def _lanes(land: AnyArray, harbours: AnyArray, random: np.random.Generator) -> list[AnyArray]:
    """Shortest ways over water from a few hubs to every harbour; water near land is slow going."""
    cost = np.where(land, np.inf, 1.0)
    for reach in (1, 2, 3):
        near = np.zeros_like(land)
        for axis in (0, 1):
            for step in (-reach, reach):
                near |= np.roll(land, step, axis)
        cost += np.where(near & ~land, 1.2 / reach, 0.0)
    lanes = []
    for hub in random.permutation(len(harbours))[:5]:
        came = _ways(cost, tuple(harbours[hub]))
        for place in harbours[random.permutation(len(harbours))[: len(harbours) // 2]]:
            way = _walk(came, tuple(place))
            if len(way) > 8:
                lanes.append(_smoothed(way))
    return lanes


def _ways(cost: AnyArray, start: tuple[int, ...]) -> dict[tuple[int, int], tuple[int, int]]:
    """Dijkstra's algorithm on the grid with diagonals: where each place is best reached from."""
    origin = (int(start[0]), int(start[1]))
    rows, columns = cost.shape
    price = cost.tolist()
    far = [[float("inf")] * columns for _ in range(rows)]
    far[origin[0]][origin[1]] = 0.0
    came = {origin: origin}
    queue = [(0.0, origin)]
    steps = [(dr, dc, (dr * dr + dc * dc) ** 0.5) for dr in (-1, 0, 1) for dc in (-1, 0, 1) if dr or dc]
    while queue:
        so_far, (row, column) = heapq.heappop(queue)
        if so_far > far[row][column]:
            continue
        for dr, dc, length in steps:
            r, c = row + dr, column + dc
            if 0 <= r < rows and 0 <= c < columns:
                reached = so_far + length * price[r][c]
                if reached < far[r][c]:
                    far[r][c] = reached
                    came[r, c] = (row, column)
                    heapq.heappush(queue, (reached, (r, c)))
    return came


def _walk(came: dict[tuple[int, int], tuple[int, int]], place: tuple[int, ...]) -> AnyArray:
    here = (int(place[0]), int(place[1]))
    way = [here]
    while here in came and came[here] != here:
        here = came[here]
        way.append(here)
    return np.array(way, np.float64)


def _smoothed(way: AnyArray) -> AnyArray:
    """A gliding mean, so that ships do not turn by 45 degrees."""
    reach = min(9, (len(way) - 1) // 2)
    padded = np.pad(way, ((reach, reach), (0, 0)), mode="edge")
    sums = np.cumsum(np.vstack([np.zeros((1, 2)), padded]), axis=0)
    made: AnyArray = (sums[2 * reach + 1 :] - sums[: -2 * reach - 1]) / (2 * reach + 1)
    return made


def degrees(places: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Longitude and latitude of rows and columns (which may be fractions)."""
    lon = WEST + (places[:, 1] + 0.5) * (EAST - WEST) / _COLUMNS
    lat = SOUTH + (places[:, 0] + 0.5) * (NORTH - SOUTH) / _ROWS
    return lon, lat


def is_land(sea: Sea, lon: AnyArray, lat: AnyArray) -> AnyArray:
    """Whether positions lie on land."""
    column = ((lon - WEST) * _COLUMNS / (EAST - WEST)).astype(np.int64).clip(0, _COLUMNS - 1)
    row = ((lat - SOUTH) * _ROWS / (NORTH - SOUTH)).astype(np.int64).clip(0, _ROWS - 1)
    made: AnyArray = sea.land[row, column]
    return made
