"""Arrays as data sets of pyarrow, which DuckDB and DataFusion read too, and as lazy frames of polars."""
