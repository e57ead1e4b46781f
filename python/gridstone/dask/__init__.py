"""Arrays as arrays and frames of Dask, and blocks of Dask as commits."""
