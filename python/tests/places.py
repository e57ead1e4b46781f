"""Where the stores of a test are: in a folder, in memory, or in a bucket."""

import uuid

import gridstone as gs


class Stores:
    """Gives a test URIs of one backend; what it makes there outside of folders goes when it ends.

    >>> stores("a"), stores("a"), stores()  # the same place twice, and one that is fresh
    """

    def __init__(self, kind: str, root: str) -> None:
        self.kind = kind
        self._root = root
        self._given: dict[str, None] = {}

    def __call__(self, name: str | None = None) -> str:
        uri = f"{self._root}/{uuid.uuid4() if name is None else name}.gs"
        self._given[uri] = None
        return uri

    def clear(self) -> None:
        """Deletes what is there; folders are pytest's to remove, as some tests leave damage in them."""
        if self.kind == "local":
            return
        for uri in self._given:
            if gs.exists(uri):
                gs.delete(uri)
