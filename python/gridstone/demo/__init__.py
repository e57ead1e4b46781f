"""The demonstration: ship positions as a sparse array, a chart as a dense one, both drawn."""

from .run import run

__all__ = ["run"]
