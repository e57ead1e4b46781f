"""`attach`: arrays whose cells stay in files of other formats."""

import os
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from ..arrays.array import Array
from ..arrays.attaching import Asked, Attaching, labelled, pack
from ..base.arguments import checked, flag, is_iterable, known
from ..base.printable import brief
from ..base.progress import Progress
from ..context.settings import Context, default
from ..errors import CorruptionError, ExistsError, InputError, SchemaError, UnsupportedError
from ..foreign import attributes, files, tree
from ..foreign.series import NEW, Series
from ..schema.array_schema import Schema
from ..schema.dimension import Dim
from .at_once import at_once, create_at_once
from .group import Group
from .store import Uri, group
from .transaction import Transaction

Datasets = str | Sequence[str] | Mapping[str, str] | None


NOT_ATTACHED = "not attached"
"""The key of a group's metadata that names what of a file has no form here, with the reasons."""


@checked(decode=flag, source=files.any_source)
def attach(
    uri: Uri,
    source: Any,
    dataset: Datasets = None,
    *,
    path: str = "/",
    concat: str | None = None,
    decode: bool = True,
    variable: str = "copy",
    context: Context | None = None,
    progress: Progress = None,
) -> Array | Group:
    """Makes an array whose cells stay in files of HDF5, NetCDF, Zarr or NumPy, without a copy; they are never written.

    The array is read, asked and updated like any other: what is written to it lies over the files' cells, in the store.
    `consolidate("all")` brings the cells home. A file that changes is a `SourceChangedError` that names it.

    Args:
        uri: the store; it is made if there is none.
        source: the path of a file, or of a folder of Zarr; or several, as a list or a pattern. A list keeps its order;
            the files of a pattern are ordered by their coordinates along `concat`, or else by their names (`run_2`
            before `run_10`).
        dataset: the path of a dataset in it; several of one shape, as a list or as `{attribute: path}`, become the
            attributes of one array. Members of compounds become attributes. None: the whole file as a tree of groups
            and arrays, with dimension scales as labels.
        path: the place of the array or group in the store.
        concat: the dimension along which several files follow each other, or "new:run" for a new outermost one.
        decode: show fill values, packed numbers and times as the conventions of NetCDF say; False: the stored numbers.
        variable: values of varying length have no form in place: "copy" copies them into the store, by way of h5py
            or zarr; "refuse" is an error.
        context: budget, threads and durability; None: the process's default. The returned handle may also read the
            folder
            of the file; others need `Context(sources=[folder])`, unless the file lies beside the store or below.
        progress: a function of done and total chunks, or files.

    Raises:
        ExistsError: there is something at `path`.
        InputError: the datasets have several shapes, the files overlap, or one is of another format.
        NotFoundError: there is no such file or dataset.
        UnsupportedError: the cells have no form in place.

    >>> a = gs.attach("run.gs", "run.h5", "/e")
    >>> a.mean()
    """
    known("variable", variable, ("copy", "refuse"))
    where = os.fspath(uri)
    paths, ordered = files.sources_of(source)
    used = (context or default()).allowing(files.folders_to_allow(where, paths))
    work = Attaching(used, decode, variable, progress, Array)
    if dataset is None:
        if len(paths) > 1:
            raise InputError("several files become one array: say of which dataset, with dataset= and concat=")
        return _whole(where, path, tree.opened(paths[0]), work, used)
    asked = asked_of(dataset)
    if len(paths) > 1 or concat is not None:
        return _joined(where, path, work, used, work.series(paths, asked, concat, ordered=ordered))
    file = tree.opened(paths[0])
    pieces = work.pieces([(name, file.dataset(one)) for name, one in asked])

    def fill(made: Array) -> None:
        work.fill_one(made, pieces)
        work.label(made, pieces, file)

    return create_at_once(where, pieces.schema(), path, False, used, fill)


def asked_of(dataset: Datasets) -> Asked:
    """The names of attributes, None for those of the datasets, with the paths.

    Raises:
        InputError: no path is named.
    """
    if isinstance(dataset, str):
        return [(None, dataset)]
    if dataset is None or not is_iterable(dataset):
        raise InputError(f"dataset is a path, a list of paths or {{attribute: path}}, not {brief(dataset)}")
    pairs = list(dataset.items()) if isinstance(dataset, Mapping) else [(None, one) for one in dataset]
    if not pairs or not all(isinstance(one, str) for _, one in pairs):
        raise InputError(f"dataset is a path, a list of paths or {{attribute: path}}, not {brief(dataset)}")
    return pairs


def _joined(uri: str, path: str, work: Attaching, context: Context, found: tuple[Series, list[tree.File]]) -> Array:
    """Several files as one array."""
    made_of, opened = found
    first = made_of.parts[0].pieces
    schema = first.schema()
    dims = list(schema.dims)
    if made_of.is_new:
        dims.insert(0, Dim(made_of.name, (0, made_of.length - 1), 1))
    else:
        old = dims[made_of.axis]
        dims[made_of.axis] = Dim(old.name, (0, made_of.length - 1), old.tile)
    schema = Schema(dims, schema.attrs)

    def fill(made: Array) -> None:
        work.fill(made, made_of)
        work.describe(made, first, concat=(NEW if made_of.is_new else "") + made_of.name)
        work.label(made, first, opened[0], without=None if made_of.is_new else made_of.axis)
        along = made_of.coordinates()
        if along is not None:
            labelled(made, made_of.name, along)

    made = create_at_once(uri, schema, path, False, context, fill)
    pack(made, len(made_of.parts))
    return made


def _whole(uri: str, path: str, file: tree.File, work: Attaching, context: Context) -> Group:
    """The tree of a file as groups and arrays. What has no form is named in the metadata of its group."""

    def fill(tx: Transaction, replaces: bool) -> None:
        if path.strip("/") and path in tx:
            raise ExistsError(f"{path} exists in {uri}; give another path")
        if not replaces and not path.strip("/") and tx.ls("/"):
            raise ExistsError(f"{uri} has something in it; give a path for the tree of {file.path}")
        for one in file.root.walk():
            _members(tx, posixpath.join(path, one.path.strip("/")).rstrip("/") or "/", one, (file, work))

    at_once(uri, path, context, fill)
    made = group(uri, path=path, mode="r+", context=context)
    _describe(made, file.root)
    return made


def _describe(made: Group, root: tree.Group) -> None:
    """The attributes of groups as metadata, and what of each could not be attached."""
    for one in root.walk():
        at = made if one.path == "/" else made[one.path.strip("/")]
        refused = {NOT_ATTACHED: dict(one.refused)} if one.refused else {}
        if described := attributes.as_metadata(one.attributes) | refused:
            at.meta.update(described)


def _members(tx: Transaction, at: str, one: tree.Group, source: tuple[tree.File, Attaching]) -> None:
    tx.group(at)
    for name, dataset in one.datasets.items():
        if dataset.raw["is_bare_dimension"]:
            continue
        place = posixpath.join(at, name)
        try:
            _member(tx, place, dataset, source)
        except (CorruptionError, InputError, SchemaError, UnsupportedError) as error:
            one.refused[name] = str(error)
            if place in tx:
                tx.remove(place)


def _member(tx: Transaction, at: str, dataset: tree.Dataset, source: tuple[tree.File, Attaching]) -> None:
    file, work = source
    if dataset.raw["is_null"]:
        raise UnsupportedError(f"{dataset.path} has no cells at all")
    if dataset.shape:
        pieces = work.pieces([(None, dataset)])
        made = tx.create(at, pieces.schema())
        work.fill_one(made, pieces)
        work.label(made, pieces, file)
        return
    # A single cell is copied: an array without dimensions has no tiles.
    read = work.read(file, dataset.as_list())
    attrs = read.pieces.attrs
    made = tx.create(at, Schema([], attrs))
    made[...] = {attr.name: read.cells[attr.name][0] for attr in attrs}
    work.describe(made, read.pieces, copied=True)
