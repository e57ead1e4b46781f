"""Dimensions: names, types, domains and tile extents of coordinates."""

from typing import Any

import numpy as np

from ..base.arguments import checked, label
from ..base.printable import brief
from ..column import datatype, period
from ..column.datatype import AnyArray, Value
from ..errors import SchemaError, UnsupportedError
from .frozen import Frozen
from .labels import SHARED, Given, Listed, Shared, Steps, check_count, check_pair, given_labels


class Dim(Frozen):
    """A dimension.

    Args:
        name: unique among the dimensions and attributes of an array.
        domain: the lowest and highest coordinate, both inclusive. For datetimes: `numpy.datetime64`, ISO text,
            `datetime`, or ticks of the unit. A written date or time (ISO text, `date`) is a period: the domain
            `("2026-03-01", "2026-05-31")` of seconds ends with the last second of May. An end that is None is open:
            `(0, None)`. Then the array has no coordinate along the dimension at first, and every write makes the domain
            reach to what it writes. `(0, -1)` is a dimension of length 0, which grows by appends and by writes with
            `grow=True`.
        tile: the extent of a space tile in coordinates (a float length for float dimensions; `numpy.timedelta64` or
            ticks for datetimes); None: the whole domain is one tile. It may be longer than the domain. A dense array
            needs one where an end is open: `gridstone.create` chooses it if none is given.
        dtype: an integer, datetime64 or timedelta64 type; in sparse arrays also float32, float64 and "string".
        max_bytes: of a string dimension, the bytes of UTF-8 of its longest text; 32 unless given. Each 8 bytes take an
            axis, of which an array has at most 32 (a number takes one).
        labels: of an array that is dense, what the positions stand for: one number, time or text for each of them, or
            `(start, step)`; or the path of an array of one dimension whose values they are, which others may share.
            They are data that the array is created with, and no part of what makes schemas equal; those of a stored
            array are `array.dim(name).labels`.

    A dimension of texts has no domain (None): every text without NUL, of up to `max_bytes`, is inside. Its order is
    that of the code points.

    Raises:
        SchemaError: a bound or the extent is no value of the type; a domain or tile of texts.
        UnsupportedError: the type is bytes, which this version has for attributes only.

    Example:
        >>> gs.Dim("day", ("2026-01-01", "2026-12-31"), 30, dtype="datetime64[D]").size
        365
    """

    __slots__ = (
        *("_count", "_domain", "_given", "_labels", "_origin", "_stored_labels"),
        *("dtype", "max_bytes", "name", "tile"),
    )
    name: str
    _domain: tuple[Value, Value] | None
    """The highest coordinate lies below the lowest while there is none. That of an array at its version."""
    _given: tuple[Value | None, Value | None] | None
    """The ends of the domain, of which None is open; None: both are closed."""
    _count: int | None
    """Coordinates, where these are positions too: not of floats and texts."""
    _origin: int | None
    """A coordinate in ticks at which a tile begins, where coordinates are positions: that of an array stays when its
    domain grows. It is no part of what a user asks for, so that it takes no part in comparisons."""
    _labels: Given | None
    """Those that an array is to be created with."""
    _stored_labels: Steps | str | None
    """The labels of a stored array at steps, or the id of the array that has them, behind `SHARED` if it is shared."""
    tile: Value | None
    dtype: str
    max_bytes: int | None

    @checked(name=label)
    def __init__(
        self,
        name: str,
        domain: tuple[Any, Any] | None = None,
        tile: Any = None,
        dtype: Any = "int64",
        *,
        max_bytes: int | None = None,
        labels: Any = None,
    ) -> None:
        kind = datatype.parse(dtype)
        what = f"dimension {name!r}"
        self._put(_labels=None if labels is None else given_labels(what, labels), _stored_labels=None)
        if labels is not None and (kind == "string" or datatype.is_float(kind)):
            raise SchemaError(f"{what} is {kind}: labels are of positions, which it does not have; leave them out")
        if kind == "bytes":
            raise UnsupportedError(f"{what}: bytes dimensions are not supported by this version; use an attribute")
        if kind == "string":
            self._put(name=str(name), _domain=None, _given=None, _count=None, _origin=None, dtype=kind, tile=None)
            self._put(max_bytes=_longest(what, max_bytes))
            if domain is not None:
                raise SchemaError(f"{what}: texts have no domain, every text is inside; give domain=None")
            if tile is not None:
                raise SchemaError(f"{what}: texts are one tile; give tile=None")
            return
        if max_bytes is not None:
            raise SchemaError(f"{what}: max_bytes is for dimensions of type string, not {kind}")
        if kind == "float16" or not (datatype.is_float(kind) or datatype.is_time(kind) or kind in datatype.INTEGERS):
            raise SchemaError(f"{what}: {kind} cannot be a dimension's type; use an integer, datetime or float")
        if not isinstance(domain, tuple | list) or len(domain) != 2:
            raise SchemaError(f"{what}: the domain is a pair (lowest, highest), not {brief(domain)}")
        self._put(name=str(name), dtype=kind, tile=_extent(kind, tile, what), max_bytes=None)
        if _is_of_length_0(kind, domain):
            self._put_domain(_empty(kind, (None, None)), None)
            self._check_labels(labels)
            return
        ends = (domain[0], period.last_value(kind, domain[1]))
        low, high = (None if bound is None else datatype.scalar(kind, bound, what) for bound in ends)
        if low is None or high is None:
            self._put_domain(_empty(kind, (low, high)), (low, high))
        else:
            self._put_domain((low, high), None)
        self._check_labels(labels)

    def _put_domain(
        self, domain: tuple[Value, Value] | None, given: "_Ends | None", origin: Value | None = None
    ) -> None:
        """Sets the domain, the ends that were given if one is open, and a coordinate at which a tile begins."""
        begin = origin if origin is not None or domain is None else domain[0]
        if begin is None or datatype.is_float(self.dtype):
            self._put(_domain=domain, _given=given, _count=None, _origin=None)
            return
        self._put(_domain=domain, _given=given, _count=_count_of(domain), _origin=datatype.ticks_of(begin))

    def _check_labels(self, given: Any) -> None:
        if self._labels is not None:
            check_pair(f"dimension {self.name!r}", given, self.size)
            check_count(f"dimension {self.name!r}", self._labels, self.size)

    @property
    def labels(self) -> AnyArray | None:
        """The labels that an array is created with, one per position; None if there are none. The schema of a stored
        array has None: see `array.dim(name).labels`."""
        if isinstance(self._labels, Steps):
            return self._labels.values(0, self.size)
        return self._labels.values if isinstance(self._labels, Listed) else None

    @property
    def _labels_text(self) -> str:
        """What is said of its labels where it is shown; "" if it has none."""
        if isinstance(self._labels, Listed):
            return f"{len(self._labels)} of {self._labels.dtype}"
        if isinstance(self._labels, Shared):
            return f"in {self._labels.path}"
        found = self._labels or self._stored_labels
        if found is None or isinstance(found, Steps):
            return "" if found is None else str(found)
        return "in another array" if found.startswith(SHARED) else "in a list"

    @property
    def _shown(self) -> str:
        """Its coordinates on one line, and of its labels what is known without a read."""
        if self._domain is None:
            return self.dtype
        return f"{self.shown} with labels {self._labels_text}" if self._labels_text else self.shown

    @property
    def is_text(self) -> bool:
        """Whether its coordinates are texts."""
        return self.dtype == "string"

    @property
    def domain(self) -> Any:
        """The lowest and highest coordinate, a pair; None of texts. While there is no coordinate along a dimension with
        an open end, the ends that were given, such as (0, None)."""
        return self._given if self._given is not None and self.is_empty else self._domain

    @property
    def reach(self) -> Any:
        """The lowest and highest coordinate there is, a pair whose highest lies below the lowest while there is none;
        None of texts."""
        return self._domain

    @property
    def open(self) -> tuple[bool, bool]:
        """Whether the low and the high end of the domain are open: every write makes it reach to what it writes."""
        return (False, False) if self._given is None else (self._given[0] is None, self._given[1] is None)

    @property
    def is_empty(self) -> bool:
        """Whether there is no coordinate along it."""
        return self._domain is not None and bool(self._domain[0] > self._domain[1])  # type: ignore[operator]

    @property
    def shown(self) -> str:
        """The domain, for people."""
        if self._domain is None:
            return "every text"
        if self.is_empty:
            return "empty"
        return "..".join(datatype.show(end, self.dtype) for end in self._domain)

    def _numbers(self, what: str) -> tuple[Value, Value]:
        """The domain; a `SchemaError` for texts, which have no `what`."""
        if self._domain is None:
            raise SchemaError(f"dimension {self.name!r} is string: it has no {what}")
        return self._domain

    @property
    def size(self) -> int:
        """The number of coordinates; a `SchemaError` for float and string dimensions, which have no positions."""
        if self._count is not None:
            return self._count
        self._numbers("number of positions")
        raise SchemaError(f"dimension {self.name!r} is {self.dtype}: it has coordinates, but no number of positions")

    @property
    def positions_per_tile(self) -> int:
        """Coordinates in a space tile, at most; a `SchemaError` for float and string dimensions."""
        size = self.size
        if self.tile is None:
            return size
        extent = datatype.ticks_of(self.tile)
        return extent if self._given is not None else min(size, extent)

    def _tile_starts(self, low: int, count: int) -> AnyArray:
        """The positions, 0 first, where space tiles begin among `count` coordinates from `low` on, which is in ticks.

        Tiles count from the origin. The low end of a domain that has grown may cut a tile.
        """
        if self.tile is None or self._origin is None:
            return np.zeros(1, np.int64)
        extent = datatype.ticks_of(self.tile)
        first = extent - (low - self._origin) % extent
        # An extent may be longer than 64 bits with a sign can tell, a box in memory is not.
        rest = np.arange(first, count, min(extent, count), dtype=np.int64) if first < count else np.zeros(0, np.int64)
        return np.concatenate((np.zeros(1, np.int64), rest))

    def _json(self) -> dict[str, Any]:
        if self._domain is None:
            text = {"name": self.name, "dtype": self.dtype, "domain": None, "tile": None}
            return {**text, "max_bytes": self.max_bytes}
        extent = "float64" if datatype.is_float(self.dtype) else self.dtype
        tile = None if self.tile is None else datatype.to_text(extent, self.tile)
        ends = (
            self._given
            if self._given is not None
            else ()
            if _is_of_length_0(self.dtype, self._domain)
            else self._domain
        )
        domain = [None if bound is None else datatype.to_text(self.dtype, bound) for bound in ends]
        return {"name": self.name, "dtype": self.dtype, "domain": domain, "tile": tile}

    def __reduce__(self) -> tuple[Any, ...]:
        more: dict[str, Any] = {} if self._origin is None else {"origin": str(self._origin)}
        if self._given is not None and self._domain is not None and not self.is_empty:
            more["reach"] = [datatype.to_text(self.dtype, bound) for bound in self._domain]
        return dim_of, ({**self._json(), **more}, self._labels, self._stored_labels)

    def __repr__(self) -> str:
        if self._domain is None:
            return f"Dim({self.name!r}, dtype='string', max_bytes={self.max_bytes})"
        ends = self._domain if self._given is None else self._given
        lo, hi = ("None" if bound is None else datatype.show(bound, self.dtype) for bound in ends)
        tile = "None" if self.tile is None else datatype.show(self.tile)
        labels = f", labels=<{self._labels_text}>" if self._labels_text else ""
        return f"Dim({self.name!r}, domain=({lo}, {hi}), tile={tile}, dtype={self.dtype!r}{labels})"


def _longest(what: str, max_bytes: Any) -> int:
    """`max_bytes` checked; its greatest value is the core's affair."""
    if max_bytes is None:
        return 32
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int | np.integer) or not 0 < max_bytes < 2**32:
        raise SchemaError(f"{what}: max_bytes is a positive number of bytes, not {brief(max_bytes)}")
    return int(max_bytes)


_Ends = tuple[Value | None, Value | None]


def _count_of(domain: tuple[Value, Value] | None) -> int | None:
    """The number of coordinates from one end of a domain of ticks to the other."""
    return None if domain is None else datatype.ticks_of(domain[1]) - datatype.ticks_of(domain[0]) + 1


def _is_of_length_0(kind: str, domain: Any) -> bool:
    """Whether these ends are (0, -1): no coordinate, and the first one will be 0."""
    if datatype.is_float(kind) or any(isinstance(bound, str | bool | type(None)) for bound in domain):
        return False
    try:
        return [datatype.ticks_of(bound) for bound in domain] == [0, -1]
    except (TypeError, ValueError):
        return False


def _empty(kind: str, ends: _Ends) -> tuple[Value, Value]:
    """A pair that tells where the first coordinate will lie, if an end tells it, and whose second lies before it."""
    low, high = ends
    if datatype.is_float(kind):
        of = datatype.numpy_of(kind).type
        start = (
            of(0.0 if low is None else low) if low is not None or high is None else np.nextafter(of(high), of(np.inf))
        )
        return float(start), float(np.nextafter(start, of(-np.inf)))
    first = 0 if low is None else datatype.ticks_of(low)
    if low is None and high is not None:
        first = datatype.ticks_of(high) + 1
    if datatype.is_time(kind):
        return datatype.from_text(kind, str(first)), datatype.from_text(kind, str(first - 1))
    return first, first - 1


def _extent(kind: str, tile: Any, what: str) -> Value | None:
    """The tile extent of a dimension of type `kind`: a float length, a timedelta, or a number of coordinates."""
    if tile is None:
        return None
    what = f"{what}: the tile extent"
    return datatype.scalar(_extent_type(kind), tile, what)


def _extent_type(kind: str) -> str:
    """The type of the tile extents of a dimension of type `kind`."""
    if datatype.is_time(kind):
        return f"timedelta64[{datatype.step_of(kind)}]"
    return "float64" if datatype.is_float(kind) else "uint64"


def dim_of(found: dict[str, Any], labels: Given | None = None, stored: Steps | str | None = None) -> Dim:
    """The dimension of the JSON form that the core has written, or one that was checked; it is not checked again."""
    made, kind, written, tile = Dim.__new__(Dim), found["dtype"], found["domain"], found["tile"]
    extent = None if tile is None else datatype.from_text(_extent_type(kind), tile)
    made._put(_labels=labels, _stored_labels=stored or _stored_labels(found.get("labels")))
    made._put(name=found["name"], dtype=kind, tile=extent, max_bytes=found["max_bytes"] if kind == "string" else None)
    origin = datatype.from_text(kind, found["origin"]) if "origin" in found else None
    if written is None:
        made._put_domain(None, None)
        return made
    low, high = (None if end is None else datatype.from_text(kind, end) for end in written or (None, None))
    given = (low, high) if len(written) == 2 and (low is None or high is None) else None
    if "reach" in found:
        first, last = (datatype.from_text(kind, end) for end in found["reach"])
        made._put_domain((first, last), given, origin)
    elif low is not None and high is not None:
        made._put_domain((low, high), given, origin)
    else:
        made._put_domain(_empty(kind, (low, high)), given, origin)
    return made


def _stored_labels(found: dict[str, str] | None) -> Steps | str | None:
    """The labels of a stored array as the core tells them."""
    if found is None or "array" in found:
        return None if found is None else found["array"]
    if "shared" in found:
        return f"{SHARED}{found['shared']}"
    number = float if datatype.is_float(found["dtype"]) else int
    start, step = (number(found[end]) for end in ("start", "step"))
    if found["dtype"] == "float32":
        start, step = (datatype.rounded("float32", one) for one in (start, step))
    return Steps(found["dtype"], start, step)
