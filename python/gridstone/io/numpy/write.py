"""Writes arrays as NumPy's files, in parts that fit the memory budget.

Texts are of NumPy's fixed width there, that of the longest one. A pass over the cells finds it before they are written.
"""

import itertools
import math
import os
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...arrays.array import Array
from ...base.progress import Callback, Progress, reporting
from ...column import arrow_types, datatype, decode
from ...column.datatype import AnyArray
from ...errors import InputError, StorageError, UnsupportedError
from ...query.box import Box, BoxLike, box_of
from ...result.damage import Damaged
from ...schema.fields import attr_field
from ...stores import store
from ..files import Scratch, written
from ..handles import opened

_OBJECT_BYTES = 64
"""What a text takes as a Python object beside its characters, about."""


def to_npy(
    array: Array | store.Uri,
    target: str | os.PathLike[str],
    box: BoxLike = None,
    attr: str | None = None,
    *,
    fill: Any = None,
    progress: Progress = None,
    damaged: Damaged = "error",
) -> tuple[int, ...]:
    """Writes one attribute over a box as a `.npy` file, through a memory map, in bounded memory.

    Args:
        array: an array, or the store of one; the dimensions of a sparse one are integers or times.
        target: the file; it appears, or is replaced, once all is written.
        box: in coordinates, as in `Array.read`; None: everything.
        attr: the attribute; None: the only one.
        fill: the value of nulls, and of empty cells of a sparse array; None: the attribute's own fill, and nulls are an
            error.
        progress: True for a bar, or a callable `f(done_cells, total_cells)`.
        damaged: "error", or "skip" to write fill (or `fill`) for what is damaged, with a warning; as in `Array.read`.

    Returns the shape of the file's array; vectors add their axes at the end, texts are as wide as the longest of them
    (`<U12`, say).

    Raises:
        InputError: a null and no `fill`, or several attributes and none chosen; a text that ends in NUL, which NumPy
            would drop.
        UnsupportedError: the attribute is lists or bytes of any length, of which `.npy` files hold Python objects.
    """
    source = opened(array)._pinned()
    where = box_of(source.schema, box)
    name = _one(source, attr)

    def write(part: Path) -> None:
        with reporting(progress, "writing", "cells") as report:
            _grid(source, where, name, (fill, damaged), part, report)

    written(target, write)
    return where.shape + datatype.shape_of(source.schema.attr(name).dtype)


def to_npz(
    array: Array | store.Uri,
    target: str | os.PathLike[str],
    box: BoxLike = None,
    attrs: Sequence[str] | None = None,
    *,
    fill: Any = None,
    compressed: bool = True,
    progress: Progress = None,
    damaged: Damaged = "error",
) -> list[str]:
    """Writes a box as a `.npz` file, in bounded memory.

    From a dense array it gets one array per attribute, of the box's shape; from a sparse one an array per dimension and
    attribute, with a value per cell. Vectors have their length as one axis more, the last. Texts are as in `to_npy`.

    Args:
        array, box, progress, damaged: as in `to_npy`; cells of a sparse array that are damaged are left out.
        target: the file; it appears, or is replaced, once all is written.
        attrs: None: all.
        fill: dense: the value of nulls; None: they are an error.
        compressed: whether the arrays in it are deflated.

    Returns the names of the arrays.
    """
    source = opened(array)._pinned()
    where = box_of(source.schema, box)
    names = [_one(source, name) for name in (source.schema_names if attrs is None else attrs)]
    scratch, made = Scratch(), list(names)

    def write(part: Path) -> None:
        how = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        with zipfile.ZipFile(part, "w", how) as archive, reporting(progress, "writing", "cells") as report:
            if source.sparse:
                made[:0] = source.dims
                _columns(source, (where, damaged), names, archive, scratch, report)
                return
            for name in names:
                file = scratch.file("member.npy")
                _grid(source, where, name, (fill, damaged), file, report)
                archive.write(file, f"{name}.npy")
                file.unlink()

    try:
        written(target, write)
    finally:
        scratch.close()
    return made


def _one(array: Array, attr: str | None) -> str:
    """The attribute to write."""
    if attr is None and len(array.schema.attrs) > 1:
        raise InputError(f"the array has the attributes {array.schema_names}; say which one with attr=")
    name = array.schema_names[0] if attr is None else attr
    kind = attr_field(array.schema, name).dtype
    if datatype.is_var(kind) and kind != "string":
        raise UnsupportedError(
            f"attribute {name!r} is {kind}, of which NumPy's files hold Python objects; use to_parquet or to_csv"
        )
    return name


def _grid(array: Array, box: Box, name: str, how: tuple[Any, Damaged], file: Path, report: Callback | None) -> None:
    """One attribute over a box as a `.npy` file."""
    fill, damaged = how
    attr = array.schema.attr(name)
    kind, inner = attr.dtype, datatype.shape_of(attr.dtype)
    shape = box.shape + inner
    fill = None if fill is None else datatype.scalar(kind, fill, f"attribute {name!r}: the fill")
    blank = (attr.fill if fill is None else fill) if array.sparse or fill is not None else ""
    texts = _widths(array, box, {name: f"attribute {name!r}"}, damaged, blank) if kind == "string" else {}
    dtype = _dtype(kind, texts.get(name))
    if 0 in shape:
        with file.open("wb") as empty:
            np.save(empty, np.empty(shape, dtype))
        return
    total, done = math.prod(box.shape), 0
    width = dtype.itemsize * math.prod(inner)
    free = shutil.disk_usage(file.parent).free
    need = total * width
    if need > free:
        raise StorageError(
            f"an array of shape {shape} takes {need:,} bytes, {str(file.parent)!r} has {free:,}; write a smaller box"
        )
    out = np.lib.format.open_memmap(file, mode="w+", dtype=dtype, shape=shape)
    cells_max = max(1, array.context.memory_budget // (8 * (width + (_OBJECT_BYTES if texts else 0))))
    for part in _parts(array, box, cells_max):
        bounds = [(int(low) + p.start, int(low) + p.stop - 1) for (low, _), p in zip(box.bounds, part, strict=True)]
        found = array.read(Box(box.dims, tuple(bounds)), [name], damaged=damaged)
        values: Any = found.to_dense(fill if array.sparse else None)
        out[part] = _filled(name, values, fill)
        done += math.prod(p.stop - p.start for p in part)
        if report is not None:
            report(done, total)
    out.flush()


def _dtype(kind: str, width: int | None) -> np.dtype[Any]:
    """The dtype in a file of values of a type, of texts of this width."""
    return datatype.numpy_of(kind) if width is None else np.dtype(f"<U{width}")


def _widths(array: Array, box: Box, titles: dict[str, str], damaged: Damaged, blank: Any = "") -> dict[str, int]:
    """The characters of the longest text in each of these columns, `blank` among them and at least 1; nulls have none.
    An `InputError` if a text ends in NUL, which NumPy takes for what is left of the width."""
    if blank.endswith("\0"):
        raise _padded(f"the fill of {', '.join(titles.values())}")
    found = dict.fromkeys(titles, max(1, len(blank)))
    names = [name for name in titles if name in array.schema_names]
    batch_bytes = max(1, array.context.memory_budget // 8)
    for batch in array.scan(box, names, batch_bytes=batch_bytes, damaged=damaged):
        for name, title in titles.items():
            texts = batch.column(name)
            texts = arrow_types.decoded(texts) if pa.types.is_dictionary(texts.type) else texts
            if pc.any(pc.ends_with(texts, "\0")).as_py():
                raise _padded(title)
            found[name] = max(found[name], pc.max(pc.utf8_length(texts)).as_py() or 0)
    return found


def _padded(title: str) -> InputError:
    return InputError(
        f"{title} has a text that ends in NUL, which NumPy's texts of fixed width drop; use to_parquet or to_csv"
    )


def _filled(name: str, values: AnyArray, fill: Any) -> AnyArray:
    if not np.ma.isMaskedArray(values):
        return values
    if fill is None and np.ma.getmaskarray(values).any():
        raise InputError(f"attribute {name!r} has nulls in this box, which NumPy's files cannot hold; give fill=")
    if fill is None:
        return np.asarray(values.data)
    return np.where(np.ma.getmaskarray(values), np.array(fill, values.dtype), values.data)


def _parts(array: Array, box: Box, cells_max: int) -> Iterator[tuple[slice, ...]]:
    """Boxes of positions that cover `box`, of whole tiles where these fit."""
    sizes = box.shape
    steps = [min(size, dim.positions_per_tile) for size, dim in zip(sizes, array.schema.dims, strict=True)]
    for axis in range(len(steps)):
        others = math.prod(s for i, s in enumerate(steps) if i != axis)
        if others * steps[axis] > cells_max:
            steps[axis] = max(1, cells_max // others)
    for axis in reversed(range(len(steps))):
        others = math.prod(s for i, s in enumerate(steps) if i != axis)
        times = max(1, cells_max // (others * steps[axis]))
        steps[axis] = min(sizes[axis], steps[axis] * times)
    spans = [[slice(at, min(at + step, n)) for at in range(0, n, step)] for n, step in zip(sizes, steps, strict=True)]
    return itertools.product(*spans)


def _columns(
    array: Array,
    what: tuple[Box, Damaged],
    names: Sequence[str],
    archive: zipfile.ZipFile,
    scratch: Scratch,
    report: Callback | None,
) -> None:
    """The columns of a sparse array, each gathered in a file of its own first."""
    kinds = {dim.name: dim.dtype for dim in array.schema.dims}
    kinds |= {name: array.schema.attr(name).dtype for name in names}
    files = {name: scratch.file("column") for name in kinds}
    (box, damaged), rows = what, 0
    titles = {dim.name: f"dimension {dim.name!r}" for dim in array.schema.dims if dim.is_text}
    titles |= {name: f"attribute {name!r}" for name in names if kinds[name] == "string"}
    widths = _widths(array, box, titles, damaged) if titles else {}
    batch_bytes = max(1, array.context.memory_budget // (64 if widths else 8))
    stream = array.scan(box, names, order="row", batch_bytes=batch_bytes, damaged=damaged)
    outs: dict[str, IO[bytes]] = {name: file.open("wb") for name, file in files.items()}
    try:
        while (found := stream._next_columns()) is not None:
            for name, column in found.items():
                values = _filled(name, decode.numpy_of(column), None)
                for part in _pieces(values, widths[name], batch_bytes) if name in widths else [values]:
                    outs[name].write(np.ascontiguousarray(part).tobytes())
            rows += len(found[array.dims[0]])
            if report is not None:
                report(rows, 0)
    finally:
        for out in outs.values():
            out.close()
    for name, file in files.items():
        dtype = _dtype(kinds[name], widths.get(name))
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False}
        shape = (rows, *datatype.shape_of(kinds[name]))
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member, file.open("rb") as raw:
            np.lib.format.write_array_header_1_0(member, {**header, "shape": shape})
            shutil.copyfileobj(raw, member, 1 << 20)
        file.unlink()


def _pieces(texts: AnyArray, width: int, bytes_max: int) -> Iterator[AnyArray]:
    """Texts as NumPy's of fixed width, so many at a time: short ones beside a long one grow."""
    step = max(1, bytes_max // (4 * width))
    for start in range(0, len(texts), step):
        yield texts[start : start + step].astype(f"<U{width}")
