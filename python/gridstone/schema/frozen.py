"""Immutable values that are compared by the JSON form that the core stores."""

import json
from abc import ABC, abstractmethod
from typing import Any


class Frozen(ABC):
    """An immutable value compared by the JSON form that the core stores."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; make a new one to change {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; {name!r} cannot be deleted")

    def _put(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def _json(self) -> dict[str, Any]:
        """The JSON form."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._json() == other._json()

    def __hash__(self) -> int:
        return hash(json.dumps(self._json()))
