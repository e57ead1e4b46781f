"""Copies with wider types take what the array does not."""

import numpy as np
import pyarrow as pa
import pytest
from places import Stores

import gridstone as gs
from gridstone import cli, io


def test_a_sparse_array_becomes_wider(stores: Stores) -> None:
    table = pa.table(
        {
            "x": pa.array([1, 2, 3], pa.int32()),
            "t": pa.array([0, 5, 9], pa.timestamp("s")),
            "v": pa.array([1, None, 3], pa.int32()),
            "f": pa.array([0.5, 1.5, 2.5], pa.float32()),
            "n": [7, 8, 9],
            "b": [True, False, True],
        }
    )
    a = io.from_arrow(stores("a"), table, ["x", "t"])
    a.meta["unit"] = "m"
    wide = {"x": "int64", "t": "datetime64[ms]", "v": "float64", "f": "float64", "n": "string", "b": "int8"}
    b = gs.copy(stores("a"), stores("b"), types=wide)
    assert isinstance(b, gs.Array)
    kinds = [dim.dtype for dim in b.schema.dims] + [attr.dtype for attr in b.schema.attrs]
    assert kinds == ["int64", "datetime64[ms]", "float64", "float64", "string", "int8"]
    found = b.read(order="row").to_arrow().to_pydict()
    assert found["v"] == [1.0, None, 3.0] and found["n"] == ["7", "8", "9"] and found["b"] == [1, 0, 1]
    assert found["f"] == [0.5, 1.5, 2.5] and found["x"] == [1, 2, 3] and dict(b.meta) == {"unit": "m"}
    assert b.schema.attr("v").nullable and not b.schema.attr("n").nullable and b.schema.capacity == a.schema.capacity
    old = a.read(order="row").to_arrow()
    assert found["t"] == old.column("t").to_pylist()


def test_an_integer_dimension_becomes_float_with_its_domain_and_tile(stores: Stores) -> None:
    schema = gs.Schema([gs.Dim("x", (-5, 99), 10)], [gs.Attr("v", "int8")], sparse=True, duplicates=True)
    a = gs.create(stores("a"), schema)
    a.write_cells({"x": [3, 3, 7]}, {"v": [1, 2, 3]})
    b = gs.copy(a, stores("b"), types={"x": "float64"})
    assert b.schema.dims == (gs.Dim("x", (-5.0, 99.0), 10.0, "float64"),) and b.schema.duplicates
    assert sorted(b.read().to_numpy()["v"].tolist()) == [1, 2, 3]
    io.from_arrow(stores("b"), pa.table({"x": [3.5], "v": pa.array([4], pa.int8())}))
    assert len(gs.open(stores("b")).read()) == 4


@pytest.mark.parametrize("tile", [None, 4])
def test_a_dense_array_becomes_wider(stores: Stores, tile: int | None) -> None:
    schema = gs.Schema(
        [gs.Dim("x", (0, 9), tile), gs.Dim("y", (-3, 6), tile)],
        [gs.Attr("v", "int16", fill=-1), gs.Attr("w", "float32", nullable=True)],
    )
    a = gs.create(stores("a"), schema)
    v = np.arange(24, dtype=np.int16).reshape(4, 6)
    w = np.ma.masked_equal(v.astype(np.float32), 3)
    a.write({"v": v, "w": w}, box={"x": (2, 5), "y": (-1, 4)})
    b = gs.copy(a, stores("b"), types={"v": "float64", "w": "float64"}, path="/")
    for name in ("v", "w"):
        assert np.ma.allequal(a[name][...], b[name][...]) and b[name].dtype == np.float64
        assert np.array_equal(np.ma.getmaskarray(a[name][...]), np.ma.getmaskarray(b[name][...]))
    assert b.schema.attr("v").fill == -1 and b.schema.dims == a.schema.dims


def test_texts_become_longer_and_the_command_line_says_so(stores: Stores) -> None:
    schema = gs.Schema([gs.Dim("g", dtype="string", max_bytes=8)], [gs.Attr("v", "int64")], sparse=True)
    gs.create(stores("a"), schema).write_cells({"g": ["b", "a"]}, {"v": [2, 1]})
    table = pa.table({"g": ["x" * 20], "v": [3]})
    with pytest.raises(
        gs.errors.InputError, match=r"row 0, column 'g'.*20 bytes.*`gridstone copy .* --max-bytes g=40`"
    ):
        io.from_arrow(stores("a"), table)
    b = gs.copy(stores("a"), stores("b"), max_bytes={"g": 40})
    io.from_arrow(stores("b"), table)
    b = gs.open(stores("b"))
    assert b.schema.dims[0].max_bytes == 40 and b.read().to_numpy()["g"].tolist() == ["a", "b", "x" * 20]
    if stores.kind == "local":
        assert cli.run(["copy", stores("a"), stores("c"), "--max-bytes", "g=64", "--type", "v=float64"]) == 0
        c = gs.open(stores("c"))
        assert c.schema.dims[0].max_bytes == 64 and c.schema.attrs[0].dtype == "float64"
        assert cli.run(["copy", stores("a"), stores("d"), "--max-bytes", "g=x"]) == 2
        assert cli.run(["copy", stores("a"), stores("d"), "--type", "g"]) == 2


def test_what_does_not_fit_leaves_nothing(stores: Stores) -> None:
    a = io.from_arrow(stores("a"), pa.table({"x": [1], "v": [2**53 + 1], "s": ["a"]}), ["x"])
    for options, error, word in (
        ({"types": {"v": "float64"}}, gs.errors.InputError, "'v'.*9007199254740993"),
        ({"types": {"v": "int8"}}, gs.errors.InputError, "'v'"),
        ({"types": {"s": "int8"}}, gs.errors.InputError, "'s' is string"),
        ({"types": {"z": "int8"}}, gs.errors.SchemaError, "no dimension or attribute 'z'"),
        ({"max_bytes": {"v": 8}}, gs.errors.InputError, "max_bytes is for dimensions"),
        ({"max_bytes": {"x": 8}}, gs.errors.InputError, "max_bytes is for dimensions of texts"),
        ({"types": {"v": "float64"}, "history": True}, gs.errors.InputError, "history="),
    ):
        with pytest.raises(error, match=word):
            gs.copy(a, stores("b"), **options) if "history" not in options else gs.copy(a.uri, stores("b"), **options)
        assert not gs.exists(stores("b")), options
    gs.create(stores("b"), a.schema, path="/there")
    with pytest.raises(gs.errors.ExistsError):
        gs.copy(a, stores("b"), target_path="/there", types={"v": "string"})
    with pytest.raises(gs.errors.InputError, match="'v'"):
        gs.copy(a, stores("b"), target_path="/new", types={"v": "float64"})
    assert [entry.name for entry in gs.ls(stores("b"))] == ["there"]
    made = gs.copy(a, stores("b"), target_path="/there", types={"v": "string"}, overwrite=True)
    assert made.read()["v"].tolist() == ["9007199254740993"] and made.path == "/there"
