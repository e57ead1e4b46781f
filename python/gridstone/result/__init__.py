"""Results of reads: cells in memory, streams, the caller's buffers, tables of fragments and tiles."""
