"""Cells to be written: their columns, and the writer that streams them into one commit."""
