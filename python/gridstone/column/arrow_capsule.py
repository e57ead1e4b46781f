"""Takes over data of other libraries through Arrow's C interface, and refuses what is no data in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from ..errors import GridstoneError, InputError, UnsupportedError
from . import byte_order


def is_polars(data: Any) -> bool:
    """Whether polars made it."""
    return type(data).__module__.partition(".")[0] == "polars"


def refusal(title: str, series: Any) -> GridstoneError | None:
    """Why a column of polars cannot be taken over, if it cannot; one without rows tells it too."""
    if str(series.dtype) == "Object":
        return UnsupportedError(
            f"{title} has Python objects, of which polars hands over the addresses in memory; make numbers, text or "
            f"lists of them, or leave it out"
        )
    try:
        pa.chunked_array(series.clear())
    except (pa.ArrowException, TypeError, ValueError) as error:
        return UnsupportedError(
            f"{title} is {series.dtype}, which polars hands over as a type that pyarrow {pa.__version__} does not "
            f"know ({error}); cast it first, or leave it out"
        )
    return None


def refusals(frame: Any) -> dict[str, GridstoneError]:
    """The columns of a data frame of polars that cannot be taken over, by name."""
    found = {name: refusal(f"column {name!r}", frame.get_column(name)) for name in frame.columns}
    return {name: error for name, error in found.items() if error is not None}


@contextmanager
def _taking(title: str) -> Iterator[None]:
    """Turns what pyarrow, pandas and polars raise of data that they cannot hand over into an `InputError`."""
    try:
        yield
    except (GridstoneError, MemoryError):
        raise
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError, NotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{title} cannot be taken over as Arrow data: {reason}; cast its columns first") from error


def stream_of(data: Any) -> Any:
    """A reader of the record batches of what has `__arrow_c_stream__`."""
    if is_polars(data) and hasattr(data, "columns"):
        for error in refusals(data).values():
            raise error
    with _taking(f"this {type(data).__name__}"):
        if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "iloc"):
            data = byte_order.native(data)
        return pa.RecordBatchReader.from_stream(data)


def table_of(data: Any) -> Any:
    """All that has `__arrow_c_stream__` gives."""
    reader = stream_of(data)
    with _taking(f"this {type(data).__name__}"):
        return reader.read_all()


def chunks_of(title: str, data: Any) -> Any:
    """The chunks of one column that has `__arrow_c_stream__`."""
    error = refusal(title, data) if is_polars(data) and hasattr(data, "dtype") else None
    if error is not None:
        raise error
    with _taking(f"{title}: this {type(data).__name__}"):
        return pa.chunked_array(data)
