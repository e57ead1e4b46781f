"""Datasets of xarray in stores: the engine without an installed entry point, and a round trip."""

import contextlib
from collections.abc import Iterator
from typing import Any

import xarray as xr

import gridstone as gs

ENGINE = "gridstone"
"""Found by its entry point: the installed package has it, and `gridstone_engine-0.dist-info` beside this file."""


def opened(uri: Any, **options: Any) -> xr.Dataset:
    return xr.open_dataset(uri, engine=ENGINE, **options)


@contextlib.contextmanager
def there_and_back(dataset: Any, uri: Any, **options: Any) -> Iterator[xr.Dataset]:
    gs.to_gridstone(dataset, uri, **options)
    with opened(uri) as found:
        yield found
