"""Handles of stored arrays given as values: they are read with their nulls, and written in one commit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gridstone as gs
from gridstone.errors import InputError, UnsupportedError
from gridstone.indexing import dense

VALUES = np.arange(12.0).reshape(3, 4)
MASKED = np.ma.MaskedArray(VALUES, mask=VALUES % 5 == 0)


def shown(found: Any) -> list[Any]:
    """Values as a list, None where null."""
    return np.where(np.ma.getmaskarray(found), None, np.ma.getdata(found).astype(object)).tolist()


@pytest.fixture
def source() -> gs.Array:
    """A nullable attribute "v" with nulls, over which lie values other than 0."""
    return gs.array("mem://source", MASKED, name="v", overwrite=True)


def made(source: gs.Array, *attrs: gs.Attr, nullable: bool = True) -> gs.Array:
    """An array of the same dimensions."""
    found = attrs or (gs.Attr("v", "float64", nullable=nullable),)
    return gs.create("mem://target", gs.Schema(source.schema.dims, found), overwrite=True)


WAYS: dict[str, Callable[[gs.Array, gs.Array], Any]] = {
    "a view to a view": lambda b, a: b["v"].__setitem__(..., a["v"]),
    "a view by name": lambda b, a: b.__setitem__("v", a["v"]),
    "a view to an array": lambda b, a: b.__setitem__(..., a["v"]),
    "an array to a view": lambda b, a: b["v"].__setitem__(..., a),
    "an array to an array": lambda b, a: b.__setitem__(slice(None), a),
    "a dict": lambda b, a: b.__setitem__(..., {"v": a["v"]}),
    "write of an array": lambda b, a: b.write(a),
    "write of a view": lambda b, a: b.write(a["v"]),
    "write of a dict of views": lambda b, a: b.write({"v": a["v"]}),
    "write of a dict of arrays": lambda b, a: b.write({"v": a}),
    "write of a box": lambda b, a: b.write({"v": a["v"]}, {"d0": (0, 2), "d1": slice(0, 4)}),
    "write of a dict of results": lambda b, a: b.write({"v": a.read()}),
    "write of a result": lambda b, a: b.write(a.read()),
    "coordinates": lambda b, a: b.loc.__setitem__((slice(0, 3), slice(0, 4)), a["v"]),
    "lists of positions": lambda b, a: b["v"].__setitem__([0, 1, 2], a["v"]),
    "a mask": lambda b, a: b["v"].__setitem__(np.ones(3, bool), a["v"]),
    "oindex": lambda b, a: b.oindex.__setitem__(([0, 1, 2], slice(None)), a["v"]),
    "vindex": lambda b, a: b["v"].vindex.__setitem__(([[0], [1], [2]], [0, 1, 2, 3]), a["v"]),
    "a receipt": lambda b, a: gs.commit(b.uri, [b.write(a["v"], commit=False)]) and b.refresh(),
}


@pytest.mark.parametrize("way", WAYS)
def test_nulls_of_a_handle_stay_null(source: gs.Array, way: str) -> None:
    b = made(source)
    WAYS[way](b, source)
    assert shown(b["v"][...]) == shown(MASKED)
    assert b.read(where="v is null")["d0"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("way", WAYS)
def test_nulls_of_a_handle_are_refused_where_none_may_be(source: gs.Array, way: str) -> None:
    b = made(source, nullable=False)
    before = b.version
    with pytest.raises(InputError, match=r"not nullable.*fill it"):
        WAYS[way](b, source)
    assert b.refresh() == before
    source["v"][...] = VALUES
    WAYS[way](b, source)
    assert b["v"][...].tolist() == VALUES.tolist()


def test_large_handles_are_written_piece_by_piece(source: gs.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "_WHOLE_BYTES_MAX", 0)
    monkeypatch.setattr(dense, "_PIECE_BYTES", 16)
    for layout in ({}, {"tile_order": "col", "cell_order": "col"}):
        dims = [gs.Dim("x", (-1, 1), 2), gs.Dim("y", (10, 13), 3)]
        b = gs.create(
            "mem://pieces", gs.Schema(dims, [gs.Attr("v", "float64", nullable=True)], **layout), overwrite=True
        )
        before = b.version
        assert b.write(source, message="all", commit_key=f"k{len(layout)}") == before + 1 == b.version
        assert shown(b[...]) == shown(MASKED) and b.history()[-1].message == "all"
        assert b.write(source, commit_key=f"k{len(layout)}") == before + 1
        b["v"][...] = source["v"]
        b["v"][1:3, 1:] = source["v"][1:3, 1:]
        b.write({"v": source["v"]})
        assert shown(b[...]) == shown(MASKED) and len(b.fragments) >= 4
        receipt = b.write(source, commit=False)
        assert gs.commit(b.uri, [receipt]) == b.refresh()
    b = made(source, nullable=False)
    with pytest.raises(InputError, match="not nullable"):
        b.write(source)
    assert b.version == b.refresh() and b.fragments.num_rows == 0
    with pytest.raises(InputError, match="shape"):
        b.write(source, {"d0": (0, 1)})
    assert shown(gs.array("mem://copied", source, overwrite=True)[...]) == shown(MASKED)


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_handles_are_written_in_transactions_and_to_themselves(
    source: gs.Array, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(dense, "_WHOLE_BYTES_MAX", most)
    monkeypatch.setattr(dense, "_PIECE_BYTES", 16)
    b = made(source)
    with gs.transaction(b.uri) as tx:
        inside = tx["/"]
        inside.write(source)
        inside["v"][...] = inside["v"]
        assert shown(inside["v"][...]) == shown(MASKED)
    b.refresh()
    b["v"][...] = b["v"]
    b[0:2] = b.at(version=b.version)[1:3]
    assert shown(b[...]) == [*shown(MASKED)[1:], shown(MASKED)[2]]
    again = gs.array(source.uri, source, name="v", overwrite=True)
    assert shown(again[...]) == shown(MASKED)
    late = again.at(version=again.version)
    again[...] = 0
    b.write(late)
    assert shown(b[...]) == shown(MASKED), "a handle is written as it shows its version"


def test_an_array_of_several_attributes_is_written_by_name(source: gs.Array) -> None:
    attrs = [gs.Attr("v", "float64", nullable=True), gs.Attr("s", "string", nullable=True), gs.Attr("l", "list[int32]")]
    a, b = made(source, *attrs), gs.create("mem://b", gs.Schema(source.schema.dims, attrs), overwrite=True)
    a["v"][...] = source
    a["s"][0] = np.array(["a", None, "c", None], object)
    a["l"][0, 0] = [1, 2]
    b.write(a)
    for name in ("v", "s"):
        assert shown(b[name][...]) == shown(a[name][...])
    assert b["l"][0, 0].tolist() == [1, 2]
    with pytest.raises(InputError, match=r"say which one|attributes"):
        made(source, gs.Attr("other", "float64"))["other"][...] = a
    with pytest.raises(InputError, match="dict"):
        b.write(a["v"])
    copied = gs.array("mem://copied", a, overwrite=True)
    assert copied.schema_names == ["v", "s", "l"] and shown(copied["s"][...]) == shown(a["s"][...])


def test_cells_are_written_from_handles(source: gs.Array) -> None:
    line = gs.array("mem://line", np.ma.array([1.0, 2, 3], mask=[0, 1, 0]), name="v", overwrite=True)
    places = gs.array("mem://places", np.array([4, 5, 6]), name="x", overwrite=True)
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "float64", nullable=True)], sparse=True)
    s = gs.create("mem://sparse", schema, overwrite=True)
    s.write_cells({"x": places["x"]}, {"v": line["v"]})
    assert s.read()["x"].tolist() == [4, 5, 6] and shown(s.read()["v"]) == [1, None, 3]
    s.write_cells(places["x"], line)
    assert shown(s.read()["v"]) == [1, None, 3]
    s.write_cells({"x": [7, 8, 9]}, {"v": s["v"]})
    assert shown(s["v"][...]) == [1, None, 3, 1, None, 3]
    with s.writer() as w:
        w.append({"x": [1, 2, 3]}, {"v": line["v"]})
    assert shown(s["v"][...])[:3] == [1, None, 3]
    dense_one = gs.create("mem://dense", gs.Schema([gs.Dim("x", (0, 2))], [gs.Attr("v", "float64", nullable=True)]))
    with dense_one.writer() as w:
        w.append(line["v"])
    assert shown(dense_one[...]) == [1, None, 3]
    with pytest.raises(UnsupportedError, match="dense"):
        dense_one.write(s)
    with pytest.raises(InputError, match="not nullable"):
        gs.create("mem://strict", gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "float64")], sparse=True)).write_cells(
            [1, 2, 3], line["v"]
        )


@pytest.mark.parametrize(
    "dtype", ["int8", "float32", "bool", "datetime64[s]", "string", "bytes", "int16[2]", "bytes[3]"]
)
def test_arrays_are_made_of_handles_with_their_nulls(dtype: str) -> None:
    a = gs.create("mem://kinds", gs.Schema([gs.Dim("x", (5, 8))], [gs.Attr("v", dtype, nullable=True)]), overwrite=True)
    value: Any = {"string": "ab", "bool": True, "bytes": b"ab", "int16[2]": [1, 2], "bytes[3]": b"abc"}.get(dtype, 1)
    a["v"][1:3] = value if dtype != "int16[2]" else np.array([value, value])
    for handle in (a, a["v"]):
        b = gs.array("mem://made", handle, overwrite=True)
        assert b.schema_names == ["value"] and b.schema.attr("value").nullable
        found, wanted = b["value"][...], a["v"][...]
        assert np.ma.getmaskarray(found).tolist() == np.ma.getmaskarray(wanted).tolist()
        assert found.compressed().tolist() == wanted.compressed().tolist()


KINDS = ["int8", "uint64", "float32", "bool", "datetime64[ns]", "string", "bytes", "int16[2]", "bytes[3]", "list[int8]"]


@pytest.mark.parametrize("dtype", KINDS)
def test_lists_of_what_was_read_are_written_with_their_nulls(dtype: str) -> None:
    dims = [gs.Dim("x", (0, 2), 2), gs.Dim("y", (0, 3))]
    one: Any = {
        "string": "ab", "bytes": b"a\0", "int16[2]": [1, 2], "bytes[3]": b"abc", "bool": True, "list[int8]": [1, 2],
        "datetime64[ns]": np.datetime64("2020-01-01T00:00:00.000000001"),
    }.get(dtype, 1)  # fmt: skip
    schema = gs.Schema(dims, [gs.Attr("v", dtype, nullable=True)])
    a, b = (gs.create(f"mem://{name}", schema, overwrite=True) for name in ("listed", "again"))
    for place in ((0, 0), (0, 1), (1, 3), (2, 2)):
        a["v"][place] = one
    wanted = a.read().to_arrow()
    ways: list[Callable[[], Any]] = [
        lambda: b.write(list(a["v"])),
        lambda: b["v"].__setitem__(..., tuple(a["v"])),
        lambda: b.__setitem__(slice(None), [row for row in a]),
        lambda: b.write({"v": [[a["v"][i, j] for j in range(4)] for i in range(3)]}),
        lambda: [b["v"].__setitem__((i, j), a["v"][i, j]) for i in range(3) for j in range(4)],
        lambda: b.write_cells(np.argwhere(np.ones((3, 4))), [a["v"][i, j] for i in range(3) for j in range(4)]),
    ]
    if not dtype.startswith("list"):  # NumPy itself makes an empty array of a masked list.
        ways.append(lambda: [b["v"].__setitem__(i, list(a["v"][i])) for i in range(3)])
    for write in ways:
        b.delete((...,))
        write()
        assert b.read().to_arrow() == wanted
    if dtype not in ("int16[2]", "list[int8]"):
        made = gs.array("mem://made", list(a["v"]), overwrite=True)
        assert np.ma.getmaskarray(made[...]).tolist() == np.ma.getmaskarray(a[...]).tolist()
    strict = gs.create("mem://strict", gs.Schema(dims, [gs.Attr("v", dtype)]), overwrite=True)
    with pytest.raises(InputError, match="not nullable"):
        strict.write(list(a["v"]))
    with pytest.raises(InputError, match="not nullable"):
        strict["v"][0, 0] = np.ma.masked


# NumPy's back door.


def test_numpy_takes_a_handle_without_nulls_alone(source: gs.Array) -> None:
    for call in (np.asarray, np.array, np.sort, np.isnan, np.median, lambda x: np.add(x, 1)):
        for handle in (source, source["v"]):
            with pytest.raises(UnsupportedError, match=r"a\['v'\]\[\.\.\.\].*to_numpy\(\)"):
                call(handle)
    for handle in (source, source["v"]):
        # These are methods of handles, which leave nulls out.
        assert np.isclose(np.mean(handle), MASKED.mean()) and np.isclose(np.sum(handle), MASKED.sum())
    source["v"][...] = VALUES
    for handle in (source, source["v"]):
        assert type(np.asarray(handle)) is np.ndarray and np.asarray(handle).tolist() == VALUES.tolist()
        assert np.asarray(handle, np.float32).dtype == np.float32
        assert np.mean(handle) == VALUES.mean()
        with pytest.raises(ValueError, match="copy"):
            np.array(handle, copy=False)


def test_functions_of_masked_arrays_see_the_nulls(source: gs.Array) -> None:
    for handle in (source, source["v"]):
        for name in ("mean", "sum", "max", "min", "std", "var", "count", "argmax", "average", "compressed", "cumsum"):
            call: Any = getattr(np.ma, name)
            assert np.ma.allequal(call(handle), call(MASKED)), name
        for call in (np.ma.array, np.ma.asarray, np.ma.asanyarray, np.ma.MaskedArray, np.ma.copy):
            assert shown(call(handle)) == shown(MASKED)
        assert np.ma.getmaskarray(handle).tolist() == MASKED.mask.tolist() and np.ma.is_masked(handle)
        more = np.zeros((3, 4), bool)
        more[0, 1] = True
        assert np.ma.array(handle, mask=more).mask.tolist() == (MASKED.mask | more).tolist()
        assert np.ma.array(handle, dtype=np.float32, copy=True).dtype == np.float32


OTHERS = {
    "add": lambda x: (x, 1),
    "allequal": lambda x: (x, x),
    "apply_along_axis": lambda x: (np.ma.sum, 0, x),
    "choose": lambda x: (np.zeros((3, 4), int), [x, x]),
    "clip": lambda x: (x, 1, 2),
    "concatenate": lambda x: ([x, x],),
    "dot": lambda x: (x, VALUES.T),
    "masked_equal": lambda x: (x, 3),
    "masked_where": lambda x: (VALUES > 3, x),
    "multiply": lambda x: (x, 2),
    "reshape": lambda x: (x, (12,)),
    "stack": lambda x: ([x, x],),
    "vstack": lambda x: ([x, x],),
    "where": lambda x: (VALUES > 3, x, x),
}
PLAIN = ("corrcoef", "diff", "filled", "getdata", "log", "masked_invalid", "median", "ravel", "round", "sort", "sqrt")


@pytest.mark.parametrize("name", [*OTHERS, *PLAIN, "transpose", "unique"])
def test_no_function_of_masked_arrays_loses_a_null(source: gs.Array, name: str) -> None:
    arguments = OTHERS.get(name, lambda x: (x,))
    call: Any = getattr(np.ma, name)
    wanted = call(*arguments(MASKED))
    try:
        found = call(*arguments(source["v"]))
    except UnsupportedError as error:
        assert "[...]" in str(error) and ".to_numpy()" in str(error)
    else:
        assert np.ma.getmaskarray(found).tolist() == np.ma.getmaskarray(wanted).tolist()
        assert np.ma.filled(found, -1).tolist() == np.ma.filled(wanted, -1).tolist()
