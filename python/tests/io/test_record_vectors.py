"""Fields of several values in records of NumPy: each is an attribute of vectors."""

from pathlib import Path

import numpy as np
import pytest

import gridstone as gs
from gridstone import io
from gridstone.errors import SchemaError, UnsupportedError

FIELDS = [("x", "i4"), ("pos", "f4", (3,)), ("m", "f8", (2, 2)), ("days", "M8[D]", (2,))]


def _records(*shape: int) -> np.ndarray:
    made, rng = np.zeros(shape, FIELDS), np.random.default_rng(7)
    made["x"] = np.arange(made.size).reshape(shape)
    made["pos"], made["m"] = rng.random((*shape, 3)), rng.random((*shape, 2, 2))
    made["days"] = rng.integers(0, 20_000, (*shape, 2)).astype("M8[D]")
    return made


def test_dense_files_behind_one_another(tmp_path: Path) -> None:
    first, second = _records(5, 4), _records(2, 4)
    for name, part in (("a", first), ("b", second)):
        np.save(tmp_path / f"{name}.npy", part)
    a = io.from_npy("mem://vectors", [tmp_path / "a.npy", tmp_path / "b.npy"], overwrite=True)
    assert [(attr.name, attr.dtype) for attr in a.schema.attrs] == [
        ("x", "int32"),
        ("pos", "float32[3]"),
        ("m", "float64[2,2]"),
        ("days", "datetime64[D][2]"),
    ]
    wanted, found = np.concatenate([first, second]), a[...]
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted.dtype.names)
    np.save(tmp_path / "c.npy", second)
    io.from_npy("mem://vectors", tmp_path / "c.npy", box=(slice(3, 5), slice(0, 4)))
    wanted[3:5] = second
    found = gs.open("mem://vectors")[...]
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted.dtype.names)


def test_sparse(tmp_path: Path) -> None:
    made = _records(6)
    made["x"] = [5, 3, 9, 1, 0, 7]
    np.save(tmp_path / "a.npy", made)
    found = io.from_npy("mem://sparse-vectors", tmp_path / "a.npy", ["x"], sparse=True, overwrite=True).read()
    order = np.argsort(made["x"])
    assert all(np.array_equal(found[name], made[name][order]) for name in made.dtype.names)


def test_what_no_vector_is_of_is_named(tmp_path: Path) -> None:
    cases: list[tuple[type[Exception], object, str]] = [
        (SchemaError, [("x", "i4"), ("b", "S3", (2,))], "field 'b': a vector is of numbers"),
        (SchemaError, [("x", "i4"), ("b", "U3", (2,))], "field 'b': a vector is of numbers"),
        (UnsupportedError, [("x", "i4"), ("b", [("c", "i4")])], "field 'b' holds records in records"),
        (UnsupportedError, [("x", "i4"), ("b", [("c", "i4")], (2,))], "field 'b' holds records in records"),
    ]
    for kind, fields, words in cases:
        np.save(tmp_path / "a.npy", np.zeros(3, fields))
        with pytest.raises(kind, match=words):
            io.from_npy("mem://no-vectors", tmp_path / "a.npy")
        assert not gs.exists("mem://no-vectors")
