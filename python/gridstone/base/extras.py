"""Imports optional libraries, or says what to install."""

import importlib
from typing import Any

from ..errors import UnsupportedError


def needed(module: str, extra: str, what: str) -> Any:
    """The module; an `UnsupportedError` says what to install where it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UnsupportedError(
            f"{what} needs {package}, which cannot be imported ({error}); install it: pip install 'gridstone[{extra}]'"
        ) from error
