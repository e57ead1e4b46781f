"""Arrow tables, Parquet and Arrow IPC files, data frames: loading and writing them."""
