"""Loading from other formats, and writing to them."""

from .csv import from_csv, read_csv, to_csv

__all__ = ["from_csv", "read_csv", "to_csv"]
