"""What `gridstone.array` is given: values, and the names, labels and metadata that come with them."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.printable import brief
from ..errors import InputError
from ..labels import frames, xarrays
from ..schema.labels import Labels, check_pair, labels_of


@dataclass(slots=True)
class Given:
    """Values and what is known of them."""

    values: Any
    """An array, or a dict of them by attribute."""
    name: str | None = None
    dims: tuple[str, ...] | None = None
    labels: dict[str, Any] = field(default_factory=dict)
    """By dimension."""
    meta: dict[str, Any] = field(default_factory=dict)
    """That of the array."""
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Metadata of dimensions and attributes by name."""


def given_of(x: Any) -> Given:
    """The values, names, labels and metadata of what libraries have: xarray's DataArray and Dataset, the frames and
    series of pandas; anything else as values."""
    if xarrays.is_xarray(x):
        return _of_xarray(x)
    if isinstance(x, Mapping):
        raise InputError(
            "ndarray= takes the values of one array, found a dict: give a structured array, or a Dataset of xarray, "
            "for several attributes; or create the array with gs.create, and write the dict"
        )
    if frames.is_pandas(x):
        return _of_pandas(x)
    return Given(x)


def _of_xarray(x: Any) -> Given:
    variables = xarrays.variables_of(x)
    first = next(iter(variables.values()))
    dims = tuple(str(dim) for dim in first.dims)
    made = Given(None, dims=dims, meta=dict(x.attrs))
    for name in first.dims:
        if name in x.coords:
            coordinate = x.coords[name]
            if coordinate.to_index().nlevels > 1:
                raise InputError(
                    f"dimension {str(name)!r} has an index of several levels, which labels do not have; "
                    f"x.reset_index({str(name)!r}) makes coordinates of them"
                )
            made.labels[str(name)] = coordinate
            if coordinate.attrs:
                made.fields[str(name)] = dict(coordinate.attrs)
    left = [str(name) for name in x.coords if name not in first.dims]
    if left:
        warnings.warn(
            f"coordinates that are no labels of a dimension are left out: {', '.join(map(repr, left))}; keep them as "
            f"attributes of the array, or in its metadata",
            UserWarning,
            stacklevel=5,
        )
    if None in variables:
        made.values, made.name = first.values, None if first.name is None else str(first.name)
        return made
    made.values = {str(name): variable.values for name, variable in variables.items()}
    made.fields |= {str(name): dict(variable.attrs) for name, variable in variables.items() if variable.attrs}
    return made


def _of_pandas(x: Any) -> Given:
    """A frame of numbers, whose rows and columns are dimensions; or a series."""
    axes = frames.axes_of(x)
    names = tuple(f"d{i}" if axis.name is None else str(axis.name) for i, axis in enumerate(axes))
    made = Given(x, dims=names, meta=dict(x.attrs))
    if not frames.is_frame(x) and x.name is not None:
        made.name = str(x.name)
    for name, axis in zip(names, axes, strict=True):
        if not frames.is_counted(axis):
            made.labels[name] = axis
    return made


def named(given: Given, shape: Sequence[int], dims: Any, coords: Any) -> tuple[tuple[str, ...], dict[str, Labels]]:
    """The names of the dimensions and their labels, of what is said beside the values too.

    Raises:
        InputError: not one name for each dimension, or labels of a dimension that there is not.
    """
    ndim = len(shape)
    names = given.dims or tuple(f"d{i}" for i in range(ndim))
    labels = dict(zip(names, (given.labels.get(name) for name in names), strict=True))
    if dims is not None:
        wanted = [dims] if isinstance(dims, str) else list(dims)
        if len(wanted) != ndim or not all(isinstance(name, str) for name in wanted):
            raise InputError(f"dims= names each of the {ndim} dimensions, found {brief(dims)}")
        labels = dict(zip(wanted, labels.values(), strict=True))
        given.fields = {dict(zip(names, wanted, strict=True)).get(n, n): meta for n, meta in given.fields.items()}
        names = tuple(wanted)
    if len(set(names)) != len(names):
        raise InputError(f"two dimensions have one name: {names}; give others with dims=")
    for name, values in _by_name(names, coords).items():
        if name not in names:
            raise InputError(f"coords= has labels of {brief(name)}; the dimensions are {', '.join(map(repr, names))}")
        check_pair(f"dimension {name!r}", values, shape[names.index(name)])
        labels[name] = values
    return names, {n: labels_of(f"dimension {n!r}", values) for n, values in labels.items() if values is not None}


def _by_name(names: Sequence[str], coords: Any) -> Mapping[Any, Any]:
    if coords is None or isinstance(coords, Mapping):
        return coords or {}
    if not isinstance(coords, list | tuple) or len(coords) != len(names):
        raise InputError(
            f"coords= has labels by the name of a dimension, or one list of them for each of {len(names)}, "
            f"found {brief(coords)}"
        )
    return dict(zip(names, coords, strict=True))
