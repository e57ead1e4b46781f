"""Loading from other formats, and writing to them."""

from .csv import from_csv, read_csv
from .load import Options
from .rejects import Rejected
from .write import to_csv

__all__ = ["Options", "Rejected", "from_csv", "read_csv", "to_csv"]
