"""One call of `to_gridstone`: its plans, its commit, and trying again where another commit came first."""

import contextlib
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import _native
from ..errors import CommitUnknownError, ConflictError, ExistsError, GridstoneError, InputError, NotFoundError
from ..stores.transaction import Transaction, transaction
from . import append, blocks, creation, notes, region
from .asked import Asked, touched
from .plan import Planned, planned

_TRIES = 40
_WAIT_S = 0.02


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
    if asked.append_dim is not None and tx.ls(plan.path):
        later += append.appended(tx, plan.path, plan.variables, asked.append_dim)
        return
    _describe(tx, plan, asked.mode)
    there = creation.there(tx, plan.path)
    if asked.mode == "r+":
        creation.check_there(plan.path, plan.variables, there)
    there.above = creation.above(tx, asked.path, plan.path, plan.variables)
    later += creation.created(tx, plan.path, plan.variables, there)


def committed(asked: Asked, fill: Callable[[Transaction], None]) -> int:
    """The version of a transaction on what `fill` does, which is tried again if another commit was in its way. A store
    that was made for it goes if it fails."""
    used, place = asked.context, os.fspath(asked.uri)
    first = None if _native.exists(used.native, place) else _native.create_group(used.native, place, "/").version
    isolation = "serializable" if asked.mode == "w-" else "snapshot"
    for left in reversed(range(_TRIES)):
        try:
            with transaction(asked.uri, asked.message, isolation, context=used) as tx:
                fill(tx)
            version = tx.version
            assert version is not None
            touched(place)
            return version
        except ConflictError:
            if not left:
                raise
            time.sleep(random.uniform(0, _WAIT_S * min(_TRIES - left, 10)))
        except BaseException as error:
            # What may have been committed stays.
            if first is not None and not isinstance(error, CommitUnknownError):
                with contextlib.suppress(GridstoneError):
                    if _native.create_group(used.native, place, "/").version == first:
                        _native.delete_store(used.native, place)
            raise
    raise AssertionError("the last try returns or raises")


def _describe(tx: Transaction, plan: Plan, mode: str) -> None:
    """Gives a group the attributes of the Dataset, as metadata."""
    wanted = {name: value for name, value in plan.attrs.items() if name != notes.KEY}
    noted: dict[str, Any] = {}
    if plan.types:
        noted["types"] = plan.types
    if notes.KEY in plan.attrs:
        noted["attrs"] = {notes.KEY: plan.attrs[notes.KEY]}
    if noted:
        wanted[notes.KEY] = noted
    meta = tx.meta(plan.path)
    held = dict(meta)
    if mode == "w":
        for name in held:
            if name not in wanted:
                del meta[name]
    changed = {name: value for name, value in wanted.items() if name not in held or not _same(held[name], value)}
    if changed:
        meta.update(changed)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
