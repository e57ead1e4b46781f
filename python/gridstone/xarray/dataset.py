"""A group as the variables of a Dataset: what lies in its arrays, what they are called, and their coordinates."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xarray import Variable
from xarray.conventions import CF_RELATED_DATA
from xarray.core import indexing

from ..arrays.array import Array
from ..base.printable import brief
from ..column import datatype
from ..errors import InputError, UnsupportedError
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from ..stores.attach import NOT_ATTACHED
from ..stores.group import Group
from . import names, notes
from .form import Shown
from .lazy import EncodedArray, StoredArray
from .sparse import sparse_variables
from .stored import dims_of, noted_of, shares_labels

_ATTACHED = ("dataset", "as", "member", "decoded", "copied", "concat", "types")
"""What is recorded of a dataset that was attached, beside its encoding."""

_PACKED = ("_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned")


@dataclass
class Decoding:
    """Which of xarray's decoders are on."""

    mask_and_scale: Any = True
    decode_times: Any = True
    decode_timedelta: Any = None

    def undone(self, name: str, dtype: Any, encoding: Mapping[str, Any]) -> bool:
        """Whether a variable that is stored decoded is to be shown as a file would hold it."""
        if dtype.kind in "mM":
            switch = self.decode_times if dtype.kind == "M" or self.decode_timedelta is None else self.decode_timedelta
            return "units" in encoding and not of_variable(switch, name, True)
        return any(key in encoding for key in _PACKED) and not of_variable(self.mask_and_scale, name, True)


def of_variable(given: Any, name: Any, default: Any) -> Any:
    """What a switch of xarray, which may be one for each variable, is for one of them."""
    return given.get(name, default) if isinstance(given, Mapping) else given


@dataclass
class Content:
    """The variables of a Dataset before xarray's decoders, and its attributes."""

    variables: dict[Any, Any] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    coordinates: set[Any] = field(default_factory=set)
    """Those that were coordinates when they were written, dimensions aside."""
    unlimited: set[str] = field(default_factory=set)
    places: dict[Any, int] = field(default_factory=dict)
    characters: set[Any] = field(default_factory=set)
    """Those of single bytes that may be parts of texts, as in files."""

    def ordered(self) -> dict[Any, Any]:
        """The variables in the order in which they were written."""
        last = len(self.variables)
        return dict(sorted(self.variables.items(), key=lambda item: self.places.get(item[0], last)))


def content_of(node: Array | Group, decoding: Decoding, dropped: Collection[Any], sparse: bool) -> Content:
    """What a group holds, or an array by itself."""
    made = Content()
    found = list(arrays_of(node, dropped))
    # Arrays of one attribute have their own names; others take those that are free.
    taken = {names.variable_name(name) for array, name in found if name and len(array.schema_names) == 1}
    for array, name in sorted(found, key=lambda one: one[0].sparse):
        if array.sparse:
            _add_sparse(made, array, (name, taken), dropped, sparse)
        else:
            _add(made, array, (name, taken), decoding, dropped)
    for array, _ in found:
        if not array.sparse:
            _add_coordinates(made, array, dropped, isinstance(node, Group))
    _check_counted(made, [array for array, _ in found])
    if decoding.decode_times is not False:
        _describe_bounds(made)
    _check_sizes(made)
    if isinstance(node, Group):
        made.attrs = group_attrs(node)
    elif not node.sparse and len(node.schema_names) > 1:
        made.attrs = dict(node.meta)
    return made


def _describe_bounds(made: Content) -> None:
    """Gives bounds of times that a file has as numbers the units of the times, as xarray does before it decodes."""
    for variable in list(made.variables.values()):
        bounds = made.variables.get(variable.attrs.get("bounds"))
        units = variable.encoding.get("units")
        if bounds is not None and units is not None and variable.dtype.kind == "M" and bounds.dtype.kind in "iuf":
            bounds.attrs.setdefault("units", units)
            if "calendar" in variable.encoding:
                bounds.attrs.setdefault("calendar", variable.encoding["calendar"])


def arrays_of(node: Array | Group, dropped: Collection[Any] = ()) -> Iterator[tuple[Array, str]]:
    """The arrays of a group with their names, except what is dropped; an array itself."""
    if isinstance(node, Array):
        yield node, node.path.rpartition("/")[2]
        return
    for entry in node.children():
        if entry.kind == "array" and names.variable_name(entry.name) not in dropped:
            found = node[entry.name]
            assert isinstance(found, Array)
            yield found, entry.name


def group_attrs(node: Group) -> dict[str, Any]:
    """The attributes of a Dataset."""
    given = dict(node.meta)
    noted = given.pop(notes.KEY, None)
    given.pop(NOT_ATTACHED, None)
    noted = noted if isinstance(noted, Mapping) else {}
    return {**notes.typed(given, noted.get("types")), **noted.get("attrs", {})}


def _called(made: Content, array: Array, attr: str, known: tuple[str, Collection[Any]]) -> Any:
    """The name of a variable: an array of one attribute is the variable of its own name, several are named by
    themselves, after their array too where that name is taken.

    Raises:
        InputError: that one is taken as well.
    """
    name, taken = known
    alone = len(array.schema_names) == 1
    called: Any = names.variable_name(name) if alone and name else attr
    if alone or not (called in made.variables or called in taken):
        return called
    called = f"{name}_{attr}"
    if called in made.variables or called in taken:
        raise InputError(
            f"the attribute {attr!r} of {array.path!r} would be the variable {called!r}, and there is one; open one "
            f"array by itself, group={array.path!r}, or leave one out with drop_variables="
        )
    return called


def _add(
    made: Content, array: Array, known: tuple[str, Collection[Any]], decoding: Decoding, dropped: Collection[Any]
) -> None:
    """The variables of a dense array."""
    attrs, name = array.schema.attrs, known[0]
    alone = len(attrs) == 1
    shared = dict(array.meta)
    for attr in attrs:
        called = _called(made, array, attr.name, known)
        if called in dropped:
            continue
        meta = dict(array[attr.name].meta)
        noted = meta.pop(notes.KEY, None)
        noted = noted if isinstance(noted, Mapping) else {}
        encoding = meta.pop("encoding", {})
        given = {**(shared if alone or name else {}), **meta}
        made.variables[called] = _variable(array, attr, (given, encoding, noted), decoding)
        _note(made, called, noted)
        if "encoded" in noted or _is_attached(encoding):
            made.characters.add(called)


def _note(made: Content, name: Any, noted: Mapping[str, Any]) -> None:
    if noted.get("coordinate"):
        made.coordinates.add(name)
    made.unlimited.update(noted.get("unlimited", ()))
    if "place" in noted:
        made.places[name] = noted["place"]


_Given = tuple[Mapping[str, Any], Any, Mapping[str, Any]]


def _variable(array: Array, attr: Attr, given: _Given, decoding: Decoding) -> Any:
    """The variable as xarray's decoders take it: lazy, with what they are to decode among its attributes."""
    attrs, recorded, noted = given
    types = noted.get("types", {})
    if _is_attached(recorded):
        types = {"attrs": recorded.get("types"), "encoding": recorded.get("types")}
    made = notes.typed(attrs, types.get("attrs"))
    encoding = _encoding(recorded, types.get("encoding"))
    dims = names.dims_in_dataset(array.schema_names, array.dims, noted.get("dims"))
    inner = tuple(f"{attr.name}_{side}" for side in range(len(datatype.shape_of(attr.dtype))))
    stored = StoredArray(array, attr.name, Shown(attr, noted))
    data: Any = stored
    for key in noted.get("encoded", ()):
        made[key] = encoding.pop(key)
    for key in ("coordinates", *CF_RELATED_DATA):
        if key in encoding and key not in made:
            made[key] = encoding.pop(key)
    if "encoded" not in noted and decoding.undone(attr.name, stored.dtype, encoding):
        data = EncodedArray(stored, encoding, attr.name)
        made.update(data.attrs)
        encoding = {}
    chunks = dict(zip(dims, array.chunks, strict=True))
    encoding["preferred_chunks"] = {dim: max(1, size) for dim, size in chunks.items()}
    return Variable((*dims, *inner), indexing.LazilyIndexedArray(data), made, encoding)


def _is_attached(recorded: Any) -> bool:
    """Whether an encoding is that of an attached file."""
    return isinstance(recorded, Mapping) and "dataset" in recorded


def _encoding(recorded: Any, types: Any) -> dict[str, Any]:
    """The encoding of a variable, without what is recorded of an attached dataset."""
    found = dict(recorded) if isinstance(recorded, Mapping) else {}
    if "dataset" in found:
        found = {name: value for name, value in found.items() if name not in _ATTACHED}
    made = notes.typed(found, types)
    if isinstance(made.get("dtype"), str):
        made["dtype"] = _dtype(made["dtype"])
    return made


def _dtype(text: str) -> Any:
    """The type of an encoding; "S1" stays a text, as xarray has it."""
    if text in ("S1", "str"):
        return str if text == "str" else text
    try:
        return np.dtype(text)
    except TypeError:
        return text


def _add_sparse(
    made: Content, array: Array, known: tuple[str, Collection[Any]], dropped: Collection[Any], wanted: bool
) -> None:
    name = known[0]
    if not wanted:
        raise UnsupportedError(
            f"{array.path!r} of {array.uri!r} is a sparse array, which no variable of xarray shows: read it with "
            f"gridstone.dask.frame(a) or a.read().to_pandas(), leave it out with drop_variables=[{name!r}], or take "
            f"a small one as sparse.COO: open_dataset(..., sparse=True)"
        )
    variables, coordinates = sparse_variables(array)
    for attr, variable in variables.items():
        called = _called(made, array, attr, known)
        if called not in dropped:
            made.variables[called] = variable
    for dim, variable in coordinates.items():
        if dim not in dropped and dim not in known[1]:
            variable.encoding[_LABELS] = _COUNTED
            _set_coordinate(made, array, dim, variable)


def _add_coordinates(made: Content, array: Array, dropped: Collection[Any], in_group: bool) -> None:
    """The labels of an array as coordinates where no variable has them, or where its coordinates do not count from 0,
    these. A variable of the name comes first. What a variable of a group has of a group above is shown there."""
    is_ours = in_group and "place" in noted_of(array)
    for name, (axis, dim) in zip(dims_of(array), enumerate(array.dims), strict=True):
        known = made.variables.get(name)
        if name in dropped or (known is not None and not _is_labels(known)):
            continue
        if is_ours and shares_labels(array, axis):
            continue
        values = array.dim(dim).labels
        if values is None:
            values = _own_coordinates(array, axis)
        if values is None or array.shape[axis] == 0:
            continue
        shown = Shown(_label_attr(name, values), {}).values(values)
        kind = _NAMED if array.dim(dim).labels is not None else _COUNTED
        _set_coordinate(made, array, name, Variable((name,), shown, dict(array.dim(dim).meta), {_LABELS: kind}))


def _set_coordinate(made: Content, array: Array, name: Any, variable: Any) -> None:
    """Adds a coordinate that comes from an array's dimension. A variable of the name comes first.

    Raises:
        InputError: another array has others.
    """
    known = made.variables.get(name)
    if known is not None and not _is_labels(known):
        return
    if known is not None and not known.equals(variable):
        raise _differ(array, name)
    made.variables.setdefault(name, variable)


def _differ(array: Array, name: Any) -> InputError:
    return InputError(
        f"the arrays of this group have different labels or coordinates along {name!r}, {array.path!r} others than "
        f"another one, and a Dataset has one for each dimension; open one array by itself: group={array.path!r}"
    )


def _check_counted(made: Content, arrays: Iterable[Array]) -> None:
    """An `InputError` where an array counts from 0 along a dimension, and the coordinates of another are shown. Arrays
    of variables have no coordinates of their own."""
    for array in arrays:
        if not array.sparse and "place" in noted_of(array):
            continue
        dims = array.dims if array.sparse else dims_of(array)
        for axis, (name, dim) in enumerate(zip(dims, array.schema.dims, strict=True)):
            shown = made.variables.get(name)
            if shown is None or shown.encoding.get(_LABELS) != _COUNTED:
                continue
            if _counts_from_0(dim) and (array.sparse or array.dim(array.dims[axis]).labels is None):
                raise _differ(array, name)


_LABELS, _NAMED, _COUNTED = "gridstone_labels", "labels", "own coordinates"
"""A key in the encoding of a coordinate that comes from a dimension, and where it is from there."""


def _is_labels(variable: Any) -> bool:
    return _LABELS in variable.encoding


def _counts_from_0(dim: Dim) -> bool:
    """Whether the coordinates of a dimension are its positions."""
    return not (dim.is_text or datatype.is_time(dim.dtype)) and datatype.ticks_of(dim.reach[0]) == 0


def _label_attr(name: str, values: Any) -> Attr:
    dtype = "string" if values.dtype.kind == "O" else datatype.parse(values.dtype)
    return Attr(name, dtype, nullable=np.ma.isMaskedArray(values) and bool(np.ma.getmaskarray(values).any()))


def _own_coordinates(array: Array, axis: int) -> Any:
    """The coordinates of a dimension that does not simply count from 0."""
    dim = array.schema.dims[axis]
    if not _counts_from_0(dim):
        low = datatype.ticks_of(dim.reach[0])
        dtype = datatype.numpy_of(dim.dtype)
        if dtype.kind in "mM":
            return (low + np.arange(dim.size, dtype=np.int64)).view(dtype)
        return np.arange(low, low + dim.size, dtype=dtype)
    return None


def _check_sizes(made: Content) -> None:
    """An `InputError` where two arrays have a dimension of one name and two lengths."""
    found: dict[Any, tuple[int, Any]] = {}
    for name, variable in made.variables.items():
        for dim, size in zip(variable.dims, variable.shape, strict=True):
            known = found.setdefault(dim, (size, name))
            if known[0] != size:
                raise InputError(
                    f"the dimension {brief(dim)} has {known[0]} positions in {known[1]!r} and {size} in {name!r}, and "
                    f"a Dataset has one length for each; open one array by itself, group='/…/{name}', or leave one "
                    f"out with drop_variables="
                )
    for variable in made.variables.values():
        variable.encoding.pop(_LABELS, None)
