"""Advice on schemas, measured on samples of the data."""
