"""Datasets of xarray in groups: the backend that opens them, `to_gridstone`, which writes them, and `reduce`."""

from .reduction import reduce
from .write import to_gridstone

__all__ = ["reduce", "to_gridstone"]
