"""Where the stores of a test are: in a folder, in memory, or in a bucket."""

import shutil
import tempfile
import uuid
from pathlib import Path

from buckets import BUCKET

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


class Anywhere:
    """Gives a machine of Hypothesis fresh URIs of any kind, for as long as it lives."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="gridstone-machine-")
        self._given: list[str] = []

    def __call__(self, kind: str) -> str:
        root = {"local": self._folder, "memory": "mem:/", "bucket": f"{BUCKET}/machine"}[kind]
        self._given.append(f"{root}/{uuid.uuid4().hex}.gs")
        return self._given[-1]

    def clear(self) -> None:
        """Leaves nothing of what was made there, also where a rule has failed half way."""
        for uri in self._given:
            if gs.exists(uri):
                gs.delete(uri)
        shutil.rmtree(self._folder)


def kind_of(uri: str) -> str:
    """What kind of store is at a URI, in a word."""
    return uri.partition(":")[0] if "://" in uri else "local"


def data_files(uri: str) -> list[str]:
    """The files that a store in a folder keeps cells in; of other stores nobody can look, so none."""
    return [] if "://" in uri else sorted(path.name for path in (Path(uri) / "_data").iterdir())
