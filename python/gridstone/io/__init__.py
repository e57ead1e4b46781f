"""Loads other formats into arrays, and writes arrays to them."""

from .csv.dialect import Dialect
from .csv.read import from_csv, read_csv
from .csv.write import to_csv
from .load import Options, TableOptions
from .matrix import from_mtx, from_scipy, to_mtx
from .numpy.read import from_npy, from_npz
from .numpy.write import to_npy, to_npz
from .rejects import Rejected
from .table.read import from_arrow, from_feather, from_pandas, from_parquet, from_polars
from .table.write import to_arrow, to_feather, to_parquet

__all__ = [
    "Dialect",
    "Options",
    "Rejected",
    "TableOptions",
    "from_arrow",
    "from_csv",
    "from_feather",
    "from_mtx",
    "from_npy",
    "from_npz",
    "from_pandas",
    "from_parquet",
    "from_polars",
    "from_scipy",
    "read_csv",
    "to_arrow",
    "to_csv",
    "to_feather",
    "to_mtx",
    "to_npy",
    "to_npz",
    "to_parquet",
]
