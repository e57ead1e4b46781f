"""What pandas hands over: frames of rows and columns, and series, with the labels of their indexes."""

from typing import Any

from ..errors import InputError


def is_frame(given: Any) -> bool:
    """Whether this is a DataFrame."""
    return _is(given, "DataFrame")


def is_pandas(given: Any) -> bool:
    """Whether this is a DataFrame or a Series."""
    return is_frame(given) or _is(given, "Series")


def _is(given: Any, name: str) -> bool:
    kind = type(given)
    return kind.__name__ == name and kind.__module__.partition(".")[0] == "pandas"


def axes_of(given: Any) -> list[Any]:
    """The indexes of a frame of one type, or of a series, by dimension.

    Raises:
        InputError: an index of several levels, or columns of several types.
    """
    axes = [given.index, given.columns] if is_frame(given) else [given.index]
    for axis in axes:
        if axis.nlevels > 1:
            raise InputError(
                "a frame whose index has several levels has no labels for positions; gridstone.io.from_pandas takes "
                "levels as dimensions, x.to_numpy() the values alone"
            )
    if len(axes) == 2 and len({str(dtype) for dtype in given.dtypes}) > 1 and given.to_numpy().dtype.kind == "O":
        raise InputError(
            "the columns of the frame have several types, an array of rows and columns has one: store the frame as a "
            "table with gridstone.io.from_pandas, or choose the columns of one type"
        )
    return axes


def is_counted(axis: Any, start: int = 0) -> bool:
    """Whether an index only counts positions, from `start` on, so that there are no labels."""
    return type(axis).__name__ == "RangeIndex" and (axis.start, axis.step) == (start, 1)
