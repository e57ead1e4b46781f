"""The files of other formats that an array's cells lie in: their states, and attaching more of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..base.arguments import checked
from ..base.extras import needed
from ..base.printable import brief
from ..base.progress import Progress
from ..errors import AccessError, InputError
from ..foreign import files
from ..foreign.filter_names import told
from ..foreign.series import NEW, Series, types_of
from .attaching import Asked, Attaching, Target, labelled

if TYPE_CHECKING:
    import pyarrow as pa


class Attached:
    """What `Array` has of attached files."""

    @property
    def sources(self: Target) -> "pa.Table":
        """The files of other formats that cells lie in: uri, size in bytes, time of the last change, etag, cells,
        filters, state.

        The filters are those of chunks, in the order of their writer, with the library where Python decodes them.
        The state is "unchanged", or says what is wrong with the file now. Cells that were brought home lie in no file.
        """
        pa = needed("pyarrow", "arrow", "sources")
        rows = _native.foreign_sources(self.native)
        times = pa.array([row["time_us"] for row in rows], pa.int64()).cast(pa.timestamp("us", "UTC"))
        return pa.table(
            {
                "uri": pa.array([row["uri"] for row in rows], pa.string()),
                "size": pa.array([row["size"] for row in rows], pa.uint64()),
                "time": times,
                "etag": pa.array([row["etag"] for row in rows], pa.string()),
                "cells": pa.array([row["cells"] for row in rows], pa.uint64()),
                "filters": pa.array([_filters(row["pipelines"]) for row in rows], pa.string()),
                "state": pa.array([row["problem"] or "unchanged" for row in rows], pa.string()),
            }
        )

    @checked(source=files.any_source)
    def attach(
        self: Target, source: Any, *, concat: str | None = None, message: str | None = None, progress: Progress = None
    ) -> int:
        """Attaches more files behind those that the array has, in one commit, and returns its version.

        Args:
            source: a file, a list of files in their order, or a pattern.
            concat: the dimension along which they follow; None: that of `gridstone.attach`, or the first one.
            message: kept with the version.
            progress: a function of done and total files.

        Raises:
            AccessError: the handle may not read the folder of a file.
            InputError: the array is not attached; the files have other types, or differ in another dimension; or they
                overlap what is there.
        """
        begun = self._begun(None)
        if begun is None:
            return _append(self, source, concat, progress)
        made, transaction = begun
        try:
            _append(made, source, concat, progress)
            version = transaction.commit(message)
        except BaseException:
            transaction.abort()
            raise
        self.refresh()
        return version


def _filters(pipelines: Sequence[str]) -> str:
    """The pipelines of a file's chunks in words, each once."""
    return "; ".join(dict.fromkeys(told(one) for one in pipelines))


def _append(array: Target, source: Any, concat: str | None, progress: Progress) -> int:
    paths, ordered = files.sources_of(source)
    used = array.context
    if folders := files.folders_to_allow(array.uri, paths, used.sources):
        raise AccessError(
            f"the files lie in {', '.join(folders)}, which this handle may not read; open the array with "
            "Context(sources=[…])"
        )
    asked, along, decode = _recorded(array)
    along = concat if concat is not None else along or array.dims[0]
    if not isinstance(along, str):
        raise InputError(f"concat is the name of a dimension, not {brief(along)}")
    is_new = along.startswith(NEW)
    axis = 0 if is_new else list(array.dims).index(along) if along in array.dims else -1
    if axis < 0:
        raise InputError(f"the array has no dimension {along!r}; it has {', '.join(array.dims)}")
    labels = None if is_new else array.dim(array.dims[axis]).labels
    work = Attaching(used, decode, "copy", progress, lambda native, context: type(array)(native, context))  # type: ignore[call-arg]
    before = None if labels is None or not len(labels) else labels[-1]
    found, _ = work.series(paths, asked, along, ordered=ordered, before=before)
    _check_fits(array, found, axis)
    start = array.shape[axis]
    work.fill(array, found, start, grow=True)
    more = found.coordinates()
    if labels is not None and more is not None:
        labelled(array, array.dims[axis], np.concatenate([labels, more]))
    return array.version


def _check_fits(array: Target, found: Series, axis: int) -> None:
    """An InputError unless files have the other dimensions, and the types, of the array."""
    path, shape, own = found.parts[0].path, found.shape, array.shape
    if len(shape) != len(own) or any(
        a != b for place, (a, b) in enumerate(zip(shape, own, strict=True)) if place != axis
    ):
        raise InputError(
            f"{path} would make a box of the shape {shape} in an array of {own}: another dimension differs"
        )
    types = {
        name: (dtype, nullable, categories) for name, dtype, nullable, categories in types_of(found.parts[0].pieces)
    }
    for attr in array.schema.attrs:
        known = None if attr.enumeration is None else attr.enumeration.values
        if types.get(attr.name) != (attr.dtype, attr.nullable, known):
            raise InputError(
                f"{path} has {types.get(attr.name)} for the attribute {attr.name!r}, which is "
                f"{(attr.dtype, attr.nullable, known)}"
            )


def _recorded(array: Target) -> tuple[Asked, str | None, bool]:
    """The datasets of the attributes, the dimension along which files follow, and whether they are decoded."""
    asked: list[tuple[str | None, str]] = []
    along, decode = None, True
    for attr in array.schema.attrs:
        encoding = array[attr.name].meta.get("encoding")
        if not isinstance(encoding, dict) or "dataset" not in encoding:
            raise InputError(f"the array was not attached: its attribute {attr.name!r} comes from no file")
        along, decode = encoding.get("concat", along), encoding.get("decoded", decode)
        entry = (encoding.get("as"), encoding["dataset"])
        if entry not in asked:
            asked.append(entry)
    return asked, along, decode
