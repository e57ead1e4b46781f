"""Each cell of the guide's table of anomalies: what writers may do to each other outside of transactions, in them, and
in serializable ones. The table is read from the guide, so that it says what happens.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import gridstone as gs
from gridstone.errors import ConflictError

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "transactions.md"
WAYS = ["plain", "default", "serializable"]
SCHEMA = gs.Schema([gs.Dim("x", (0, 9), 10)], [gs.Attr("v", "int64")])
SPARSE = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")], sparse=True)


def told() -> dict[tuple[str, str], bool]:
    """Whether an anomaly happens, by its name and the way to read and write, as the guide has it."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first = lines.index("| anomaly | plain | default | serializable |")
    found: dict[tuple[str, str], bool] = {}
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert set(cells) <= {"no", "**yes**"}
        found |= {(name, way): cell == "**yes**" for way, cell in zip(WAYS, cells, strict=True)}
    return found


class Client:
    """Somebody who reads and writes in one way, and commits at the end or at once."""

    def __init__(self, uri: str, way: str) -> None:
        isolation = "serializable" if way == "serializable" else "snapshot"
        self.uri, self.tx = uri, None if way == "plain" else gs.transaction(uri, isolation=isolation)
        self.arrays: dict[str, gs.Array] = {}

    def at(self, path: str) -> gs.Array:
        """The array at a path, opened when it is first asked for."""
        if self.tx is not None:
            return self.tx[path]
        if path not in self.arrays:
            found = gs.open(self.uri, path=path, mode="r+")
            assert isinstance(found, gs.Array)
            self.arrays[path] = found
        return self.arrays[path]

    def commit(self) -> bool:
        """Whether it stood."""
        if self.tx is not None:
            try:
                self.tx.commit()
            except ConflictError:
                return False
        return True


def now(uri: str, path: str) -> list[int]:
    """What an array holds by now."""
    found = gs.open(uri, path=path)
    assert isinstance(found, gs.Array)
    return list(found[...])


@contextlib.contextmanager
def others(uri: str) -> Iterator[gs.Transaction]:
    """A commit of others, done at the end of the block."""
    with gs.transaction(uri) as tx:
        yield tx


def dirty_write(uri: str, way: str) -> bool:
    """Two write the same cells of two arrays: whether both are left in part."""
    mine, theirs = Client(uri, way), Client(uri, way)
    for client, value in [(mine, 1), (theirs, 2)]:
        client.at("/a")[...] = value
    if mine.tx is not None and theirs.tx is not None:
        mine.at("/b")[...], theirs.at("/b")[...] = 1, 2
    assert mine.commit()
    assert theirs.commit()
    left = {tuple(now(uri, path)) for path in (["/a"] if way == "plain" else ["/a", "/b"])}
    return left not in ({(1,) * 10}, {(2,) * 10})


def dirty_read(uri: str, way: str) -> bool:
    """Whether something is read that was given up later."""
    mine = Client(uri, way)
    theirs = gs.transaction(uri)
    theirs["/a"][3] = 7
    seen = mine.at("/a")[3]
    theirs.abort()
    return bool(seen == 7)


def fractured_read(uri: str, way: str) -> bool:
    """Whether a part of a commit over two arrays is seen."""
    mine = Client(uri, way)
    first = mine.at("/a")[3]
    with others(uri) as tx:
        tx["/a"][3] = tx["/b"][3] = 7
    return bool(first != mine.at("/b")[3])


def non_repeatable_read(uri: str, way: str) -> bool:
    """Whether a cell that is read twice has changed."""
    mine = Client(uri, way)
    first = mine.at("/a")[3]
    with others(uri) as tx:
        tx["/a"][3] = 7
    return bool(first != mine.at("/a")[3])


def phantom(uri: str, way: str) -> bool:
    """Whether a box that is read twice has other cells."""
    mine = Client(uri, way)
    first = len(mine.at("/cells").read({"x": (2, 5)}))
    with others(uri) as tx:
        tx["/cells"].write_cells({"x": [4]}, {"v": [7]})
    return first != len(mine.at("/cells").read({"x": (2, 5)}))


def read_skew(uri: str, way: str) -> bool:
    """Whether two arrays whose cells are equal at every moment, but between two commits of others, are seen apart."""
    mine = Client(uri, way)
    first = mine.at("/a")[3]
    for path in ["/b", "/a"]:
        with others(uri) as tx:
            tx[path][3] = 7
    return bool(first != mine.at("/b")[3])


def lost_update(uri: str, way: str) -> bool:
    """Whether of two that count and stand one is not counted."""
    clients = [Client(uri, way), Client(uri, way)]
    seen = [client.at("/a")[3] for client in clients]
    for client, value in zip(clients, seen, strict=True):
        client.at("/a")[3] = value + 1
    stood = [client.commit() for client in clients]
    assert stood[0]
    return now(uri, "/a")[3] != sum(stood)


def write_skew(uri: str, way: str) -> bool:
    """One of two cells is to stay 1; two look at both, and each clears its own: whether none stays."""
    with others(uri) as tx:
        tx["/a"][0:2] = 1
    clients = [Client(uri, way), Client(uri, way)]
    both = [np.asarray(client.at("/a")[0:2]).sum() for client in clients]
    for cell, client in enumerate(clients):
        if both[cell] == 2:
            client.at("/a")[cell] = 0
    assert clients[0].commit()
    clients[1].commit()
    return now(uri, "/a")[0:2] == [0, 0]


ANOMALIES: dict[str, Callable[[str, str], bool]] = {
    "dirty write": dirty_write,
    "dirty read": dirty_read,
    "fractured read": fractured_read,
    "non-repeatable read": non_repeatable_read,
    "phantom": phantom,
    "read skew": read_skew,
    "lost update": lost_update,
    "write skew": write_skew,
}


def test_the_table_names_each_anomaly_and_the_guide_explains_it() -> None:
    assert [name for name, way in told() if way == "plain"] == list(ANOMALIES)
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"- **{name.capitalize()}**: " in text for name in ANOMALIES)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ANOMALIES)
def test_the_table_says_what_happens(name: str, way: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "store.gs")
    for path, schema in [("/a", SCHEMA), ("/b", SCHEMA), ("/cells", SPARSE)]:
        gs.create(uri, schema, path=path)
    assert ANOMALIES[name](uri, way) == told()[name, way]
