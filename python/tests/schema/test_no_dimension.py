"""Arrays of no dimension, and of length 0."""

import pickle
import uuid

import numpy as np
import pytest

import gridstone as gs


@pytest.fixture
def uri() -> str:
    return f"mem://{uuid.uuid4()}"


def test_a_single_value_is_an_array_of_no_dimension(uri: str) -> None:
    a = gs.array(uri, 3.5)
    assert (a.shape, a.ndim, a.size, a.dims, a.domain) == ((), 0, 1, (), ())
    assert a[()] == 3.5 and a[...].shape == () and float(np.asarray(a)) == 3.5 and a.read()["value"] == 3.5
    a[...] = 4.5
    a.write(5.5)
    assert a["value"][()] == 5.5 and a.at(version=2)[()] == 3.5
    assert list(a.read().to_pandas().value) == [5.5] and len(a.read(where="value > 9")) == 0
    a.consolidate("all")
    assert gs.open(uri)[()] == 5.5 and gs.verify(uri).ok
    a.delete((...,))
    assert a[()] == 0.0


def test_what_has_positions_is_refused_and_says_what_to_do(uri: str) -> None:
    a = gs.array(uri, np.int32(7))
    with pytest.raises(TypeError, match="no dimension"):
        len(a)
    with pytest.raises(TypeError):
        list(a)
    for look in (lambda: a[0], lambda: a.vindex[()], lambda: a.append(1), lambda: a.resize((3,))):
        with pytest.raises((gs.BoundsError, gs.InputError)):
            look()
    for look in (lambda: a.points({}), lambda: a.write_cells({}, {"value": [1]})):
        with pytest.raises(gs.InputError, match=r"a\[\(\)\]"):
            look()
    with pytest.raises(gs.InputError, match="shape"):
        a.write(np.zeros(2))
    assert a[()] == 7


def test_its_schema_has_no_dimensions_and_survives(uri: str) -> None:
    schema = gs.Schema([], [gs.Attr("v", "string"), gs.Attr("w", "int8", nullable=True)])
    a = gs.create(uri, schema)
    a.write({"v": "text", "w": np.ma.masked})
    assert a["v"][()] == "text" and a["w"][()] is np.ma.masked
    assert gs.Schema.from_json(a.schema.to_json()) == schema == pickle.loads(pickle.dumps(a.schema))
    gs.copy(uri, f"{uri}-2")
    assert gs.open(f"{uri}-2")["v"][()] == "text"
    with pytest.raises(gs.SchemaError, match="no dimension"):
        gs.Schema([], [gs.Attr("v", "int8")], sparse=True)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (4, 0, 2), (0, 0)])
def test_a_side_of_length_0_grows_by_appends(uri: str, shape: tuple[int, ...]) -> None:
    a = gs.array(uri, np.zeros(shape, "int16"))
    assert a.shape == a[...].shape == shape and a.size == 0 and a.dtype == np.int16
    axis = shape.index(0)
    block = np.ones([2 if i == axis else n for i, n in enumerate(shape)], "int16")
    if shape.count(0) > 1:
        with pytest.raises(gs.GridstoneError):
            a.append(np.ones((2, 5), "int16"))
        a.write(np.ones((2, 5), "int16"), {"d0": (0, 1), "d1": (0, 4)}, grow=True)
        assert (a[...] == np.ones((2, 5))).all()
        return
    a.append(block, axis)
    assert np.array_equal(a[...], block) and a.at(version=1).shape == shape


def test_an_empty_side_that_is_closed_takes_a_box_only_with_grow(uri: str) -> None:
    a = gs.create(uri, gs.Schema([gs.Dim("x", (0, -1))], [gs.Attr("v", "int64")]))
    assert a.schema.dim("x").domain == (0, -1)
    with pytest.raises(gs.BoundsError, match="grow=True"):
        a.write([1, 2], {"x": (0, 1)})
    with pytest.raises(gs.BoundsError, match="no coordinate yet"):
        a.write_cells({"x": [0]}, {"v": [1]})
    a.write([1, 2], {"x": (3, 4)}, grow=True)
    assert a.domain == ((3, 4),)
