"""Boxes of coordinates, positions along axes, and conditions on cells."""
