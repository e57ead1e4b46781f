"""Pictures of results: images of dense boxes, lines of one side, densities and counts of cells, charts of answers."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .base.extras import needed
from .chart import chart
from .column import datatype
from .column.datatype import AnyArray
from .errors import InputError
from .pictures import axis, density, image, line, profile
from .pictures import theme as themes
from .pictures.target import Target, checked_target
from .result.cells import Result

if TYPE_CHECKING:
    from .pictures.figure import Picture

_BINS = 400


def plot(
    found: Result,
    target: Target | None,
    *,
    attr: str | None,
    keys: Sequence[str] | None,
    widths: Mapping[str, Any] | None,
    title: str | None,
    theme: str,
) -> "Path | Picture":
    """See `Result.plot`."""
    if keys is not None:
        return chart(found, target, keys=keys, widths=widths, title=title, theme=theme)
    path = None if target is None else checked_target(target)
    needed("matplotlib.figure", "plot", "a plot")
    with themes.using(theme):
        figure = _box(found, attr, title or "") if found.shape is not None else _cells(found, title or "")
    if path is None:
        return figure
    from .pictures.figure import write

    return write(figure, path)


def _box(found: Result, attr: str | None, title: str) -> "Picture":
    """A dense box: an image of two sides, a line of one."""
    names = [name for name in found if attr is None or name == attr]
    if len(names) != 1:
        there = ", ".join(map(repr, found))
        raise InputError(
            f"the result has the attributes {there}; say which one to draw: plot(attr={next(iter(found))!r})"
        )
    one = found._schema.attr(names[0])
    image.check_drawable(one)
    values = found.in_place()[one.name]
    sides = [(dim.name, place) for place, dim in enumerate(found._schema.dims) if found._box.shape[place] != 1]
    if values.size == 0:
        raise InputError("the result has no cells; there is nothing to draw")
    if len(sides) > 2:
        told = ", ".join(f"{name} ({found._box.shape[place]})" for name, place in sides)
        raise InputError(
            f"a picture has two sides, the result has {told}; choose a plane before: a.sel({sides[0][0]}=…)"
        )
    vector = one.dtype in ("uint8[3]", "uint8[4]")
    lengths = [found._box.shape[place] for _, place in sides]
    values = values.reshape(*lengths, *(values.shape[-1:] if vector else ()))
    if len(sides) < 2:
        return _line(found, one, [name for name, _ in sides], np.ma.asarray(values).reshape(-1), title)
    return _image(found, one, (sides[1][0], sides[0][0]), values, title)


def _named(found: Result, name: str) -> str:
    """A name with the units of its metadata."""
    return axis.named(name, {} if found._source is None else found._source.meta(name))


def _plane(found: Result, drawn: Sequence[str]) -> list[str]:
    """Where the result lies along its other dimensions."""
    told = []
    for dim in found._schema.dims:
        if dim.name not in drawn:
            values = _places(found, dim.name)[0]
            units = axis.units_of({} if found._source is None else found._source.meta(dim.name))
            told.append(f"{dim.name} = {axis.text_of(values[0])}{f' {units}' if units else ''}")
    return [", ".join(told)] if told else []


def _places(found: Result, name: str) -> tuple[AnyArray, bool]:
    """The labels or coordinates along a side, and whether they are numbers or times to scale."""
    labels = found.labels.get(name)
    values: AnyArray = found[name] if labels is None else labels
    plain = np.ma.getdata(values)
    return values, plain.dtype.kind in "iufM" and not np.ma.is_masked(values)


def _image(found: Result, attr: Any, names: tuple[str, str], values: AnyArray, title: str) -> "Picture":
    from .pictures.figure import canvas

    rows, columns = values.shape[:2]
    held = found._source
    meta = {name: {} if held is None else held.meta(name) for name in names}
    y, is_scale = _places(found, names[1])
    north = axis.is_latitude(names[1], meta[names[1]])
    flipped = north and is_scale and bool(y[0] < y[-1])
    true = rows / columns
    ratio = min(1.6, max(0.3, true))
    note = " · ".join([*_plane(found, names), "north is up" if north else "first row at the top"])
    figure, axes, bar = canvas(title, note, ratio, below=0.3)
    shown = image.Image(attr, _named(found, attr.name), values[::-1] if flipped else values, None)
    extent = (0.0, columns, 0.0, rows) if flipped else (0.0, columns, rows, 0.0)
    image.draw(axes, bar, shown, extent, stretch=abs(ratio - true) > 1e-9)
    for name, one in zip(names, (axes.xaxis, axes.yaxis), strict=True):
        one.set_label_text(_named(found, name), color=themes.current().text)
        one.set_major_locator(axis.centres())
        one.set_major_formatter(partial(axis.position_label, _places(found, name)[0], 0))
    return figure


def _line(found: Result, attr: Any, names: Sequence[str], values: AnyArray, title: str) -> "Picture":
    """Values of one side as a line, with gaps where there are none."""
    from .pictures.figure import canvas

    line.check_line(attr)
    figure, axes, bar = canvas(title, ", ".join(_plane(found, names)), line.RATIO, below=0.3)
    bar.remove()
    line.draw(axes, _along(found, names), line.values_of(attr, values))
    axes.set_ylabel(_named(found, attr.name), color=themes.current().text)
    axes.set_xlabel(_named(found, names[0]) if names else "", color=themes.current().text)
    return figure


def _along(found: Result, names: Sequence[str]) -> line.Places:
    """Where the values of a line stand."""
    if not names:
        return line.Places(np.zeros(1), "float64")
    values = _places(found, names[0])[0]
    dtype = found._schema.dim(names[0]).dtype
    kind = np.ma.getdata(values).dtype
    return line.places_of(values, np.arange(len(values)), 0, str(kind) if kind.kind in "mM" else dtype)


def _cells(found: Result, title: str) -> "Picture":
    """Cells of a list as a map of how many lie where."""
    from .pictures.figure import canvas

    dims = [dim for dim in found._schema.dims if not dim.is_text and dim.name in found]
    is_one = len(dims) == len(found._schema.dims) == 1
    if len(dims) < 2 and not is_one:
        raise InputError(
            f"this is no box, and has no two columns of coordinates; of an answer say which columns are keys: "
            f"plot(keys=[{next(iter(found))!r}])"
        )
    if len(found) == 0:
        raise InputError("the result has no cells; there is nothing to draw")
    if is_one:
        return _bars(found, dims[0], title)
    names = [dim.name for dim in dims]
    for x, y in (("lon", "lat"), ("longitude", "latitude"), ("x", "y")):
        lower = {name.lower(): name for name in names}
        if x in lower and y in lower:
            dims = [found._schema.dim(lower[x]), found._schema.dim(lower[y])]
    columns = [np.ma.getdata(found[dim.name]) for dim in dims[:2]]
    numbers = [(one.astype(np.int64) if one.dtype.kind in "mM" else one).astype(np.float64) for one in columns]
    ranges = [axis.range_of(dim, (one.min(), one.max())) for dim, one in zip(dims[:2], numbers, strict=True)]
    place = density.counted(numbers, ranges, (_BINS, _BINS))
    counts = np.bincount(place, minlength=_BINS * _BINS).reshape(_BINS, _BINS).T
    figure, axes, bar = canvas(title, "", 0.62)
    density.draw(axes, bar, counts, (*ranges[0], *ranges[1]), 0.0)
    for dim, one in zip(dims[:2], (axes.xaxis, axes.yaxis), strict=True):
        one.set_label_text(_named(found, dim.name), color=themes.current().text)
        if datatype.is_time(dim.dtype):
            one.set_major_formatter(partial(axis.time_label, dim.dtype))
    return figure


def _bars(found: Result, dim: Any, title: str) -> "Picture":
    """Cells of one dimension as counts between the first and the last."""
    places = np.ma.getdata(found[dim.name])
    figure, axes = profile.counted(dim, (places.min(), places.max()), [places], title)
    axes.set_xlabel(_named(found, dim.name), color=themes.current().text)
    return figure
