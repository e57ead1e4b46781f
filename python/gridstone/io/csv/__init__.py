"""CSV files: dialects, rows, values, and loading them."""
