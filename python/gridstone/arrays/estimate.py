"""What the index of an array tells of a question before a cell is read: fragments, tiles, and cells at most."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..column import datatype
from ..column.datatype import AnyArray
from ..query.box import Region
from ..result import listings
from ..schema.array_schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

_KNOWN = re.compile(r'\s*(?:count|sum|mean|avg|min|max)\s*\(\s*(?:\*|[^\W\d]\w*|"(?:[^"]|"")+")\s*\)\s*', re.IGNORECASE)
_HOLD = ("dense", "sparse")
"""Kinds of fragments that hold cells; others hold deletions."""


def is_known(text: str) -> bool:
    """Whether statistics of a tile can tell an aggregate of all its cells."""
    return _KNOWN.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Planned:
    """The fragments of an array, and the tiles of them that a box and the bounds of a condition leave."""

    schema: Schema
    fragments: Sequence[Mapping[str, Any]]
    tiles: "pa.Table"
    whole: AnyArray
    """By tile, whether all of it lies in the box, as far as its bounds tell."""

    def counted(self, keys: Sequence[tuple[str, str, int | float | None]] | None) -> dict[str, int]:
        """The counts that an `ArrayScan` has. `keys`: those of an aggregation that statistics may answer."""
        made = {
            "fragments": len(self.fragments),
            "fragments_planned": len(np.unique(self.tiles.column("fragment").to_numpy())),
            "tiles_planned": self.tiles.num_rows,
            "cells": sum(one["cells"] for one in self.fragments),
            "cells_planned": int(self.tiles.column("cells").to_numpy().sum()),
        }
        if keys is not None:
            alone = self.whole
            for key in keys:
                alone = alone & self._in_one_group(key)
            made["tiles_from_index_max"] = int(alone.sum())
        return made

    def _in_one_group(self, key: tuple[str, str, int | float | None]) -> AnyArray:
        """By tile, whether a key may have one value, or one bin, over all of it; of an attribute that is not known."""
        name, _, width = key
        dim = next((dim for dim in self.schema.dims if dim.name == name), None)
        if dim is None or dim.is_text:
            return np.ones(len(self.whole), bool)
        low, high = _ends(self.tiles, name)
        if width is None:
            return np.asarray(low == high) if key[1].strip('"') == name else np.ones(len(self.whole), bool)
        return np.asarray(np.floor(low / width) == np.floor(high / width))


def planned(array: "_native.Array", schema: Schema, region: Region, told: Mapping[str, Any] | None) -> Planned:
    """What is planned of an array in a region. `told`: what its condition means, as the core tells it; None: none.

    Reads the log and the indexes of fragments that the region touches, no cell.
    """
    listed = [json.loads(text) for text in array.fragments()]
    holds = np.array([one["kind"] in _HOLD for one in listed], bool)
    is_empty = region.empty or (told is not None and (told["box"] is None or told["constant"] is False))
    tiles = listings.tiles(schema, array.tiles(region.native if not region.empty else None))
    tiles = tiles.slice(0, 0) if is_empty else tiles.filter(holds[tiles.column("fragment").to_numpy()])
    if told is not None and not is_empty:
        tiles = tiles.filter(_touched(schema, tiles, told["box"]))
    fragments = [one for one in listed if one["kind"] in _HOLD]
    return Planned(schema, fragments, tiles, _whole(schema, tiles, region))


def _touched(schema: Schema, tiles: "pa.Table", box: Sequence[tuple[str, str]]) -> AnyArray:
    """By tile, whether it reaches into the bounds of a condition; texts are taken to."""
    kept = np.ones(tiles.num_rows, bool)
    for dim, ends in zip(schema.dims, box, strict=True):
        if not dim.is_text:
            first, last = (_number(dim.dtype, end) for end in ends)
            low, high = _ends(tiles, dim.name)
            kept &= (high >= first) & (low <= last)
    return kept


def _number(dtype: str, end: str) -> Any:
    """An end along a dimension that is no text, times as ticks."""
    value = datatype.from_text(dtype, end)
    return value if datatype.is_float(dtype) else datatype.ticks_of(value)


def _whole(schema: Schema, tiles: "pa.Table", region: Region) -> AnyArray:
    """By tile, whether one of the boxes holds all of it; texts are taken to lie inside."""
    made = np.zeros(tiles.num_rows, bool)
    for box in region.boxes:
        inside = np.ones(tiles.num_rows, bool)
        for dim, (first, last) in zip(schema.dims, box.bounds, strict=True):
            if not dim.is_text:
                low, high = _ends(tiles, dim.name)
                inside &= (low >= first) & (high <= last)
        made |= inside
    return made


def _ends(tiles: "pa.Table", name: str) -> tuple[AnyArray, AnyArray]:
    """The low and the high ends of tiles along a dimension, times as ticks."""
    low, high = (np.asarray(tiles.column(f"{name}_{end}").to_numpy()) for end in ("lo", "hi"))
    return (low.astype(np.int64), high.astype(np.int64)) if low.dtype.kind in "mM" else (low, high)
