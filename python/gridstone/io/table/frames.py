"""Data frames of pandas and polars as tables.

Columns that cannot be taken over are kept apart, each with its error, which is raised only if the column is wanted.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa

from ...column import arrow_capsule, pandas
from ...errors import GridstoneError, InputError

Refused = dict[str, GridstoneError]


def of_pandas(frame: Any) -> tuple[Any, Refused]:
    """The table of a data frame of pandas, the named levels of its index and then its columns."""
    levels = [str(name) for name in frame.index.names if name is not None]
    names = [str(name) for name in frame.columns]
    wanted = [*levels, *names]
    if len(set(wanted)) < len(wanted):
        raise InputError(
            f"the data frame has duplicate names of columns and levels of the index: {wanted}; rename them"
        )
    packed = {name: kind.subtype for name, kind in frame.dtypes.items() if type(kind).__name__ == "SparseDtype"}
    frame = frame.astype(packed) if packed else frame  # pyarrow takes no sparse columns
    try:
        table, refused = pandas.table_of(frame), Refused()
    except Exception as error:  # pandas and pyarrow have many kinds: each column then tells its own
        refused = _refused(frame)
        if not refused:
            raise _untaken("the index of the data frame", error) from error
        table = pandas.table_of(frame[[name for name in frame.columns if str(name) not in refused]])
    return table.select([name for name in wanted if name not in refused]).replace_schema_metadata(None), refused


def _refused(frame: Any) -> Refused:
    """The columns of a data frame of pandas that make none of a table."""
    refused = Refused()
    bare = frame.reset_index(drop=True)
    for place, name in enumerate(map(str, frame.columns)):
        try:
            pandas.table_of(bare.iloc[:, [place]])
        except Exception as error:
            refused[name] = _untaken(f"column {name!r} of the data frame", error)
    return refused


def _untaken(title: str, error: Exception) -> GridstoneError:
    if isinstance(error, MemoryError):
        raise error
    if isinstance(error, GridstoneError):
        return error
    reason = " ".join(map(str, error.args))
    return InputError(f"{title} makes no column of a table: {reason}; give it values of one type, or leave it out")


def of_polars(frame: Any) -> tuple[Any, Refused]:
    """The table of a data frame of polars."""
    refused = arrow_capsule.refusals(frame)
    if len(refused) == frame.width and refused:
        raise next(iter(refused.values()))
    return pa.table(frame.drop(list(refused))), refused


def computed(frame: Any, target: Path) -> Refused:
    """Has polars' streaming engine compute a lazy frame into an Arrow file; what it cannot write there is refused."""
    import polars

    def compute() -> Refused:
        refused = arrow_capsule.refusals(polars.DataFrame(schema=frame.collect_schema()))
        frame.drop(list(refused)).sink_ipc(target)
        return refused

    try:
        return compute()
    except polars.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"the lazy frame cannot be computed: {reason}; try collect() on it, and correct it") from error
