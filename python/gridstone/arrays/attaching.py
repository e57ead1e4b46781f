"""Attaching the cells of files to arrays: what `gridstone.attach` and `Array.attach` share."""

import os
import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .. import _native
from ..base.progress import Progress, reporting
from ..column.datatype import AnyArray
from ..context.settings import Context
from ..errors import GridstoneError, InputError, SourceChangedError, UnsupportedError
from ..foreign import attributes, tree
from ..foreign.copied import slabs
from ..foreign.files import folder_of
from ..foreign.pieces import Member, Pieces, Source, fragments
from ..foreign.series import Part, Series, axis_of, series, types_of
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..version.receipt import Receipt
from .metadata import Metadata


class Target(Protocol):
    """What attaching needs of an array."""

    @property
    def native(self) -> "_native.Array": ...

    @property
    def context(self) -> Context: ...

    @property
    def uri(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def dims(self) -> tuple[str, ...]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def meta(self) -> Metadata: ...

    def __getitem__(self, key: Any) -> Any: ...

    def dim(self, name: str) -> Any: ...

    def read(self) -> Result: ...

    def consolidate(self, strategy: str) -> Any: ...

    def refresh(self) -> int: ...

    def alter(self, *, labels: Mapping[str, Any]) -> int: ...

    def _begun(self, key: None) -> "tuple[Target, _native.Transaction] | None": ...

    def _commit(self, staged: "Sequence[_native.Staged]", message: None) -> int | Receipt: ...


Asked = Sequence[tuple[str | None, str]]
"""The names of attributes, None for those of the datasets, with the paths of datasets."""


@dataclass(frozen=True)
class Read:
    """The cells of datasets that were read."""

    pieces: Pieces
    cells: Result


class Attaching:
    """What all arrays of one call share."""

    def __init__(
        self,
        context: Context,
        decode: bool,
        variable: str,
        progress: Progress,
        array_of: "Callable[[_native.Array, Context], Target]",
    ) -> None:
        self._context, self._decode, self._variable, self._progress = context, decode, variable, progress
        self._array_of = array_of

    def pieces(self, asked: Sequence[tuple[str | None, tree.Dataset]]) -> Pieces:
        """Datasets as attributes of one array."""
        made = Pieces(asked[0][1].shape)
        for name, dataset in asked:
            made.add(dataset, name, self._decode)
        if made.copies and self._variable == "refuse":
            one = made.copies[0]
            raise UnsupportedError(
                f"{one.dataset.path}: the values of {one.attr.name} vary in length, and have no form in place; "
                'variable="copy" copies them'
            )
        return made

    def series(
        self, paths: Sequence[str], asked: Asked, concat: str | None, *, ordered: bool, before: Any = None
    ) -> tuple[Series, list[tree.File]]:
        """Several files as one array, indexed side by side."""

        def one(path: str) -> tuple[Part, tree.File]:
            file = tree.opened(path)
            pieces = self.pieces([(name, file.dataset(dataset)) for name, dataset in asked])
            axis, _, is_new = axis_of(pieces, concat)
            along = [None if scale is None else self.values(file, scale) for scale in pieces.datasets[0].scales]
            if is_new:
                return Part(path, pieces, None, None, along), file
            units = _units(file, pieces.datasets[0].scales[axis], along[axis])
            return Part(path, pieces, along[axis], units, [*along[:axis], *along[axis + 1 :]]), file

        with ThreadPoolExecutor(max(1, min(8, self._context.threads))) as pool:
            found = list(pool.map(one, paths))
        files = {part.path: file for part, file in found}
        made = series([part for part, _ in found], concat, ordered=ordered, before=before)
        if made.gaps:
            warnings.warn(f"coordinates along {made.name} have gaps: {'; '.join(made.gaps[:3])}", stacklevel=4)
        return made, [files[part.path] for part in made.parts]

    def fill(self, made: Target, found: Series, start: int = 0, grow: bool = False) -> None:
        """Attaches the cells of a series of files, the first of them `start` cells along its dimension."""
        staged: list[_native.Staged] = []
        places: list[tuple[Part, list[int]]] = []
        with reporting(self._progress, "attach", "files") as told:
            for part, at in zip(found.parts, found.starts, strict=True):
                position = [0] * len(found.shape)
                position[found.axis] = start + at
                if all(part.pieces.shape):
                    sources = sources_of(made, part.pieces)
                    specs = fragments(part.pieces, sources, position, new_axis=found.is_new)
                    staged += [_native.stage_external(made.native, spec, grow) for spec in specs]
                    check_unchanged(made, part.pieces, sources)
                    places.append((part, position))
                if told is not None:
                    told(len(places), len(found.parts))
        made._commit(staged, None)
        for part, position in places:
            copied(made, part.pieces, position, inner=found.is_new)

    def fill_one(self, made: Target, pieces: Pieces) -> None:
        """Attaches the cells of one file to an array that was just created, with their attributes as metadata."""
        if all(pieces.shape):
            sources = sources_of(made, pieces)
            specs = fragments(pieces, sources, [0] * len(pieces.shape))
            with reporting(self._progress, "attach", "chunks") as told:
                staged = [_native.stage_external(made.native, spec, False, told) for spec in specs]
            check_unchanged(made, pieces, sources)
            made._commit(staged, None)
            copied(made, pieces, [0] * len(pieces.shape))
        self.describe(made, pieces)

    def describe(self, made: Target, pieces: Pieces, **more: Any) -> None:
        """The attributes of datasets as metadata: of the array if there is one dataset, else of each attribute.

        What was decoded is kept apart, in "encoding", with the path of the dataset, and `more` that it was attached by.
        """
        alone = len(pieces.datasets) == 1
        for member in pieces.members:
            encoding = {name: attributes.plain(value) for name, value in member.decoded.encoding.items()}
            place = {"dataset": member.dataset.path, **more}
            if member.given is not None:
                place["as"] = member.given
            if member.decoded.stored.name:
                place["member"] = member.decoded.stored.name
            if not self._decode:
                place["decoded"] = False
            if encoding and (raw := raw_type(member)) is not None:
                place["dtype"] = raw
            if types := attributes.types_of(member.dataset.attributes):
                place["types"] = types
            left = {} if alone else attributes.as_metadata(_left(member.dataset.attributes, encoding))
            made[member.attr.name].meta.update(left | {"encoding": encoding | place})
        for copy in pieces.copies:
            named = {} if copy.given is None else {"as": copy.given}
            made[copy.attr.name].meta["encoding"] = {"dataset": copy.dataset.path, "copied": True, **more, **named}
        if alone:
            encoding = dict(pieces.members[0].decoded.encoding) if pieces.members else {}
            made.meta.update(attributes.as_metadata(_left(pieces.datasets[0].attributes, encoding)))

    def label(self, made: Target, pieces: Pieces, file: tree.File, *, without: int | None = None) -> None:
        """Gives the dimensions the values of their scales as labels, where these can be; not the one `without`."""
        shown = made.dims[-len(pieces.shape) :]
        for axis, (name, scale, size) in enumerate(zip(shown, pieces.datasets[0].scales, pieces.shape, strict=True)):
            if axis != without and scale is not None:
                values = self.values(file, scale)
                if values is not None and values.shape == (size,):
                    labelled(made, name, values)

    def values(self, file: tree.File, path: str) -> AnyArray | None:
        """The values of a dataset of one dimension; None if they cannot be labels."""
        try:
            dataset = file.dataset(path)
        except GridstoneError:
            return None
        if dataset.raw["is_bare_dimension"] or len(dataset.shape) != 1 or not all(dataset.shape):
            return None
        try:
            read = self.read(file, dataset)
        except GridstoneError:
            # The scale is no label then; the dataset itself is attached or refused apart from this.
            return None
        attrs = read.pieces.attrs
        if len(attrs) != 1 or attrs[0].shape or attrs[0].var:
            return None
        values = read.cells[attrs[0].name]
        if isinstance(values, np.ma.MaskedArray):
            # Floats have a fill that none of them may be.
            return None if np.ma.getmaskarray(values).any() else values.data
        return values

    def read(self, file: tree.File, dataset: tree.Dataset) -> Read:
        """The cells of a dataset, read by way of an array in memory."""
        pieces = self.pieces([(None, dataset)])
        uri = f"mem://gridstone-attach-{secrets.token_hex(8)}"
        used = self._context.allowing([folder_of(file.path)])
        try:
            native = _native.create_array(used.native, uri, "/", pieces.schema().to_json(), False)
            made = self._array_of(native, used)
            self.fill_one(made, pieces)
            return Read(pieces, made.read())
        finally:
            _native.delete_store(used.native, uri)


def raw_type(member: Member) -> str | None:
    """The NumPy type of the numbers in the file; None of what is no number."""
    found, stored = member.decoded.stored.raw_type, member.decoded.stored
    flag = str(member.decoded.encoding.get("_Unsigned", "")).lower()
    if found is None or flag not in ("true", "false") or stored.kind == "float":
        return found
    return found.replace("u", "i") if flag == "true" else found.replace("i", "u")


_PACKED_FILES = 64
"""The commit of so many files packs the list of fragments: each opening would read its record, of some kB per file."""


def pack(made: Target, files: int) -> None:
    """Packs the list of fragments after a commit of so many files, where that makes openings faster."""
    if files >= _PACKED_FILES:
        made.consolidate("manifest")


def copied(made: Target, pieces: Pieces, position: Sequence[int], *, inner: bool = False) -> None:
    """Copies the values of varying length into an array; with `inner` it has one dimension more, the outermost."""
    shape = (1, *pieces.shape) if inner else pieces.shape
    at = tuple(slice(low, low + size) for low, size in zip(position, shape, strict=True))
    axis = 1 if inner else 0
    for copy in pieces.copies:
        for rows, values in slabs(copy.dataset, pieces.shape, copy.value):
            low = at[axis].start
            place = (*at[:axis], slice(low + rows.start, low + rows.stop), *at[axis + 1 :])
            made[copy.attr.name][place] = values[np.newaxis] if inner else values


def labelled(made: Target, name: str, values: AnyArray) -> bool:
    """Gives a dimension labels, if these can be labels: different from each other, and none missing."""
    try:
        made.alter(labels={name: values})
    except InputError:
        return False
    return True


def encoding_of(array: Target, name: str) -> dict[str, Any]:
    """What is recorded of the dataset that an attribute comes from; empty if it comes from none."""
    encoding = array[name].meta.get("encoding")
    return encoding if isinstance(encoding, dict) and "dataset" in encoding else {}


def check_types(array: Target, path: str, pieces: Pieces) -> None:
    """An InputError unless the datasets of a file have the types of the attributes that come from files."""
    types = {name: (dtype, nullable, categories) for name, dtype, nullable, categories in types_of(pieces)}
    for attr in array.schema.attrs:
        known = (attr.dtype, attr.nullable, None if attr.enumeration is None else attr.enumeration.values)
        found = types.get(attr.name)
        if encoding_of(array, attr.name) and found != known:
            held = "nothing" if found is None else _in_words(*found)
            raise InputError(f"{path} has {held} for the attribute {attr.name!r}, which is {_in_words(*known)}")


def _in_words(dtype: Any, nullable: bool, categories: Sequence[Any] | None) -> str:
    """The type of an attribute, for messages."""
    nulls = " with nulls" if nullable else ""
    named = "" if categories is None else f" of the categories {', '.join(map(str, categories[:5]))}"
    more = " …" if categories is not None and len(categories) > 5 else ""
    return f"{dtype}{nulls}{named}{more}"


def sources_of(made: Target, pieces: Pieces) -> dict[str, Source]:
    """The files and folders that the cells of datasets lie in, as they are now, by path."""
    found: dict[str, Source] = {}
    for path in dict.fromkeys(dataset.source for dataset in pieces.datasets):
        uri, size, time_us, etag = _native.look_at_source(made.native, os.path.abspath(path))
        found[path] = Source(path, uri, size, time_us, etag)
    return found


def check_unchanged(made: Target, pieces: Pieces, sources: Mapping[str, Source]) -> None:
    """A SourceChangedError unless the files were the same before they were indexed and after they were staged."""
    after = sources_of(made, pieces)
    moved = [path for path, source in sources.items() if after[path] != source]
    for one in pieces.datasets:
        source = sources[one.source]
        if one.is_in_objects:
            same = tree.opened(one.source).root.datasets.values()
            unchanged = any(tree.same_cells(one, other) for other in same)
        else:
            unchanged = one.state == (source.size, source.time_us)
        if not unchanged:
            moved.append(one.source)
    if moved:
        raise SourceChangedError(f"{moved[0]} has changed while it was attached; attach it again once it is complete")


def _units(file: tree.File, scale: str | None, values: AnyArray | None) -> tuple[Any, Any] | None:
    """The units and the calendar of coordinates that are not times."""
    if scale is None or values is None or values.dtype.kind == "M":
        return None
    given = file.dataset(scale).attributes
    return attributes.plain(given.get("units")), attributes.plain(given.get("calendar"))


def _left(given: Mapping[str, Any], encoding: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that were not decoded."""
    return {name: value for name, value in given.items() if name not in encoding}
