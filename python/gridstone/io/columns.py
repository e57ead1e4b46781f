"""Which columns of a source go into an array, and what becomes of those that one of the two lacks.

1. An array that is inferred has every column of every file. A file without one gives nulls.
2. An array that is there takes its own columns. Others are an error, unless `evolve=True` adds them.
3. A schema that the caller states chooses columns: others are left out. So does `attrs=`.
4. An attribute without a column is null, or its own fill. Without either the load is an error.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..base.arguments import several
from ..base.printable import brief
from ..errors import InputError
from ..schema.array_schema import Schema
from ..schema.fields import has_own_fill


class Part(NamedTuple):
    """Rows that have the same columns: those of a file, or of a table."""

    title: str
    """For messages: the file, and the line of the names if there is one."""
    names: Sequence[str]


def named(parts: Iterable[Part]) -> list[str]:
    """The columns of all parts, in the order that they come in."""
    return list(dict.fromkeys(name for part in parts for name in part.names))


def check_attrs(attrs: Sequence[str] | None, dims: Iterable[str]) -> None:
    """An `InputError` unless these are names of columns, each once, and none is that of a dimension."""
    if attrs is None:
        return
    several("attrs", attrs)
    names = list(attrs)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InputError(f"attrs= names each column to load as an attribute once, found {brief(names)}")
    for name in dims:
        if name in names:
            raise InputError(
                f"attrs= names attributes, {name!r} is a dimension: leave it out, its column is always loaded"
            )


def check_present(parts: Sequence[Part], names: Iterable[str], *, union: bool) -> None:
    """An `InputError` for a column that no part has or, without `union`, that one of them lacks."""
    known = named(parts)
    if not parts:
        return
    missing = [name for name in names if name not in known]
    if missing:
        raise InputError(
            f"{parts[0].title} has no column {', '.join(map(brief, missing))}; its columns are {', '.join(known)}"
        )
    if union:
        return
    for part in parts:
        lacking = next((name for name in names if name not in part.names), None)
        if lacking is not None:
            other = next(one.title for one in parts if lacking in one.names)
            raise InputError(
                f"{part.title} has no column {brief(lacking)}, as {other} has, and union=False wants the same columns "
                f"in all files; union=True (--union) makes it null there, attrs= (--attrs) chooses columns"
            )


def check_dims(parts: Sequence[Part], dims: Sequence[str]) -> None:
    """An `InputError` for a part that lacks a dimension: coordinates are never null."""
    for part in parts:
        missing = [name for name in dims if name not in part.names]
        if missing:
            raise InputError(
                f"{part.title} has no column {', '.join(map(brief, missing))}; its columns are {', '.join(part.names)}"
            )


def new_names(parts: Sequence[Part], schema: Schema, attrs: Sequence[str] | None, *, evolve: bool) -> list[str]:
    """The columns that an array lacks and a load adds; an `InputError` names the first one unless `evolve`."""
    have = {*(dim.name for dim in schema.dims), *(attr.name for attr in schema.attrs)}
    found = [name for name in named(parts) if name not in have and (attrs is None or name in attrs)]
    if not found or evolve:
        return found
    part = next(part for part in parts if found[0] in part.names)
    raise InputError(
        f"{part.title}, column {brief(found[0])}: the array has no attribute of that name, only "
        f"{', '.join(repr(attr.name) for attr in schema.attrs)}; evolve=True (--evolve) adds it, "
        f"attrs= (--attrs) says which columns to load"
    )


def taken(parts: Sequence[Part], schema: Schema, attrs: Sequence[str] | None, *, partly: bool) -> list[str]:
    """The attributes that get values, in the schema's order; `partly`: of a dense array, where others stay as they are.

    An `InputError` names the first part and attribute without a column that can be neither null nor a fill.
    """
    known = named(parts)
    wanted = [attr for attr in schema.attrs if attrs is None or attr.name in attrs]
    for attr in wanted if partly else schema.attrs:
        lacking = next((part for part in parts if attr.name not in part.names or attr not in wanted), None)
        if lacking is None or attr.nullable or has_own_fill(attr):
            continue
        left = f"leaves out column {attr.name!r}" if attr.name in lacking.names else f"has no column {attr.name!r}"
        raise InputError(
            f"{lacking.title} {left}, and attribute {attr.name!r} is neither nullable nor has a fill of its own; add "
            f"the column, or make the attribute nullable: alter(nullable={attr.name!r}) (gridstone alter --nullable)"
        )
    return [attr.name for attr in wanted if attr.name in known] if partly else [attr.name for attr in schema.attrs]
