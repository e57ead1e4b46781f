//! Oracles and generators for the tests: a naive in-memory array, schemas, boxes and cells.
