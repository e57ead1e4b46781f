"""Loading from other formats, and writing to them."""

from .csv import from_csv, read_csv
from .load import Options
from .rejects import Rejected
from .tabular import from_arrow, from_feather, from_pandas, from_parquet, from_polars
from .write import to_arrow, to_csv, to_feather, to_parquet

__all__ = [
    "Options",
    "Rejected",
    "from_arrow",
    "from_csv",
    "from_feather",
    "from_pandas",
    "from_parquet",
    "from_polars",
    "read_csv",
    "to_arrow",
    "to_csv",
    "to_feather",
    "to_parquet",
]
