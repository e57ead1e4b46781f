"""The backend that xarray finds by its entry point: `xr.open_dataset("m.gs", engine="gridstone")`."""

import os
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, ClassVar

import numpy as np
import xarray
from xarray.backends import BackendEntrypoint
from xarray.conventions import CF_RELATED_DATA, decode_cf_variables, encode_dataset_coordinates

from ..arrays.array import Array
from ..base.arguments import flag
from ..base.printable import brief
from ..context.settings import Context
from ..errors import InputError, NotFoundError
from ..stores.group import Group
from ..stores.store import open as open_store
from .dataset import Content, Decoding, content_of, of_variable
from .variable import versioned

_LOG, _SUFFIX = "_log", ".gs"


class GridstoneBackend(BackendEntrypoint):
    """Opens stores as datasets: a group's arrays are the variables, read when they are asked for."""

    description: ClassVar[str] = "Open groups of Gridstone stores"
    supports_groups: ClassVar[bool] = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether this is a folder that holds a store, or an address that ends in `.gs`; nothing is opened."""
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        try:
            place = os.fspath(filename_or_obj)
            if not isinstance(place, str):
                return False
            if "://" in place and not place.startswith("file://"):
                return place.rstrip("/").endswith(_SUFFIX)
            return os.path.isdir(os.path.join(place.removeprefix("file://"), _LOG))
        except (OSError, ValueError):
            return False

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        version: int | str | None = None,
        timestamp: Any = None,
        context: Context | None = None,
        sparse: bool = False,
    ) -> xarray.Dataset:
        """A group of a store as a Dataset, all of one version.

        Args:
            filename_or_obj: the store: a path or an address.
            mask_and_scale, decode_times, concat_characters, decode_coords, use_cftime, decode_timedelta: as xarray
                has them. They concern what lies there encoded, and show what a file would hold where they are off.
            drop_variables: names of variables to leave out; their arrays are not opened.
            group: the path of the group, or of one array; None: the root.
            version: of the store, by its number or its tag.
            timestamp: the last version not after this time.
            context: budget, threads, keys; None: the process's default.
            sparse: whether sparse arrays come as variables of `sparse.COO`, read at once; else they are an error.

        Raises:
            NotFoundError: no store, nothing at the path, or no such version.
            UnsupportedError: a sparse array, or a type that xarray has no place for.
            InputError: arrays whose dimensions of one name have several lengths.
        """
        switches = _Switches(
            mask_and_scale, decode_times, concat_characters, decode_coords, use_cftime, decode_timedelta,
            _dropped(drop_variables), sparse,
        )  # fmt: skip
        node = _opened(filename_or_obj, group, version, timestamp, context)
        return _dataset(node, switches)

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> xarray.DataTree:
        """A group with all below it as a tree; arguments as `open_dataset`."""
        groups = self.open_groups_as_dict(filename_or_obj, **options)
        made = xarray.DataTree.from_dict(groups)
        for path, dataset in groups.items():
            node: Any = made if path == "/" else made[path]
            node.set_close(dataset._close)
        return made

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        version: int | str | None = None,
        timestamp: Any = None,
        context: Context | None = None,
        sparse: bool = False,
    ) -> dict[str, xarray.Dataset]:
        """The Datasets of a group and all groups below it by path, all of one version; arguments as `open_dataset`."""
        switches = _Switches(
            mask_and_scale, decode_times, concat_characters, decode_coords, use_cftime, decode_timedelta,
            _dropped(drop_variables), sparse,
        )  # fmt: skip
        root = _opened(filename_or_obj, group, version, timestamp, context)
        made = {"/": _dataset(root, switches)}
        if isinstance(root, Group):
            base = PurePosixPath(root.path)
            for entry in root.walk():
                if entry.kind == "group":
                    name = PurePosixPath(entry.path).relative_to(base).as_posix()
                    made[f"/{name}"] = _dataset(root[name], switches)
        return made


class _Switches:
    """The decoders of xarray, and what is left out."""

    def __init__(
        self,
        mask_and_scale: Any,
        decode_times: Any,
        concat_characters: Any,
        decode_coords: Any,
        use_cftime: Any,
        decode_timedelta: Any,
        dropped: frozenset[Any],
        sparse: bool,
    ) -> None:
        flag("sparse", sparse)
        self.decoding = Decoding(mask_and_scale, decode_times, decode_timedelta)
        self.options = {
            "concat_characters": concat_characters, "mask_and_scale": mask_and_scale, "decode_times": decode_times,
            "decode_coords": decode_coords, "use_cftime": use_cftime, "decode_timedelta": decode_timedelta,
        }  # fmt: skip
        self.decode_coords, self.dropped, self.sparse = decode_coords, dropped, sparse


def _dropped(given: str | Iterable[str] | None) -> frozenset[Any]:
    return frozenset(() if given is None else (given,) if isinstance(given, str) else given)


def _opened(place: Any, group: str | None, version: Any, timestamp: Any, context: Context | None) -> Array | Group:
    """The group or array, at one version whatever is committed meanwhile."""
    if not isinstance(place, str | os.PathLike):
        raise InputError(
            f"a store is opened by its path or address, not {brief(place)} ({type(place).__name__}); a store is a "
            f"folder, which no open file or buffer holds"
        )
    if group is not None and not isinstance(group, str):
        raise InputError(f"group= is the path of a group in the store, such as '/north', not {brief(group)}")
    path = "/" + (group or "").strip("/")
    try:
        found = open_store(place, path=path, version=version, timestamp=timestamp, context=context)
    except NotFoundError as error:
        if path != "/":
            raise NotFoundError(f"{error}; group= names a group or an array of the store") from None
        raise
    return found._pinned()


def _dataset(node: Array | Group, switches: _Switches) -> xarray.Dataset:
    content = content_of(node, switches.decoding, switches.dropped, switches.sparse)
    variables, attrs, coordinates = _decoded(content, switches)
    kept = content.coordinates if switches.decode_coords else set()
    made = xarray.Dataset(variables, attrs=attrs)
    made = made.set_coords((coordinates | kept) & set(variables))
    if not switches.decode_coords:
        made = _with_coordinates_in_attrs(made, content)
    made = versioned(made)
    made.encoding = {"source": node.uri}
    if content.unlimited:
        made.encoding["unlimited_dims"] = set(content.unlimited)
    made.set_close(_Closer(node))
    return made


def _decoded(content: Content, switches: _Switches) -> tuple[dict[Any, Any], dict[Any, Any], set[Any]]:
    """The variables after xarray's decoders, the attributes, and the names of coordinates."""
    given = content.ordered()
    # The decoders would make objects of NumPy's texts of varying length: they see others in their place.
    texts = {name: variable for name, variable in given.items() if variable.dtype.kind == "T"}
    blank = np.array("", object)
    stand_ins = {name: one._replace(data=np.broadcast_to(blank, one.shape)) for name, one in texts.items()}
    concat = switches.options["concat_characters"]
    concats = {name: name in content.characters and of_variable(concat, name, True) for name in given}
    found, attrs, coordinates = decode_cf_variables(
        {**given, **stand_ins},
        content.attrs,
        drop_variables=switches.dropped,
        **{**switches.options, "concat_characters": concats},
    )
    variables = dict(found)
    for name, one in texts.items():
        encoding = {key: value for key, value in variables[name].encoding.items() if key != "dtype"}
        variables[name] = variables[name]._replace(data=one._data, encoding=encoding)
    return variables, dict(attrs), set(coordinates)


def _with_coordinates_in_attrs(given: xarray.Dataset, content: Content) -> xarray.Dataset:
    """What a file would show undecoded: the names of coordinates in attributes."""
    beside = given.set_coords(content.coordinates & set(given.variables)).copy()
    related = {}
    for name, variable in beside.variables.items():
        # What these name is no coordinate in a file: the encoder looks for them in the encoding.
        related[name] = {key: variable.attrs.pop(key) for key in CF_RELATED_DATA if key in variable.attrs}
        variable.encoding.update(related[name])
    variables, attrs = encode_dataset_coordinates(beside)
    for name, variable in variables.items():
        variable.attrs.update(related[name])
        for key in related[name]:
            variable.encoding.pop(key, None)
    return xarray.Dataset(variables, attrs=attrs)


class _Closer:
    """Lets go of the store when a Dataset is closed."""

    def __init__(self, node: Array | Group) -> None:
        self._node: Array | Group | None = node

    def __call__(self) -> None:
        node, self._node = self._node, None
        if isinstance(node, Group):
            node.close()
