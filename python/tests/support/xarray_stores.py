"""Datasets of xarray in stores: the engine without an installed entry point, a round trip, and work for processes."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import gridstone as gs
from gridstone.xarray import work as _preloaded  # noqa: F401

ENGINE = "gridstone"
"""Found by its entry point: the installed package has it, and `gridstone_engine-0.dist-info` beside this file."""


def opened(uri: Any, **options: Any) -> xr.Dataset:
    return xr.open_dataset(uri, engine=ENGINE, **options)


@contextlib.contextmanager
def there_and_back(dataset: Any, uri: Any, **options: Any) -> Iterator[xr.Dataset]:
    gs.to_gridstone(dataset, uri, **options)
    with opened(uri) as found:
        yield found


DAYS = pd.date_range("2000-01-01", periods=40, unit="ns")


def days(first, last, scale=1.0):
    """A Dataset of some days: the value of a cell tells its day and place."""
    at = np.arange(first, last)
    values = scale * (at[:, None] * 100.0 + np.arange(5))
    return xr.Dataset(
        {"v": (("t", "x"), values, {"units": "K"}), "day": ("t", at), "place": ("x", list("abcde"))},
        {"t": DAYS[first:last], "x": np.arange(5) * 0.5},
        {"title": "days"},
    )


_MEETING: Any = None
"""Where the processes of a pool wait for each other."""


def share_meeting(barrier: Any) -> None:
    """The first call of each process of a pool."""
    global _MEETING
    _MEETING = barrier


def together(call: Any, *given: Any) -> Any:
    """A call that begins when all processes of the pool are here."""
    _MEETING.wait(60)
    return call(*given)


def append_day(uri, day):
    return gs.to_gridstone(days(day, day + 1), uri, append_dim="t")


def write_region(uri, number):
    """The columns of a region that overlaps those of others by its halves, and no tile's edge."""
    start = 3 * number
    block = np.full((50, 6), float(number + 1))
    part = xr.Dataset({"v": (("y", "x"), block)})
    return gs.to_gridstone(part, uri, region={"x": slice(start, start + 6), "y": slice(5, 55)})


def failing(block):
    if block.size and block[0, 0] >= 300:
        raise RuntimeError("a block that fails")
    return block
