"""Loads CSV files in bounded memory into one commit."""

import os
from collections.abc import Sequence
from typing import Any, Unpack

import pyarrow as pa

from ...arrays.array import Array
from ...base.arguments import checked, files, instance, several, text
from ...base.progress import Progress, reporting
from ...context.settings import Context, default
from ...errors import InputError
from ...schema.array_schema import Schema
from ...stores import store
from ..dimensions import Dims
from ..dimensions import of as dimensions_of
from ..files import Source, delimiter_of, expand
from ..load import Place, Request, TableKeywords, TableOptions, context_or_default, load
from ..rejects import Rejected, Rejects
from .dialect import Dialect
from .feed import CsvFeed


def from_csv(
    uri: store.Uri,
    source: Source,
    dims: Dims = None,
    schema: Schema | None = None,
    sparse: bool = True,
    context: Context | None = None,
    progress: Progress = None,
    *,
    delimiter: str | None = None,
    nulls: Sequence[str] = (),
    quote: str | None = '"',
    escape: str | None = None,
    decimal: str = ".",
    comment: str | None = None,
    header: bool = True,
    names: Sequence[str] | None = None,
    skip_lines: int = 0,
    true_words: Sequence[str] = (),
    false_words: Sequence[str] = (),
    times: Sequence[str] = (),
    timezone: str | None = None,
    encoding: str = "utf8",
    on_error: str = "fail",
    rejected: list[Rejected] | str | os.PathLike[str] | None = None,
    block_bytes: int | str | None = None,
    **options: Unpack[TableKeywords],
) -> Array:
    """Loads CSV files into a new array, or appends them to one that is there, in bounded memory and one commit.

    Without a schema or an array at `uri`, a first pass over the files infers types and domains: integers, floats, ISO
    dates and times, true/false, else text; an attribute with empty values is nullable. Whole numbers with leading zeros
    are text. Columns are matched by name, and none is dropped unless `attrs` or a schema leaves it out.

    Args:
        uri: the store.
        source: a path, a pattern or a list of them; `.gz .bz2 .xz .zst .lz4` are decompressed. Several files are read
            side by side and parsed in parallel, ahead of what is written meanwhile; rows stay in the files' order.
        dims: the columns that are the dimensions; needed unless a schema is given. A mapping also says what is not
            inferred, by name a domain, a datatype, a `Dim`, or None: `{"lon": (-180, 180), "id": "string"}`.
        schema: the schema of the new array; columns that it does not name are left out.
        sparse: make a sparse array; else a dense one, whose dimensions are integers or times.
        context: None: the process's default. What passes a sixteenth of its budget is sorted in the store and merged.
        progress: True for a bar, or a callable `f(done_bytes, total_bytes)`.
        delimiter: what separates values; None: a comma, or a tab in files that end in `.tsv` or `.tab`.
        nulls: unquoted texts that mean null, besides the empty field.
        quote: what values with delimiters or line breaks in them stand between, doubled within; None: there is none.
        escape: what takes the meaning from the character behind it; None: there is none.
        decimal: the decimal point of floats.
        comment: lines that begin with it are left out, unless within quotes.
        header: whether each file begins with a line of names.
        names: names of the columns, in place of the header's; without either they are column_1, column_2 …
        skip_lines: lines to leave out before the header.
        true_words, false_words: what means true and false, besides true, false, 1 and 0 where bools are expected.
        times: formats of times (`"%d.%m.%Y %H:%M"`), tried before ISO 8601. A text is a time if Python's `strptime`
            takes it, and has its value. Text in the shape of a format that is no date (31.02.2020) is refused.
        timezone: the zone of times without an offset (`"Europe/Berlin"`), by the tz database of every year; None: UTC.
            Times are stored in UTC.
        encoding: of the files; a byte order mark is skipped.
        on_error: what becomes of rows that cannot be loaded (another number of values, values that are not of their
            column's type, no coordinates, outside the domain): "fail" raises an error that names the first one,
            "skip" leaves them out, "collect" also gives them back. Types that are inferred fit every row, so that text
            among numbers makes a column of text: give a schema to have such rows rejected.
            How many there were is logged, and `stats["rows_rejected"]` of the array.
        rejected: for "collect": a list that `Rejected` rows are appended to, or the path of a CSV file for them.
        block_bytes: how much text is parsed at once; None: 8 MiB, less where the memory budget is below 1 GiB.
        options: `path overwrite duplicates attrs capacity dedup message commit_key`, see `gridstone.io.Options`, and
            `evolve union domain`, see `gridstone.io.TableOptions`.

    Returns the array, open for reading and writing.

    Raises:
        InputError: names the file, line and column of what is wrong. Nothing is half-loaded: a store that this call
            created is removed again, any other is as it was.
        ExistsError: the array exists, and a schema was given without `overwrite`.
    """
    found = expand(source)
    mark = delimiter_of(found) if delimiter is None else delimiter
    dialect = Dialect(
        mark, _words("nulls", nulls), quote, escape, decimal, comment, header, _tuple(names), skip_lines,
        _words("true_words", true_words), _words("false_words", false_words), _words("times", times), timezone,
    )  # fmt: skip
    chosen = TableOptions.of(options)
    columns, stated = dimensions_of(dims, chosen.domain)
    rejects = Rejects(on_error, rejected)
    feed = CsvFeed(found, dialect, encoding, block_bytes, context_or_default(context), rejects)
    return load(Place(uri, columns, schema, sparse, chosen, stated), feed, progress)


def _words(what: str, given: Sequence[str]) -> tuple[str, ...]:
    """Words of a dialect; a text alone would be taken for as many words as it has characters."""
    if isinstance(given, str):
        raise InputError(f"{what}= is a list of texts, such as {what}=[{given!r}], not the text {given!r} itself")
    return tuple(given)


def _tuple(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


@checked(
    source=files,
    schema=instance(Schema, "a gridstone.Schema"),
    attrs=several,
    encoding=text,
    dialect=instance(Dialect, "a gridstone.io.Dialect"),
)
def read_csv(
    source: Source,
    schema: Schema,
    *,
    attrs: Sequence[str] | None = None,
    encoding: str = "utf8",
    dialect: Dialect | None = None,
    progress: Progress = None,
) -> "pa.Table":
    """The columns of a schema's dimensions and attributes as one table in memory, checked as `from_csv` checks them.

    Args:
        source, encoding: as in `from_csv`.
        dialect: None: with commas, or tabs in files that end in `.tsv` or `.tab`.
        schema: what the columns must hold.
        attrs: the attributes wanted; None: all.
        progress: True for a bar, or a callable `f(done_bytes, total_bytes)`.

    Raises:
        InputError: a value that does not fit, named by file, line and column; a column that is missing.
    """
    found = expand(source)
    dialect = dialect or Dialect(delimiter_of(found))
    feed = CsvFeed(found, dialect, encoding, None, default(), Rejects("fail", None))
    feed.request = Request(attrs, reads=True)
    with reporting(progress, "reading") as feed.meter.report:
        tables: list[Any] = list(feed.typed(schema, attrs))
    return pa.concat_tables(tables) if tables else schema._arrow_of(list(attrs or [])).empty_table()
