"""Datasets of xarray in groups: the backend that opens them, and `to_gridstone`, which writes them."""
