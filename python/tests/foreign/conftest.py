"""The filters of hdf5plugin are registered first: those that netCDF4 brings are of another HDF5 library."""

import contextlib

with contextlib.suppress(ImportError):
    import hdf5plugin  # noqa: F401
