"""Variables of NetCDF-3 classic files (also with 64-bit offsets), by the layout that the format's specification gives.

Only what the inputs need: variables of fixed size. Record variables are refused.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_TYPES = {1: ">i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8"}
_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12


@dataclass
class _Header:
    """The bytes of a file, and how far its header was read."""

    data: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, width: int = 4) -> int:
        return int.from_bytes(self.take(width), "big")

    def padded(self, count: int) -> bytes:
        """Bytes, and zeros up to a multiple of four."""
        found = self.take(count)
        self.at += -count % 4
        return found

    def name(self) -> str:
        return self.padded(self.number()).decode()

    def entries(self, tag: int) -> int:
        """How many entries the list of this kind has that begins here."""
        found, count = self.number(), self.number()
        if found not in (0, tag):
            raise ValueError(f"tag {found} where {tag} was expected: no NetCDF-3 file")
        return count

    def skip_attributes(self) -> None:
        for _ in range(self.entries(_ATTRIBUTES)):
            self.name()
            width = np.dtype(_TYPES[self.number()]).itemsize
            self.padded(self.number() * width)


def variable(data: bytes, wanted: str) -> Array:
    """The values of one variable, in the byte order of this machine."""
    header = _Header(data)
    magic, version = header.take(3), header.number(1)
    if magic != b"CDF" or version not in (1, 2):
        raise ValueError("no NetCDF-3 classic file")
    header.number()
    lengths = []
    for _ in range(header.entries(_DIMENSIONS)):
        header.name()
        lengths.append(header.number())
    header.skip_attributes()
    for _ in range(header.entries(_VARIABLES)):
        name = header.name()
        shape = [lengths[header.number()] for _ in range(header.number())]
        header.skip_attributes()
        dtype = np.dtype(_TYPES[header.number()])
        header.number()
        start = header.number(4 * version)
        if name == wanted:
            if 0 in shape:
                raise ValueError(f"{wanted} is a record variable")
            values = np.frombuffer(data, dtype, math.prod(shape), start).reshape(shape)
            return values.astype(dtype.newbyteorder("="))
    raise KeyError(wanted)
