"""Gridstone: dense and sparse multi-dimensional arrays, stored.

import gridstone as gs

a = gs.array("image.gs", pixels)
a[10:20, ::2]
a.write_cells({"d0": rows, "d1": columns}, values)
a.at(version=2)[...]
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import errors
from ._native import __version__
from .array import Array
from .context import Context
from .copying import copy, move
from .damage import DamageWarning, Skipped
from .diffing import Difference, diff
from .errors import ClockWarning
from .expressions import Expression, col
from .filters import register_filter, registered_filters
from .group import Group
from .health import Repair, Report, repair, verify
from .receipt import Receipt
from .retention import tag, untag
from .schema import Attr, Dim, Schema
from .selection import prefix
from .store import array, create, delete, exists, group, ls, open
from .transaction import Transaction, commit, transaction

if TYPE_CHECKING:
    from . import io as io
    from . import plot as plot
    from .advising import advise
    from .filling import Filling
    from .result import Result
    from .stream import Stream

__all__ = [
    "Array",
    "Attr",
    "ClockWarning",
    "Context",
    "DamageWarning",
    "Difference",
    "Dim",
    "Expression",
    "Filling",
    "Group",
    "Receipt",
    "Repair",
    "Report",
    "Result",
    "Schema",
    "Skipped",
    "Stream",
    "Transaction",
    "__version__",
    "advise",
    "array",
    "col",
    "commit",
    "copy",
    "create",
    "delete",
    "diff",
    "errors",
    "exists",
    "group",
    "io",
    "ls",
    "move",
    "open",
    "plot",
    "prefix",
    "register_filter",
    "registered_filters",
    "repair",
    "tag",
    "transaction",
    "untag",
    "verify",
]

_LAZY_MODULES = ("io", "plot")
_LAZY_NAMES = {"Filling": "filling", "Result": "result", "Stream": "stream", "advise": "advising"}


if not TYPE_CHECKING:  # Type checkers would take any misspelled name for a part of the package.

    def __getattr__(name: str) -> Any:
        """Parts that need pyarrow or matplotlib are imported when first asked for."""
        if name in _LAZY_MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name in _LAZY_NAMES:
            return getattr(importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
