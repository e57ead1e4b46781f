"""Two transactions that look beyond the end of an array, find nothing and write there: one of them commits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gridstone as gs

LOOKS: dict[str, Callable[[Any], object]] = {
    "a condition": lambda a: a.read(where="x > 99"),
    "a slice of coordinates": lambda a: a.read((slice(100, None),)),
    "a stream": lambda a: list(a.scan(box=(slice(100, None),))),
    "a delete": lambda a: a.delete(box=(slice(100, None),), where="v >= 0"),
    "everything": lambda a: a.read(),
    "a shape": lambda a: a.shape,
}
POSITIONS: dict[str, Callable[[Any], object]] = {
    "oindex": lambda a: a.oindex[[-1]],
    "vindex": lambda a: a.vindex[[-1]],
    "a mask": lambda a: a.vindex[np.arange(100) == 99],
    "a position": lambda a: a[-1],
}


def both(uri: str, isolation: str, look: Callable[[Any], object]) -> None:
    """Two transactions that look and write; the second one to commit is a conflict."""
    pair = [gs.transaction(uri, isolation=isolation) for _ in range(2)]
    for value, tx in enumerate(pair):
        look(tx["/"])
        tx["/"].write_cells({"x": np.arange(100, 110)}, np.full(10, value), grow=True)
    pair[1].commit()
    with pytest.raises(gs.ConflictError):
        pair[0].commit()


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
@pytest.mark.parametrize("look", LOOKS)
def test_of_two_that_looked_and_wrote_cells_one_commits(isolation: str, look: str) -> None:
    uri = f"mem://looks-{isolation}-{look.replace(' ', '-')}"
    gs.create(uri, gs.Schema([gs.Dim("x", (0, 99))], [gs.Attr("v", "int64")], sparse=True))
    both(uri, isolation, LOOKS[look])
    assert gs.open(uri).read()["v"].tolist() == [1] * 10


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
@pytest.mark.parametrize("look", POSITIONS)
def test_of_two_that_looked_at_the_end_and_appended_one_commits(isolation: str, look: str) -> None:
    uri = f"mem://positions-{isolation}-{look.replace(' ', '-')}"
    gs.create(uri, gs.Schema([gs.Dim("x", (0, 99))], [gs.Attr("v", "int64")]))
    both(uri, isolation, POSITIONS[look])
    assert gs.open(uri)[100:].tolist() == [1] * 10
