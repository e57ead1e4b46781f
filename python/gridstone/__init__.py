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
from .arrays.array import Array
from .base.drawer import name_drawer
from .compare.diff import diff
from .compare.report import Difference
from .context.settings import Context
from .errors import (
    AccessError,
    BoundsError,
    BudgetError,
    ClockWarning,
    CommitUnknownError,
    ConflictError,
    CorruptionError,
    ExistsError,
    GridstoneError,
    InputError,
    MissingAttributeError,
    MissingColumnError,
    MissingLabelError,
    MissingNameError,
    NotFoundError,
    SchemaError,
    SnapshotExpiredError,
    SourceChangedError,
    StorageError,
    UnsupportedError,
)
from .maintain.health import Repair, Report, repair, verify
from .maintain.retention import tag, untag
from .maintain.usage import Usage
from .query.box import prefix
from .query.condition import Expression, col, lit
from .result.damage import DamageWarning, Skipped
from .result.nat import NatWarning
from .schema.array_schema import Schema
from .schema.attribute import Attr
from .schema.dimension import Dim
from .schema.filters import register_filter, registered_filters
from .stores.attach import attach
from .stores.copies import copy, move, upgrade
from .stores.group import Group
from .stores.store import array, create, delete, exists, group, ls, open
from .stores.transaction import Transaction, commit, transaction
from .stores.usage import du
from .version.receipt import Receipt

if TYPE_CHECKING:
    from . import chart as chart
    from . import dask as dask
    from . import io as io
    from . import partials as partials
    from . import plot as plot
    from . import xarray as xarray
    from .advice.advise import advise
    from .queries.sql import connect, sql
    from .result.buffers import Filling
    from .result.cells import Result
    from .result.plan import Plan
    from .result.stream import Stream
    from .xarray.write import to_gridstone

__all__ = [
    "AccessError",
    "Array",
    "Attr",
    "BoundsError",
    "BudgetError",
    "ClockWarning",
    "CommitUnknownError",
    "ConflictError",
    "Context",
    "CorruptionError",
    "DamageWarning",
    "Difference",
    "Dim",
    "ExistsError",
    "Expression",
    "Filling",
    "GridstoneError",
    "Group",
    "InputError",
    "MissingAttributeError",
    "MissingColumnError",
    "MissingLabelError",
    "MissingNameError",
    "NatWarning",
    "NotFoundError",
    "Plan",
    "Receipt",
    "Repair",
    "Report",
    "Result",
    "Schema",
    "SchemaError",
    "Skipped",
    "SnapshotExpiredError",
    "SourceChangedError",
    "StorageError",
    "Stream",
    "Transaction",
    "UnsupportedError",
    "Usage",
    "__version__",
    "advise",
    "array",
    "attach",
    "chart",
    "col",
    "commit",
    "connect",
    "copy",
    "create",
    "dask",
    "delete",
    "diff",
    "du",
    "errors",
    "exists",
    "group",
    "io",
    "lit",
    "ls",
    "move",
    "open",
    "partials",
    "plot",
    "prefix",
    "register_filter",
    "registered_filters",
    "repair",
    "sql",
    "tag",
    "to_gridstone",
    "transaction",
    "untag",
    "upgrade",
    "verify",
    "xarray",
]

_LAZY_MODULES = ("chart", "dask", "io", "partials", "plot", "xarray")
_LAZY_NAMES = {
    "Filling": "result.buffers",
    "Plan": "result.plan",
    "Result": "result.cells",
    "Stream": "result.stream",
    "advise": "advice.advise",
    "connect": "queries.sql",
    "sql": "queries.sql",
    "to_gridstone": "xarray.write",
}


def _draw_array(*given: Any, **options: Any) -> Any:
    return importlib.import_module(f"{__name__}.plot").plot(*given, **options)


def _draw_result(*given: Any, **options: Any) -> Any:
    return importlib.import_module(f"{__name__}.result_plot").plot(*given, **options)


name_drawer("array", _draw_array)
name_drawer("result", _draw_result)


if not TYPE_CHECKING:  # Type checkers would take any misspelled name for a part of the package.

    def __getattr__(name: str) -> Any:
        """Parts that need pyarrow or matplotlib are imported when first asked for."""
        if name in _LAZY_MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name in _LAZY_NAMES:
            return getattr(importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names; not the packages that importing a part of one leaves here."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
