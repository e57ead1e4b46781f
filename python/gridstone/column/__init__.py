"""Datatypes, and columns of values between the core, NumPy, Arrow and pandas."""
