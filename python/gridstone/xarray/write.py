"""`to_gridstone`: Datasets, DataArrays and DataTrees as groups, each call in one commit."""

from collections.abc import Mapping
from typing import Any

from ..base.arguments import checked, flag, is_iterable, known, mapping, text
from ..base.extras import needed
from ..base.printable import brief
from ..context.settings import Context, default
from ..errors import InputError
from ..stores.store import Uri

_MODES = ("w-", "w", "a", "r+")
_NAME, _VARIABLE = "__xarray_dataarray_name__", "__xarray_dataarray_variable__"
"""What `xr.open_dataarray` looks for: the name of a DataArray, and the variable that stands for one without."""


@checked(encoding=mapping, compute=flag)
def to_gridstone(
    obj: Any,
    uri: Uri,
    *,
    group: str = "/",
    mode: str | None = None,
    append_dim: str | None = None,
    region: "Mapping[str, slice | str] | str | None" = None,
    encoding: Mapping[Any, Any] | None = None,
    compute: bool = True,
    unlimited_dims: Any = None,
    message: str | None = None,
    context: Context | None = None,
) -> Any:
    """Writes a Dataset, a DataArray or a DataTree of xarray to a group, in one commit. `xr.open_dataset(uri,
    engine="gridstone")` gives it back.

    Every variable is an array of the group. Variables of Dask are written block by block, in bounded memory; blocks
    need not fit tiles. A call that fails leaves nothing.

    Args:
        obj: what is written. A DataTree becomes a group for each of its nodes.
        uri: the store; it is made if there is none.
        group: the path of the group.
        mode: "w-": the group is new, or empty. "w": what it holds is replaced; earlier versions keep it. "a":
            variables are added, and those that are there replaced. "r+": variables that are there are written. None:
            "a" with `append_dim`, "r+" with `region`, else "w-".
        append_dim: the dimension along which variables are appended. Other processes may append at the same time: each
            block is there once, behind those of the commits before it.
            Variables without it must be as they are there, and those that are new are missing before. Types and
            encodings are those of the group; floats are rounded to shorter ones, other values must not change.
            Attributes of the Dataset are added or replaced.
        region: where variables that are there are written: a dict of slices by dimension, "auto" for a dimension whose
            place its coordinates tell, or "auto" for all. Regions of several processes need no alignment.
        encoding: by variable, how it is stored: `chunks` or `tile`, `filters` (or `zlib`, `complevel`, `shuffle`); and
            `dtype`, `_FillValue`, `scale_factor`, `add_offset`, `units`, `calendar`, which xarray's encoder applies.
            What came from a file as `var.encoding` is kept beside the values, and not applied. For a DataTree they
            are given by path of the group, then by variable.
        compute: False: only what is no graph of Dask is written; the returned `dask.delayed.Delayed` writes the rest,
            on any scheduler, in a second commit.
        unlimited_dims: names of dimensions that are meant to grow, in addition to those in `obj.encoding`.
        message: kept with the version.
        context: budget, threads and durability; None: the process's default.

    Returns:
        The version committed; with `compute=False` a `Delayed` that gives it.

    Raises:
        ExistsError: mode "w-", and the group holds something.
        InputError: sizes, coordinates, names or encodings that do not fit, or values that would become others.
        NotImplementedError: an index of several levels; `reset_index` makes coordinates of it.
        TypeError: names that are no text.

    Example:
        >>> gs.to_gridstone(ds, "sea.gs", message="first year")
        2
    """
    xarray = needed("xarray", "xarray", "to_gridstone()")
    text("group", group)
    if mode is None:
        mode = "a" if append_dim is not None else "r+" if region is not None else "w-"
    known("mode", mode, _MODES)
    if append_dim is not None and region is not None:
        raise InputError("append_dim= writes behind the end, region= to a place that is there: give one of them")
    if (append_dim is not None or region is not None) and mode in ("w-", "w"):
        what = "append_dim=" if append_dim is not None else "region="
        raise InputError(f'{what} writes to variables that are there: mode="a" or "r+", not {mode!r}')
    datasets = _datasets(xarray, obj)
    from .asked import Asked
    from .work import written

    asked = Asked(uri, "/" + group.strip("/"), mode, append_dim, region, message, context or default())
    return written(asked, datasets, _by_group(obj, datasets, encoding), _unlimited(datasets, unlimited_dims), compute)


def _datasets(xarray: Any, obj: Any) -> dict[str, Any]:
    """The Datasets by the path of their group."""
    if isinstance(obj, xarray.DataTree):
        base = obj.path
        return {_below(node.path, base): node.to_dataset(inherit=node is obj) for node in obj.subtree}
    if isinstance(obj, xarray.DataArray):
        return {"": _of_array(obj)}
    if isinstance(obj, xarray.Dataset):
        return {"": obj}
    raise InputError(
        f"to_gridstone() takes a Dataset, a DataArray or a DataTree of xarray, not {brief(obj)} "
        f"({type(obj).__name__}); gridstone.array stores an array of NumPy"
    )


def _below(path: str, base: str) -> str:
    return path.removeprefix(base.rstrip("/")).strip("/")


def _of_array(given: Any) -> Any:
    """A DataArray as a Dataset that `xr.open_dataarray` opens as it was."""
    if given.name is None:
        return given.to_dataset(name=_VARIABLE)
    if given.name in given.coords or given.name in given.dims:
        made = given.to_dataset(name=_VARIABLE)
        made.attrs[_NAME] = given.name
        return made
    return given.to_dataset()


def _by_group(obj: Any, datasets: Mapping[str, Any], encoding: Mapping[Any, Any] | None) -> dict[str, Any]:
    """The encodings by the path of a group."""
    if type(obj).__name__ != "DataTree":
        if isinstance(encoding, Mapping) and type(obj).__name__ == "DataArray" and obj.name in encoding:
            encoding = {next(iter(datasets[""].data_vars)): encoding[obj.name]}
        return {"": encoding}
    given = {str(path).strip("/"): one for path, one in (encoding or {}).items()}
    if unknown := [path for path in given if path not in datasets]:
        raise InputError(
            f"unexpected encoding group name(s) {', '.join(map(repr, unknown))}; the tree has "
            f"{', '.join(repr('/' + path) for path in datasets)}"
        )
    return given


def _unlimited(datasets: Mapping[str, Any], given: Any) -> dict[str, frozenset[Any]]:
    """The dimensions that are meant to grow, by group."""
    import warnings

    wanted = _names(given)
    everywhere = {dim for dataset in datasets.values() for dim in dataset.dims}
    if lacking := [dim for dim in wanted if dim not in everywhere]:
        raise InputError(
            f"unlimited_dims=: Unlimited dimension(s) {brief(lacking)} declared in 'unlimited_dims-kwarg', which the "
            f"Dataset does not have; it has {', '.join(map(repr, everywhere))}"
        )
    made = {}
    for path, dataset in datasets.items():
        own = _names(dataset.encoding.get("unlimited_dims"))
        if lacking := [dim for dim in own if dim not in dataset.dims]:
            warnings.warn(
                f"Unlimited dimension(s) {', '.join(map(repr, lacking))} declared in 'dataset.encoding', but not part "
                f"of the Dataset, are left out",
                UserWarning,
                stacklevel=4,
            )
        made[path] = frozenset({*wanted, *own} & set(dataset.dims))
    return made


def _names(given: Any) -> list[Any]:
    if given is None:
        return []
    found = [given] if isinstance(given, str) or not is_iterable(given) else list(given)
    if not all(isinstance(one, str) for one in found):
        raise InputError(f"unlimited_dims= names dimensions, not {brief(given)}")
    return found
