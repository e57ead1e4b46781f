"""Looking again at attached files: those that have changed are indexed anew, and take the place of what they were."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _native
from ..base.progress import Progress, reporting
from ..column.datatype import AnyArray
from ..errors import InputError, SourceChangedError, UnsupportedError
from ..foreign import files, tree
from ..foreign.pieces import Pieces, fragments
from ..foreign.series import NEW
from .attaching import Asked, Attaching, Target, check_types, check_unchanged, labelled, sources_of


@dataclass(frozen=True)
class Box:
    """A box of an array whose cells lie in one file."""

    uris: tuple[str, ...]
    """The file, or of a folder of Zarr the folders of its arrays."""
    position: tuple[int, ...]
    shape: tuple[int, ...]
    ids: tuple[str, ...]
    attrs: frozenset[str]

    def meets(self, other: "Box") -> bool:
        """Whether a cell lies in both."""
        sides = zip(self.position, self.shape, other.position, other.shape, strict=True)
        return all(a < b + m and b < a + n for a, n, b, m in sides)


@dataclass(frozen=True)
class Recorded:
    """How an array was attached."""

    asked: Asked
    along: str | None
    work: Attaching

    @property
    def is_new(self) -> bool:
        """Whether each file is one place along a dimension of its own."""
        return self.along is not None and self.along.startswith(NEW)


def renewed(array: Target, recorded: Recorded, progress: Progress) -> None:
    """Attaches anew what has changed.

    Raises:
        InputError: a file has become shorter, of other types, or has grown to where another one lies.
        SourceChangedError: a file is gone.
        UnsupportedError: values were copied when it was attached.
    """
    rows = [json.loads(text) for text in _native.foreign_sources(array.native)]
    changed = {row["uri"]: row["problem"] for row in rows if row["problem"]}
    boxes = _boxes(_native.attached_boxes(array.native))
    wanted = [box for box in boxes if any(uri in changed for uri in box.uris)]
    for box in (one for one in boxes if one not in wanted):
        _label_anew(array, recorded, box)
    with reporting(progress, "look again", "files") as told:
        for number, box in enumerate(wanted, 1):
            for uri in box.uris:
                if not os.path.exists(files.located(array.uri, uri)):
                    raise SourceChangedError(changed[uri])
            path = _file_of(files.located(array.uri, box.uris[0]), recorded.asked)
            _renew(array, recorded, (box, path), [other for other in boxes if other is not box])
            if told is not None:
                told(number, len(wanted))


def _boxes(rows: Sequence[Mapping[str, Any]]) -> list[Box]:
    """The fragments at each place as one box: they are of one file."""
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((tuple(row["position"]), tuple(row["shape"])), []).append(row)
    return [
        Box(
            tuple(dict.fromkeys(uri for row in of for uri in row["uris"])),
            at,
            shape,
            tuple(row["id"] for row in of),
            # One that was dropped since has no name.
            frozenset(name for row in of for name in row["attrs"] if name is not None),
        )
        for (at, shape), of in groups.items()
    ]


def _file_of(path: str, asked: Asked) -> str:
    """The file of a source; the whole folder of Zarr, if it is the folder of an array in it."""
    if os.path.isdir(path):
        for _, dataset in asked:
            inside = os.sep + dataset.strip("/").replace("/", os.sep)
            if path.endswith(inside):
                return path.removesuffix(inside)
    return path


def _renew(array: Target, recorded: Recorded, found: tuple[Box, str], others: Sequence[Box]) -> None:
    box, path = found
    file = tree.opened(path)
    pieces = recorded.work.pieces([(name, file.dataset(dataset)) for name, dataset in recorded.asked])
    if pieces.copies:
        names = ", ".join(copy.attr.name for copy in pieces.copies)
        raise UnsupportedError(f"{path}: the values of {names} were copied when it was attached; attach it anew")
    check_types(array, path, pieces)
    grown = Box(box.uris, box.position, (1, *pieces.shape) if recorded.is_new else pieces.shape, box.ids, box.attrs)
    _check_grown(path, box, grown, others)
    sources = sources_of(array, pieces)
    specs = fragments(pieces, sources, box.position, new_axis=recorded.is_new)
    if {name for spec in specs for name in json.loads(spec)["attrs"]} != box.attrs:
        raise InputError(
            f"{path}: the array has not all of its values any more, since some were dropped or brought home; "
            "attach it anew to another array"
        )
    staged = [_native.stage_external(array.native, spec, True) for spec in specs]
    check_unchanged(array, pieces, sources)
    labels = _labels(array, recorded, (file, pieces), (box, grown))
    _native.replace_attached(array.native, staged, box.ids)
    _give(array, path, labels)


def _label_anew(array: Target, recorded: Recorded, box: Box) -> None:
    """Labels of a folder of Zarr whose cells have not changed: coordinates lie in folders of their own."""
    path = files.located(array.uri, box.uris[0])
    if not os.path.isdir(path):
        return
    file = tree.opened(_file_of(path, recorded.asked))
    pieces = recorded.work.pieces([(name, file.dataset(dataset)) for name, dataset in recorded.asked])
    _give(array, file.path, _labels(array, recorded, (file, pieces), (box, box)))


def _give(array: Target, path: str, labels: Mapping[str, AnyArray]) -> None:
    for name, values in labels.items():
        if not labelled(array, name, values):
            raise InputError(f"{path} has coordinates along {name} that cannot be labels: one comes twice, or none")


def _check_grown(path: str, box: Box, grown: Box, others: Sequence[Box]) -> None:
    shorter = len(grown.shape) != len(box.shape) or any(a < b for a, b in zip(grown.shape, box.shape, strict=True))
    if shorter:
        raise InputError(
            f"{path} has the shape {grown.shape} now, and had {box.shape}: cells that it had are gone; "
            "attach it anew to another array"
        )
    for other in others:
        if grown.meets(other) and not box.meets(other):
            raise InputError(
                f"{path} has grown from {box.shape} to {grown.shape}, to where {other.uris[0]} is attached"
            )


def _labels(
    array: Target, recorded: Recorded, found: tuple[tree.File, Pieces], boxes: tuple[Box, Box]
) -> dict[str, AnyArray]:
    """The labels that differ from those that dimensions have, by the coordinates that a file has now."""
    (file, pieces), (box, grown) = found, boxes
    scales = pieces.datasets[0].scales
    outer = len(box.shape) - len(scales)
    made: dict[str, AnyArray] = {}
    for axis, scale in enumerate(scales, outer):
        name = array.dims[axis]
        labels = array.dim(name).labels
        if labels is None:
            continue
        values = None if scale is None else recorded.work.values(file, scale)
        if values is None or len(values) != grown.shape[axis]:
            raise InputError(f"{file.path} has no coordinates along {name} any more, which are the labels there")
        low, high = box.position[axis], box.position[axis] + box.shape[axis]
        if len(labels) > high and grown.shape[axis] > box.shape[axis]:
            raise InputError(f"{file.path} has grown along {name}, to where there are other labels")
        now = np.concatenate([labels[:low], values, labels[high:]])
        if not np.array_equal(now, labels):
            made[name] = now
    return made
