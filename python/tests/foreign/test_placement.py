"""Where cells lie: the picture, what `info` tells, and that both are true."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs
from gridstone.cli import run
from gridstone.placement import BOTH, FILES, NOWHERE, STORE, placement
from gridstone.query.box import box_of, domain_of

h5py = pytest.importorskip("h5py")


@pytest.fixture
def attached(tmp_path: Path) -> gs.Array:
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file.create_dataset("e", data=np.arange(48.0).reshape(6, 8), chunks=(2, 2))
    whole = gs.attach(tmp_path / "b.gs", tmp_path / "run.h5", "/e")
    assert isinstance(whole, gs.Array)
    return whole


def test_squares_say_where_each_tile_lies(attached: gs.Array) -> None:
    a = attached
    tile = [int(dim.tile) for dim in a.schema.dims]
    found = placement(a, ("d1", "d0"), domain_of(a.schema))
    assert (found.squares == FILES).all()
    assert found.edges == ((0.0, 8.0), (0.0, 6.0))
    a[0, 0] = 1.0
    found = placement(a, ("d1", "d0"), domain_of(a.schema))
    assert found.squares[0, 0] == BOTH
    a[: tile[0], : tile[1]] = 2.0
    assert placement(a, ("d1", "d0"), domain_of(a.schema)).squares[0, 0] == STORE
    a.consolidate("all")
    assert (placement(a, ("d1", "d0"), domain_of(a.schema)).squares == STORE).all()


def test_squares_are_those_of_a_model(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file.create_dataset("e", data=np.zeros((8, 12, 3)), chunks=(2, 3, 3), maxshape=(None, None, 3))
    a = gs.attach(tmp_path / "a.gs", tmp_path / "run.h5", "/e")
    assert isinstance(a, gs.Array)
    tile = [int(dim.tile) for dim in a.schema.dims]
    where = np.full(a.shape, FILES, np.uint8)
    for _ in range(5):
        low = [int(random.integers(0, size)) for size in a.shape]
        sides = [int(random.integers(1, size + 1)) for size in a.shape]
        part = tuple(slice(at, at + side) for at, side in zip(low, sides, strict=True))
        a[part] = 1.0
        where[part] = STORE
        box = box_of(a.schema, {"d0": (2, 7), "d2": (0, 2)})
        for names, seen in ((("d1", "d0"), domain_of(a.schema)), (("d0", "d1"), box)):
            axes = [a.dims.index(name) for name in names]
            lows = [int(bound[0]) for bound in seen.bounds]
            cut = where[tuple(slice(low, low + size) for low, size in zip(lows, seen.shape, strict=True))]
            squares = placement(a, names, seen).squares
            for y in range(squares.shape[0]):
                for x in range(squares.shape[1]):
                    at: list[Any] = [slice(None)] * 3
                    for axis, place in zip(axes, (x, y), strict=True):
                        at[axis] = slice(place * tile[axis], (place + 1) * tile[axis])
                    kinds = int(np.bitwise_or.reduce(cut[tuple(at)].ravel()))
                    # What newer boxes hide in part may still be counted, and what they hide whole is not.
                    assert squares[y, x] & kinds == kinds


def test_what_was_never_written_lies_nowhere(tmp_path: Path) -> None:
    a = gs.create(
        tmp_path / "a.gs", gs.Schema([gs.Dim("y", (0, 9), 5), gs.Dim("x", (0, 9), 5)], [gs.Attr("v", "int8")])
    )
    assert isinstance(a, gs.Array)
    a[:5, :5] = 1
    assert placement(a, ("x", "y"), domain_of(a.schema)).squares.tolist() == [[STORE, NOWHERE], [NOWHERE, NOWHERE]]
    sparse = gs.create(
        tmp_path / "s.gs", gs.Schema([gs.Dim("y", (0, 9)), gs.Dim("x", (0, 9))], [gs.Attr("v", "int8")], sparse=True)
    )
    with pytest.raises(gs.errors.UnsupportedError, match="sparse"):
        placement(sparse, ("x", "y"), domain_of(sparse.schema))


def test_the_command_line_draws_and_tells(
    attached: gs.Array, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attached[0, 0] = 1.0
    picture = tmp_path / "where.png"

    def told(*arguments: str) -> str:
        capsys.readouterr()
        assert run(arguments) == 0
        return capsys.readouterr().out

    told("plot", attached.uri, str(picture), "--placement")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "attached: 48 cells lie outside the store, in 1 files of" in told("info", attached.uri)
    found = json.loads(told("info", attached.uri, "--json"))
    assert (found["attached"]["cells"], found["attached"]["files"]) == (48, 1)
    attached.consolidate("all")
    assert "attached:" not in told("info", attached.uri)
