"""Loading from other formats, and writing to them."""

from .csv import from_csv, read_csv
from .dialect import Dialect
from .load import Options
from .matrices import from_mtx, from_scipy, to_mtx
from .npy import from_npy, from_npz
from .npy_out import to_npy, to_npz
from .rejects import Rejected
from .tabular import from_arrow, from_feather, from_pandas, from_parquet, from_polars
from .write import to_arrow, to_csv, to_feather, to_parquet

__all__ = [
    "Dialect",
    "Options",
    "Rejected",
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
