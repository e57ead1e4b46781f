"""Imports optional libraries, or says what to install."""

import importlib
import importlib.util
import sys
from typing import Any

from ..errors import UnsupportedError


def needed(module: str, extra: str, what: str) -> Any:
    """The module; an `UnsupportedError` says what to install where it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _missing(module, extra, what, error) from error


def found(module: str, extra: str, what: str) -> None:
    """The same `UnsupportedError` where a module is missing; it is not imported."""
    try:
        missing = sys.modules.get(module, module) is None or importlib.util.find_spec(module) is None
    except (ImportError, ValueError):
        missing = True
    if missing:
        raise _missing(module, extra, what, "no such module")


def _missing(module: str, extra: str, what: str, why: ImportError | str) -> UnsupportedError:
    package = module.partition(".")[0]
    return UnsupportedError(
        f"{what} needs {package}, which cannot be imported ({why}); install it: pip install 'gridstone[{extra}]'"
    )
