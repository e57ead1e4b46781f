"""Array handles: reading, writing, deleting, schema changes, metadata, pickling."""
