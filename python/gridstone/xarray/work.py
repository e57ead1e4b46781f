"""One call of `to_gridstone`: its plans, and what becomes of each group."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..arrays.metadata import encode
from ..errors import ExistsError, InputError, NotFoundError
from ..stores.transaction import Transaction
from . import append, blocks, creation, notes, region
from .asked import Asked
from .commits import committed
from .plan import Planned, planned


@dataclass
class Plan:
    """What becomes of one group."""

    path: str
    variables: list[Planned]
    attrs: dict[str, Any]
    types: notes.Types = field(default_factory=dict)


def written(
    asked: Asked,
    datasets: Mapping[str, Any],
    encodings: Mapping[str, Any],
    unlimited: Mapping[str, frozenset[Any]],
    compute: bool,
) -> Any:
    """The version that holds the Datasets; with `compute=False` what writes the graphs of Dask."""
    if asked.region is not None:
        if len(datasets) > 1:
            raise InputError("region= writes one Dataset; write the nodes of a DataTree one by one, with group=")
        return region.written(asked, datasets[""], encodings.get(""), compute)
    plans = [_plan(asked, below, one, encodings, unlimited) for below, one in datasets.items()]
    if asked.append_dim is not None and not compute:
        raise InputError("append_dim= finds its place when it is committed, at once: leave out compute=False")
    later: list[blocks.Block] = []

    def fill(tx: Transaction) -> None:
        later.clear()
        _cleared(tx, asked)
        for plan in plans:
            _fill(tx, asked, plan, later)
        if compute and later:
            blocks.store_in(tx, later)

    version = committed(asked, fill)
    return version if compute else blocks.delayed(asked, later, version)


def _plan(asked: Asked, below: str, dataset: Any, encodings: Any, unlimited: Any) -> Plan:
    attrs, types = notes.plain(dataset.attrs, "the Dataset")
    return Plan(asked.place(below), planned(dataset, encodings.get(below), unlimited[below]), attrs, types)


def _cleared(tx: Transaction, asked: Asked) -> None:
    """Makes room for what is written: of a group that is to be new it checks that it is, of one that is replaced it
    takes away what is there."""
    kind = tx._native.kind(asked.path)
    if kind == "array":
        if asked.path == "/" or asked.mode != "w":
            raise InputError(
                f"{tx.uri!r} has an array at {asked.path!r}, and a Dataset is a group; give another group="
            )
        tx.remove(asked.path)
        return
    if asked.mode == "r+" and kind is None:
        raise NotFoundError(f"{tx.uri!r} has no group {asked.path!r} to write to; write it first, without region=")
    if kind is None or asked.mode in ("a", "r+"):
        return
    held = tx.ls(asked.path)
    if asked.mode == "w-" and held:
        raise ExistsError(
            f"{asked.path!r} in {tx.uri!r} holds {', '.join(repr(entry.name) for entry in held[:8])}; "
            f'mode="w" replaces it, "a" adds variables, group= names another group'
        )
    for entry in held:
        tx.remove(entry.path)


def _fill(tx: Transaction, asked: Asked, plan: Plan, later: list[blocks.Block]) -> None:
    tx.group(plan.path)
    there = creation.there(tx, plan.path)
    if asked.mode == "r+":
        creation.check_there(plan.path, plan.variables, there)
    _describe(tx, plan, asked.mode)
    if asked.append_dim is not None and tx.ls(plan.path):
        later += append.appended(tx, asked.path, plan.path, plan.variables, asked.append_dim)
        return
    there.above = creation.above(tx, asked.path, plan.path, plan.variables)
    later += creation.created(tx, plan.path, plan.variables, there)


def _describe(tx: Transaction, plan: Plan, mode: str) -> None:
    """Gives a group the attributes of the Dataset, as metadata. Those that it has besides stay, unless it is
    replaced."""
    meta = tx.meta(plan.path)
    held = dict(meta)
    wanted = {name: value for name, value in plan.attrs.items() if name != notes.KEY}
    if noted := _noted(plan, {} if mode == "w" else held.get(notes.KEY)):
        wanted[notes.KEY] = noted
    gone = [name for name in held if name not in wanted and (mode == "w" or name == notes.KEY)]
    for name in gone:
        del meta[name]
    changed = {name: value for name, value in wanted.items() if name not in held or not _same(held[name], value)}
    if changed:
        meta.update(changed)


def _noted(plan: Plan, before: Any) -> dict[str, Any]:
    """What is noted of the attributes: of those that are given what they need, of others what was noted before."""
    known = before if isinstance(before, Mapping) else {}
    stay = {name: kind for name, kind in (known.get("types") or {}).items() if name not in plan.attrs}
    types = {**stay, **plan.types}
    own = {notes.KEY: plan.attrs[notes.KEY]} if notes.KEY in plan.attrs else known.get("attrs")
    made = {name: value for name, value in known.items() if name not in ("types", "attrs")}
    return made | ({"types": types} if types else {}) | ({"attrs": own} if own else {})


def _same(one: Any, other: Any) -> bool:
    """Whether two values are stored alike: 1, 1.0 and True, which are equal, are not."""
    return repr(encode(one, "an attribute")) == repr(encode(other, "an attribute"))
