"""The rows of an answer as an array: in one commit, and of an answer without rows an array without cells."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ..arrays.array import Array
from ..base.naming import target
from ..context.settings import Context
from ..errors import InputError
from ..io import dimensions, infer
from ..io.dimensions import Chosen
from ..io.load import Options, existing_schema
from ..io.table.read import from_arrow
from ..io.target import room
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from .answers import Answers


class _NoRows(Exception):
    """An answer ended without a row."""


def written(answer: Answers, to: str, dims: Any, context: Context) -> Array:
    """The array at `to` that the rows of an answer were written into; it is appended to if it is there.

    Without rows it is empty. An end of a dimension that `dims` says nothing of is open then, and attributes may be
    null, since the rows of a later answer may have any values.
    """
    uri, path = target(to)
    # Not through Arrow's C interface, which would make text of an error of the query.
    reader = pa.RecordBatchReader.from_batches(answer.schema, _rows(answer))
    try:
        return from_arrow(uri, reader, dims, path=path, context=context)
    except _NoRows:
        none = answer.schema.empty_table()
        if existing_schema(uri, Options(path=path), context) is not None:
            return from_arrow(uri, none, dims, path=path, context=context)
        return from_arrow(uri, none, schema=_schema_of(answer.schema, dims), path=path, context=context)
    finally:
        answer.close()


def _rows(answer: Answers) -> "Iterator[pa.RecordBatch]":
    count = 0
    for batch in answer:
        count += batch.num_rows
        yield batch
    if count == 0:
        raise _NoRows


def _schema_of(given: "pa.Schema", dims: Any) -> Schema:
    """The schema of an array of such rows, whose dimensions are known to be columns."""
    names, chosen = dimensions.of(dims, None)
    assert names is not None, "a load without them has failed"
    dtypes = {field.name: infer.Column.of_field(field).dtype for field in given}
    made = [_dim_of(name, dtypes[name], chosen.get(name, Chosen())) for name in names]
    attrs = [Attr(name, dtype, nullable=True) for name, dtype in dtypes.items() if name not in names]
    return Schema(made, attrs, sparse=True, duplicates=True)


def _dim_of(name: str, dtype: str, found: Chosen) -> Dim:
    if found.dim is not None:
        return found.dim
    dtype = found.kind or dtype
    if dtype != "string":
        return Dim(name, found.domain or (None, None), dtype=dtype)
    if found.domain is not None:
        raise InputError(f"column {name!r} is text, which has no domain: every text is inside; leave it out")
    return Dim(name, dtype="string", max_bytes=room(0))
