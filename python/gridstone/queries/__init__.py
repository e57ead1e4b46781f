"""Questions in SQL, answered by DuckDB over stored arrays."""
