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
from ..schema.array_schema import Schema
from ..schema.dimension import Dim

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
    """All fragments of an array, and the tiles of them that a box and the bounds of a condition leave."""

    schema: Schema
    fragments: Sequence[Mapping[str, Any]]
    tiles: "pa.Table"
    whole: AnyArray
    """By tile, whether all of it lies in the box, as far as its bounds tell."""

    def counted(self, keys: Sequence[tuple[str, str, int | float | None]] | None) -> dict[str, int]:
        """The counts that an `ArrayScan` has. `keys`: those of an aggregation that statistics may answer."""
        held = [one["cells"] for one in self.fragments if one["kind"] in _HOLD]
        made = {
            "fragments": len(held),
            "fragments_planned": len(np.unique(self.tiles.column("fragment").to_numpy())),
            "tiles_planned": self.tiles.num_rows,
            "cells": sum(held),
            "cells_planned": int(self.tiles.column("cells").to_numpy().sum()),
        }
        if keys is not None:
            # Small sparse fragments are laid over the others cell by cell.
            laid = np.array([one["inline"] and one["kind"] == "sparse" for one in self.fragments], bool)
            alone = self.whole & ~laid[self.tiles.column("fragment").to_numpy()]
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
        low, high = _ends(self.tiles, dim)
        if width is None:
            return np.asarray(low == high) if key[1].strip('"') == name else np.ones(len(self.whole), bool)
        return np.asarray(np.floor(low / width) == np.floor(high / width))


def planned(array: "_native.Array", schema: Schema, region: Region, told: Mapping[str, Any] | None) -> Planned:
    """What is planned of an array in a region. `told`: what its condition means, as the core tells it; None: none.

    Reads the log and the indexes of fragments that the region touches, no cell.
    """
    from ..result import listings  # which takes long to load, as pyarrow does

    listed = [json.loads(text) for text in array.fragments()]
    holds = np.array([one["kind"] in _HOLD for one in listed], bool)
    is_empty = region.empty or (told is not None and (told["box"] is None or told["constant"] is False))
    tiles = listings.tiles(schema, array.tiles(region.native if not region.empty else None))
    tiles = tiles.slice(0, 0) if is_empty else tiles.filter(holds[tiles.column("fragment").to_numpy()])
    within = None if told is None or is_empty else _bounds(schema, told["box"])
    if within is not None:
        tiles = tiles.filter(_touched(schema, tiles, within))
    whole = np.zeros(tiles.num_rows, bool)
    for box in region.boxes:
        whole |= _inside(schema, tiles, box.bounds)
    return Planned(schema, listed, tiles, whole if within is None else whole & _inside(schema, tiles, within))


def _bounds(schema: Schema, box: Sequence[tuple[str, str]]) -> list[tuple[Any, Any]]:
    """The ends that a condition has along dimensions, times as ticks; (0, 0) along texts."""
    made: list[tuple[Any, Any]] = []
    for dim, ends in zip(schema.dims, box, strict=True):
        low, high = (0, 0) if dim.is_text else (datatype.from_text(dim.dtype, end) for end in ends)
        plain = dim.is_text or datatype.is_float(dim.dtype)
        made.append((low, high) if plain else (datatype.ticks_of(low), datatype.ticks_of(high)))
    return made


def _touched(schema: Schema, tiles: "pa.Table", bounds: Sequence[tuple[Any, Any]]) -> AnyArray:
    """By tile, whether it reaches into a box; along texts it is taken to."""
    kept = np.ones(tiles.num_rows, bool)
    for dim, (first, last) in zip(schema.dims, bounds, strict=True):
        if not dim.is_text:
            low, high = _ends(tiles, dim)
            kept &= (high >= first) & (low <= last)
    return kept


def _inside(schema: Schema, tiles: "pa.Table", bounds: Sequence[tuple[Any, Any]]) -> AnyArray:
    """By tile, whether a box holds all of it; along texts it is taken to."""
    kept = np.ones(tiles.num_rows, bool)
    for dim, (first, last) in zip(schema.dims, bounds, strict=True):
        if not dim.is_text:
            low, high = _ends(tiles, dim)
            kept &= (low >= first) & (high <= last)
    return kept


def _ends(tiles: "pa.Table", dim: Dim) -> tuple[AnyArray, AnyArray]:
    """The low and the high ends of tiles along a dimension, times as ticks of its unit, which Arrow may lack."""
    low, high = (np.asarray(tiles.column(f"{dim.name}_{end}").to_numpy()) for end in ("lo", "hi"))
    if datatype.is_time(dim.dtype):
        low, high = (ends.astype(datatype.numpy_of(dim.dtype)).astype(np.int64) for ends in (low, high))
    return low, high
