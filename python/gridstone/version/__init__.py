"""Versions of a store, and receipts of writes that are committed later."""
