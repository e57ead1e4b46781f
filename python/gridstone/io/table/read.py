"""Loads tables: Arrow, Parquet, Feather, pandas and polars."""

from collections.abc import Mapping
from typing import Any, Unpack

import pyarrow as pa

from ...arrays.array import Array
from ...base.extras import needed
from ...base.progress import Progress
from ...column import arrow_capsule
from ...context.settings import Context
from ...errors import InputError
from ...schema.array_schema import Schema
from ...stores import store
from ..dimensions import Dims
from ..dimensions import of as dimensions_of
from ..files import Scratch, Source, expand
from ..load import Place, TableKeywords, TableOptions, context_or_default, load
from . import frames, partitions
from .feed import TableFeed, Tables
from .sources import ArrowFiles, Dataset, Once, ParquetFiles, Whole


def from_arrow(
    uri: store.Uri,
    source: Any,
    dims: Dims = None,
    schema: Schema | None = None,
    sparse: bool = True,
    context: Context | None = None,
    progress: Progress = None,
    **options: Unpack[TableKeywords],
) -> Array:
    """Loads Arrow data into a new array, or appends it to one that is there, in bounded memory and one commit.

    Without a schema or an array at `uri`, types are those of the columns, and domains are found in a pass over the
    dimensions. An attribute is nullable if it has nulls. A table that this package wrote knows its schema itself, and
    needs no `dims`. Dictionaries become their values; times with a zone are stored in UTC.

    Args:
        uri: the store.
        source: a table, record batch, stream of batches, or dataset of pyarrow; or anything with `__arrow_c_stream__`
            (data frames of polars, relations of DuckDB, this package's own results and streams). What can be read only
            once is kept for the second pass: in memory up to a quarter of the budget, behind that in a temporary file
            (which is not sealed, even if the store is).
        dims: the columns that are the dimensions; or a mapping that also says types and domains, as in `from_csv`.
        schema: the schema of the new array; columns that it does not name are left out.
        sparse: make a sparse array; else a dense one, whose dimensions are integers or times.
        context: None: the process's default. What passes a sixteenth of its budget is sorted in the store and merged.
        progress: True for a bar, or a callable `f(done, total)` (rows).
        options: `path overwrite duplicates attrs capacity dedup message commit_key`, see `gridstone.io.Options`, and
            `evolve union domain`, see `gridstone.io.TableOptions`.

    Returns the array, open for reading and writing.

    Raises:
        InputError: names the row (from 0) and column of what is wrong. Nothing is half-loaded.
        UnsupportedError: a column's type has no place in an array (decimals, lists, structs).
        ExistsError: the array exists, and a schema was given without `overwrite`.
    """
    used = context_or_default(context)
    place = _place(uri, dims, schema, sparse, options)
    if arrow_capsule.is_polars(source) and hasattr(source, "to_arrow"):
        taken, refused = frames.of_polars(source)
        return load(place, TableFeed(Whole(taken, "the data frame"), used, refused=refused), progress)
    return load(place, TableFeed(_tables_of(source, used), used), progress)


def _place(uri: store.Uri, dims: Dims, schema: Schema | None, sparse: bool, options: Mapping[str, Any]) -> Place:
    chosen = TableOptions.of(options)
    names, found = dimensions_of(dims, chosen.domain)
    return Place(uri, names, schema, sparse, chosen, found)


def _tables_of(source: Any, context: Context) -> Tables:
    if isinstance(source, pa.Table):
        return Whole(source, "the table")
    if isinstance(source, pa.RecordBatch):
        return Whole(pa.Table.from_batches([source]), "the record batch")
    if type(source).__module__ == "pyarrow._dataset":  # which is not imported here: it takes pandas with it
        if hasattr(source, "to_reader"):
            return Once(source.to_reader(), "the scanner", context)
        return Dataset(source, "the dataset")
    if isinstance(source, pa.RecordBatchReader):
        return Once(source, "the stream", context)
    if hasattr(source, "__arrow_c_stream__"):
        return Once(arrow_capsule.stream_of(source), "the stream", context)
    if hasattr(source, "__arrow_c_array__"):
        return Whole(pa.table(pa.record_batch(source)), "the record batch")
    raise InputError(
        f"from_arrow takes an Arrow table, stream or dataset, not {type(source).__name__}; files are loaded with "
        f"from_parquet and from_feather"
    )


def from_parquet(
    uri: store.Uri,
    source: Source,
    dims: Dims = None,
    schema: Schema | None = None,
    sparse: bool = True,
    context: Context | None = None,
    progress: Progress = None,
    *,
    statistics: bool = True,
    **options: Unpack[TableKeywords],
) -> Array:
    """Loads Parquet files into a new array, or appends them, in bounded memory and one commit; see `from_arrow`.

    Args:
        uri, dims, schema, sparse, context, options: as in `from_arrow`.
        source: a path, a pattern or a list of them, read side by side, ahead of what is written meanwhile; rows stay in
            the order of the files. Columns are matched by name. Folders such as `year=2024` in the paths of all files
            are columns too, unless the files have them.
        progress: True for a bar, or a callable `f(done_bytes, total_bytes)`.
        statistics: take domains from the files' footers where they are complete; False: from a pass over the values.

    Example:
        >>> gs.io.to_parquet("ais.gs", "ais.parquet")
        500
        >>> gs.io.from_parquet("again.gs", "ais.parquet", dims=["x"]).count()
        500
    """
    used = context_or_default(context)
    place = _place(uri, dims, schema, sparse, options)
    files = expand(source)
    found = partitions.with_folders(files, ParquetFiles(files, statistics))
    return load(place, TableFeed(found, used, readahead=True), progress)


def from_feather(
    uri: store.Uri,
    source: Source,
    dims: Dims = None,
    schema: Schema | None = None,
    sparse: bool = True,
    context: Context | None = None,
    progress: Progress = None,
    **options: Unpack[TableKeywords],
) -> Array:
    """Loads Arrow IPC files or streams (Feather, version 2) into a new array, or appends them; see `from_arrow`.

    Args:
        uri, dims, schema, sparse, context, options: as in `from_arrow`.
        source: a path, a pattern or a list of them. Columns are matched by name, and folders such as `year=2024` are
            columns, as in `from_parquet`.
        progress: True for a bar, or a callable `f(done_bytes, total_bytes)`.
    """
    used = context_or_default(context)
    place = _place(uri, dims, schema, sparse, options)
    files = expand(source)
    found = partitions.with_folders(files, ArrowFiles(files))
    return load(place, TableFeed(found, used, readahead=True), progress)


def from_pandas(
    uri: store.Uri,
    source: Any,
    dims: Dims = None,
    schema: Schema | None = None,
    sparse: bool = True,
    context: Context | None = None,
    progress: Progress = None,
    **options: Unpack[TableKeywords],
) -> Array:
    """Loads a pandas data frame into a new array, or appends it; see `from_arrow`.

    Levels of the index that have names are columns too. NaN means null, as in pandas; it stays NaN in a float attribute
    that is not nullable.

    Args:
        uri, dims, schema, sparse, context, progress, options: as in `from_arrow`.
        source: the data frame.

    Example:
        >>> frame = pd.DataFrame({"x": [1, 5], "sog": [0.5, 12.0]})
        >>> a = gs.io.from_pandas("frame.gs", frame, dims=["x"])
        >>> a.sparse, len(a.read())
        (True, 2)
    """
    pandas = needed("pandas", "pandas", "from_pandas")
    if not isinstance(source, pandas.DataFrame):
        raise InputError(f"from_pandas takes a data frame, not {type(source).__name__}")
    taken, refused = frames.of_pandas(source)
    used = context_or_default(context)
    place = _place(uri, dims, schema, sparse, options)
    feed = TableFeed(Whole(taken, "the data frame"), used, nan_is_null=True, refused=refused)
    return load(place, feed, progress)


def from_polars(
    uri: store.Uri,
    source: Any,
    dims: Dims = None,
    schema: Schema | None = None,
    sparse: bool = True,
    context: Context | None = None,
    progress: Progress = None,
    **options: Unpack[TableKeywords],
) -> Array:
    """Loads a polars data frame or lazy frame into a new array, or appends it; see `from_arrow`.

    Args:
        uri, dims, schema, sparse, context, progress, options: as in `from_arrow`.
        source: the frame. A lazy one is computed by polars' streaming engine into a temporary file.
    """
    polars = needed("polars", "polars", "from_polars")
    if not isinstance(source, polars.LazyFrame):
        if not isinstance(source, polars.DataFrame):
            raise InputError(f"from_polars takes a data frame or lazy frame, not {type(source).__name__}")
        return from_arrow(uri, source, dims, schema, sparse, context, progress, **options)
    used = context_or_default(context)
    place = _place(uri, dims, schema, sparse, options)
    scratch = Scratch()
    try:
        computed = scratch.file("lazy.arrow")
        refused = frames.computed(source, computed)
        files = ArrowFiles([computed])
        return load(place, TableFeed(files, used, readahead=True, refused=refused), progress)
    finally:
        scratch.close()
