"""Work on every array of a store or group: one row for each, and one exit code for all. Work on the whole store has one
row, and the same shape.

An array at which the work fails holds up no other. The exit code is that of the failures, 1 if they differ; without
a failure it is 3 where something was found.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import click

from ..arrays.array import Array
from ..errors import GridstoneError
from ..stores import store
from ..stores.group import Group
from .outcome import DONE, FAILED, FOUND, code_of, kind_of, message_of
from .output import emit_json, emit_table


class Done(NamedTuple):
    """What became of one array."""

    report: dict[str, Any]
    """In plain values, for JSON."""
    row: tuple[Any, ...]
    """The columns of the table, between the path and the outcome."""
    outcome: str
    found: bool = False


class _Outcome(NamedTuple):
    path: str
    code: int
    done: Done | None
    error: dict[str, Any] | None


def recursive(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--recursive`."""
    help_text = "All arrays of the store, or of the group at --path."
    return click.option("-r", "--recursive", "is_recursive", is_flag=True, help=help_text)(command)


def over_arrays(
    uri: str, path: str, mode: str, work: Callable[[Array], Done], header: Sequence[str], *, json_out: bool
) -> int:
    """Does the work at each array at and below a path, prints what became of them, and gives the exit code."""
    outcomes = [_at(one, partial(_opened_at, uri, one, mode, work)) for one in _arrays(uri, path)]
    if not outcomes and not json_out:
        click.echo(f"{uri} holds no array at or below {path}")
        return DONE
    return _told(outcomes, header, json_out=json_out)


def over_store(work: Callable[[], Done], header: Sequence[str], *, json_out: bool) -> int:
    """Does work that is of the whole store, in the shape that `over_arrays` has: one row, with the path of the root."""
    return _told([_at("/", work)], header, json_out=json_out)


def _told(outcomes: Sequence[_Outcome], header: Sequence[str], *, json_out: bool) -> int:
    """Prints what became of each, and gives the exit code."""
    if json_out:
        emit_json({"arrays": [_plain(one) for one in outcomes]})
    else:
        blank = ("",) * len(header)
        rows = [(one.path, *(blank if one.done is None else one.done.row), _said(one)) for one in outcomes]
        emit_table(None, ("array", *header, "outcome"), rows)
    failures = {one.code for one in outcomes if one.error is not None}
    if failures:
        return failures.pop() if len(failures) == 1 else FAILED
    return FOUND if any(one.code == FOUND for one in outcomes) else DONE


def _arrays(uri: str, path: str) -> list[str]:
    """The places of the arrays."""
    found = store.open(uri, path=path)
    if isinstance(found, Group):
        return [entry.path for entry in found.walk() if entry.kind == "array"]
    return [found.path]


def _opened_at(uri: str, path: str, mode: str, work: Callable[[Array], Done]) -> Done:
    return work(store.open_array(uri, path=path, mode=mode))


def _at(path: str, work: Callable[[], Done]) -> _Outcome:
    try:
        done = work()
    except (GridstoneError, OSError) as error:
        code = code_of(error)
        return _Outcome(path, code, None, {"kind": kind_of(error), "message": message_of(error), "exit_code": code})
    return _Outcome(path, FOUND if done.found else DONE, done, None)


def _plain(one: _Outcome) -> dict[str, Any]:
    what = {"error": one.error} if one.done is None else {"report": one.done.report}
    return {"path": one.path, "exit_code": one.code, **what}


def _said(one: _Outcome) -> str:
    return one.done.outcome if one.done is not None else f"error: {(one.error or {})['message']}"
