"""The files of other formats that an array's cells lie in: their states, and attaching more of them."""

import json
from collections.abc import Callable, Sequence
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
from ..foreign.series import NEW, Series
from .attaching import Asked, Attaching, Target, check_types, encoding_of, labelled
from .renewal import Recorded, renewed

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
        rows = [json.loads(text) for text in _native.foreign_sources(self.native)]
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
        return _at_once(self, message, lambda made: _append(made, source, concat, progress))

    @checked()
    def refresh_sources(self: Target, *, message: str | None = None, progress: Progress = None) -> int:
        """Looks again at the files that the array has, and returns the version that shows what is in them now.

        A file that has changed is indexed anew, and its cells take the place of the old ones: what was written over
        them stays over them. A file that has grown makes the domain longer, and its coordinates become labels. If
        nothing has changed there is no new version. Earlier versions show the files as they were, so their changed
        cells are a `SourceChangedError`. Metadata stays as it was.

        Args:
            message: kept with the version.
            progress: a function of done and total files.

        Raises:
            InputError: the array is not attached; or a file has become shorter, has other types, or has grown to where
                another one lies.
            SourceChangedError: a file is gone.
            UnsupportedError: values of varying length were copied when it was attached.

        Example:
            >>> with h5py.File("run.h5", "r+") as file:
            ...     file["e"][0, 0] = 100
            >>> a.refresh_sources()
            3
            >>> float(a[0, 0])
            100.0
        """
        return _at_once(self, message, lambda made: _renewed(made, progress))


def _at_once(array: Target, message: str | None, work: Callable[[Target], int]) -> int:
    """Does work on an array in a transaction of its own, unless it belongs to one."""
    begun = array._begun(None)
    if begun is None:
        return work(array)
    made, transaction = begun
    try:
        work(made)
        version = transaction.commit(message)
    except BaseException:
        transaction.abort()
        raise
    array.refresh()
    return version


def _renewed(array: Target, progress: Progress) -> int:
    asked, along, decode = _recorded(array)
    renewed(array, Recorded(asked, along, _attaching(array, decode, progress)), progress)
    return array.version


def _attaching(array: Target, decode: bool, progress: Progress) -> Attaching:
    """Attaching with the context of an array, to arrays of its class."""
    make = lambda native, context: type(array)(native, context)  # type: ignore[call-arg]  # noqa: E731
    return Attaching(array.context, decode, "copy", progress, make)


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
    work = _attaching(array, decode, progress)
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
    check_types(array, path, found.parts[0].pieces)


def _recorded(array: Target) -> tuple[Asked, str | None, bool]:
    """The datasets of the attributes, the dimension along which files follow, and whether they are decoded.

    An attribute that was added later comes from no file. One that was renamed has its new name.
    """
    names = [attr.name for attr in array.schema.attrs]
    encodings = {name: encoding for name in names if (encoding := encoding_of(array, name))}
    if not encodings:
        raise InputError("the array was not attached: none of its attributes comes from a file")
    datasets = [encoding["dataset"] for encoding in encodings.values()]
    asked: list[tuple[str | None, str]] = []
    along, decode = None, True
    for name, encoding in encodings.items():
        along, decode = encoding.get("concat", along), encoding.get("decoded", decode)
        is_alone = "member" not in encoding and datasets.count(encoding["dataset"]) == 1
        entry = (name if is_alone else encoding.get("as"), encoding["dataset"])
        if entry not in asked:
            asked.append(entry)
    return asked, along, decode
