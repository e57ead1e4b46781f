"""Arrays as the data sets of other libraries: pyarrow's, which DuckDB and DataFusion read too, and polars' lazy frames."""
