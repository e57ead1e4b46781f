"""The tree of a foreign file: its groups, datasets and attributes, as the core's index gives them."""

import json
import os
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .. import _native
from ..base.printable import brief
from ..errors import InputError, NotFoundError, UnsupportedError
from . import zarr

_LINKS_MAX = 32


@dataclass(frozen=True)
class Dataset:
    """A dataset of a file."""

    file: str
    path: str
    raw: Mapping[str, Any]
    attributes: Mapping[str, Any]
    refused: Mapping[str, str] = field(default_factory=dict)
    state: tuple[int, int] = (0, 0)
    """Size of the file in bytes and time of its last change in microseconds, before it was indexed."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return posixpath.basename(self.path)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each dimension."""
        return tuple(self.raw["shape"])

    @property
    def layout(self) -> Mapping[str, Any]:
        """Where its cells lie."""
        found: Mapping[str, Any] = self.raw["layout"]
        return found

    @property
    def is_in_objects(self) -> bool:
        """Whether its chunks are files of their own in a folder."""
        return bool(self.layout["kind"] == "objects")

    @property
    def source(self) -> str:
        """The file that its cells lie in, or the folder of such files."""
        return os.path.join(self.file, self.layout["folder"]).rstrip("/") if self.is_in_objects else self.file

    @property
    def scales(self) -> tuple[str | None, ...]:
        """The paths of the datasets that describe each dimension."""
        found = tuple(self.raw["dimension_scales"])
        return found if len(found) == len(self.shape) else (None,) * len(self.shape)

    def as_list(self) -> "Dataset":
        """A dataset of a single cell as a list of one."""
        if self.shape:
            return self
        layout = self.layout
        if self.is_in_objects:
            layout = {**layout, "chunk": [1], "ranks": [0], "objects": [1]}
        return replace(self, raw={**self.raw, "shape": [1], "layout": layout})

    @property
    def is_scale(self) -> bool:
        """Whether it describes a dimension of others."""
        return bool(self.raw["is_scale"])


@dataclass
class Group:
    """A group of a file."""

    path: str
    attributes: Mapping[str, Any]
    groups: dict[str, "Group"] = field(default_factory=dict)
    datasets: dict[str, Dataset] = field(default_factory=dict)
    links: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """What could not be read, with the reason."""

    def walk(self) -> Iterator["Group"]:
        """The group and all below it."""
        yield self
        for below in self.groups.values():
            yield from below.walk()


@dataclass
class File:
    """A foreign file."""

    path: str
    format: str
    root: Group

    def dataset(self, path: str) -> Dataset:
        """The dataset at `path`, through links.

        Raises:
            NotFoundError: there is none; the message lists what there is.
            UnsupportedError: it lies in another file, or could not be read.
        """
        return self._find(_absolute("/", path), path, 0)

    def _find(self, path: str, asked: str, depth: int) -> Dataset:
        group, parts = self.root, [part for part in path.split("/") if part]
        if not parts and self.format == "zarr" and list(group.datasets) == ["array"] and not group.groups:
            # The folder is an array itself.
            return group.datasets["array"]
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            if last and part in group.datasets:
                return group.datasets[part]
            if part in group.groups and not last:
                group = group.groups[part]
                continue
            rest = "/".join(parts[place + 1 :])
            if part in group.links and depth < _LINKS_MAX:
                return self._find(self._target(group, part, rest), asked, depth + 1)
            if part in group.refused:
                raise UnsupportedError(f"{self.path}: {asked} cannot be attached: {group.refused[part]}")
            break
        known = sorted(dataset.path for group in self.root.walk() for dataset in group.datasets.values())
        shown = ", ".join(known[:12]) + (f" and {len(known) - 12} more" if len(known) > 12 else "")
        raise NotFoundError(f"{self.path} has no dataset {brief(asked)}; it has {shown or 'none'}")

    def _target(self, group: Group, name: str, rest: str) -> str:
        link = group.links[name]
        if link["kind"] == "external":
            raise UnsupportedError(
                f"{self.path}: {posixpath.join(group.path, name)} lies in another file, {link['file']}; attach that one"
            )
        return posixpath.join(_absolute(group.path, link["path"]), rest).rstrip("/")


def _absolute(group: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(group, path))


def opened(path: str) -> File:
    """The tree of the file at `path`: of HDF5, NetCDF, or an array of NumPy; or of a folder of Zarr.

    Raises:
        InputError: it is of another format.
        StorageError: it cannot be read.
        CorruptionError: it contradicts its format.
    """
    try:
        found = os.stat(path)
    except OSError as error:
        raise NotFoundError(f"cannot open {path}: {error.strerror}") from error
    raw = json.loads(_native.foreign_tree(path))
    return File(path, raw["format"], _group(path, "/", raw["root"], (found.st_size, found.st_mtime_ns // 1000)))


def _group(file: str, path: str, raw: Mapping[str, Any], state: tuple[int, int]) -> Group:
    made = Group(path, _attributes(raw["attributes"]))
    for one in raw["refused"]:
        made.refused[one["name"]] = one["reason"]
    for one in raw["links"]:
        made.links[one["name"]] = one["target"]
        made.refused[one["name"]] = _told(one["target"])
    for one in _sound(raw["groups"], made):
        made.groups[one["name"]] = _group(file, posixpath.join(path, one["name"]), one, state)
    for one in _sound(raw["datasets"], made):
        refused = {entry["name"]: entry["reason"] for entry in one["refused"]}
        at = posixpath.join(path, one["name"])
        attributes = zarr.attributes(one, _attributes(one["attributes"]))
        made.datasets[one["name"]] = Dataset(file, at, one, attributes, refused, state)
    return made


def _told(target: Mapping[str, Any]) -> str:
    """What a link is, in words."""
    if target["kind"] == "external":
        return f"it is a link to {target['path']} in {target['file']}"
    return f"it is {'another name of' if target['kind'] == 'hard' else 'a link to'} {target['path']}"


def _sound(members: list[Mapping[str, Any]], group: Group) -> Iterator[Mapping[str, Any]]:
    """The members whose names are parts of a path; the others are refused."""
    for one in members:
        name = one["name"]
        if not name or "/" in name or name in (".", ".."):
            group.refused[name or "(without a name)"] = "its name is no part of a path"
        else:
            yield one


def _attributes(raw: list[Mapping[str, Any]]) -> dict[str, Any]:
    found = {one["name"]: _value(one) for one in raw}
    return {one["name"]: found[one["name"]] for one in raw if found[one["name"]] is not None or _is_json(one)}


def _is_json(raw: Mapping[str, Any]) -> bool:
    return bool(raw["value"]["kind"] == "json")


def _value(raw: Mapping[str, Any]) -> Any:
    """An attribute's value: a number or text, or an array of them; None for what has no such form."""
    kind, values = raw["value"]["kind"], raw["value"].get("values")
    if kind == "json":
        return zarr.attribute(values)
    shape = tuple(raw["shape"])
    if kind == "texts":
        return values[0] if not shape and len(values) == 1 else np.asarray(values, dtype=object).reshape(shape)
    if kind not in ("integers", "floats", "booleans"):
        return None
    numbers = [float(value) for value in values] if kind == "floats" else values
    try:
        made = np.asarray(numbers, dtype=_dtype_of(raw["datatype"], kind))
    except OverflowError:
        # An integer of more than 64 bits.
        made = np.asarray(numbers, dtype=object)
    count = int(np.prod(shape, dtype=np.int64))
    if made.size != count:
        return made
    return made.reshape(shape)[()] if shape == () else made.reshape(shape)


def _dtype_of(datatype: Mapping[str, Any], kind: str) -> np.dtype[Any]:
    """The type of an attribute's values, which decides how values are scaled."""
    if datatype["class"] == "integer" and datatype["width"] in (1, 2, 4, 8):
        return np.dtype(f"{'i' if datatype['signed'] else 'u'}{datatype['width']}")
    if datatype["class"] == "float" and datatype["width"] in (2, 4, 8):
        return np.dtype(f"f{datatype['width']}")
    return np.dtype({"integers": "i8", "floats": "f8", "booleans": "?"}[kind])


def same_cells(one: Dataset, other: Dataset) -> bool:
    """Whether two looks at a dataset in a folder found the same cells; a single cell may be shown as a list."""

    def cells(dataset: Dataset) -> Any:
        whole = dataset.as_list()
        layout = {name: value for name, value in whole.layout.items() if name != "folder"}
        return layout, [whole.raw[name] for name in ("shape", "datatype", "element_size", "fill")]

    return bool(cells(one) == cells(other))


def dimension_names(dataset: Dataset) -> list[str]:
    """Names of the dimensions: their own, or those of their scales, else `d0`, `d1` and so on; each once.

    Raises:
        InputError: a scale has a name that a dimension cannot have.
    """
    names: list[str] = []
    own = dataset.raw.get("dimension_names") or [None] * len(dataset.shape)
    for place, scale in enumerate(dataset.scales):
        named = own[place] if place < len(own) else None
        name = named or (posixpath.basename(scale) if scale else f"d{place}")
        if name in names or not name:
            name = f"{name}_{place}"
        if len(name.encode()) > 255:
            raise InputError(f"{dataset.path}: the name {brief(name)} is too long for a dimension")
        names.append(name)
    return names
