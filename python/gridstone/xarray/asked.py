"""What the caller of `to_gridstone` asks for."""

from dataclasses import dataclass
from typing import Any

from ..context.settings import Context
from ..stores.nodes import joined
from ..stores.store import Uri


@dataclass(frozen=True)
class Asked:
    """Where a Dataset goes, and how."""

    uri: Uri
    path: str
    mode: str
    append_dim: str | None
    region: Any
    message: str | None
    context: Context

    def place(self, below: str) -> str:
        """The path of a group below the one that is written."""
        return joined(self.path, below) if below else self.path
