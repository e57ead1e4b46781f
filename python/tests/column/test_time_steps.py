"""Times that are counted in several units at once: `datetime64[6h]`, `timedelta64[15m]`."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import gridstone as gs

STEPS = np.arange(10).astype("datetime64[6h]")


def test_a_dimension_has_a_position_for_each_step() -> None:
    domain = (np.datetime64("2024-01-01", "6h"), np.datetime64("2024-01-03T18", "6h"))
    dim = gs.Dim("t", domain, dtype="datetime64[6h]", tile=4)
    assert (dim.dtype, dim.tile) == ("datetime64[6h]", np.timedelta64(4, "6h"))
    a = gs.create("mem://steps-dense", gs.Schema([dim], [gs.Attr("v", "int32")]))
    a[...] = np.arange(12, dtype="int32")
    assert a.shape == (12,)
    reopened = gs.open("mem://steps-dense")
    assert reopened.schema.dims[0] == dim
    found = a.read({"t": (np.datetime64("2024-01-02"), np.datetime64("2024-01-02T18"))})
    assert found["v"].tolist() == [4, 5, 6, 7]


def test_values_are_numpys_and_arrows_in_a_unit_that_it_has() -> None:
    schema = gs.Schema(
        [gs.Dim("x", (0, 9))], [gs.Attr("t", "datetime64[6h]"), gs.Attr("w", "timedelta64[15m]", nullable=True)]
    )
    a = gs.create("mem://steps-values", schema)
    lengths = np.arange(10).astype("timedelta64[15m]")
    a.write({"t": STEPS, "w": lengths})
    found = a.read()
    assert found["t"].dtype == np.dtype("datetime64[6h]") and (found["t"] == STEPS).all()
    assert np.ma.getdata(found["w"]).dtype == np.dtype("timedelta64[15m]")
    table = found.to_arrow()
    assert table.schema.field("t").type == pa.timestamp("s") and table.schema.field("w").type == pa.duration("s")
    assert (table.column("t").to_numpy() == STEPS.astype("datetime64[s]")).all()
    # Arrow's values, which are on the steps, come back; others are refused.
    a.write({"t": pa.array(STEPS.astype("datetime64[s]"))})
    assert (a["t"][...] == STEPS).all()
    with pytest.raises(gs.InputError, match="t"):
        a.write({"t": pa.array(STEPS.astype("datetime64[s]") + 1)})


def test_conditions_compare_steps_with_any_time() -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("t", "datetime64[6h]")], sparse=True)
    a = gs.create("mem://steps-where", schema)
    a.write_cells({"x": np.arange(10)}, {"t": STEPS})
    for where in ("t >= '1970-01-02T05:59:59'", "t >= timestamp '1970-01-02T06'"):
        assert a.read(where=where)["x"].tolist() == [5, 6, 7, 8, 9]
    assert a.read(where=gs.col("t") == np.datetime64(3, "6h"))["x"].tolist() == [3]


@pytest.mark.parametrize("name", ["datetime64[6h]", "timedelta64[15m]", "datetime64[10Y]", "list[datetime64[6h]]"])
def test_names_survive(name: str, tmp_path: Path) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("t", name)])
    gs.create(str(tmp_path / "s"), schema)
    assert gs.open(str(tmp_path / "s")).schema.attrs[0].dtype == name


def test_dimensions_are_renamed() -> None:
    a = gs.create("mem://renamed", gs.Schema([gs.Dim("x", (0, 9)), gs.Dim("y", (0, 9))], [gs.Attr("v", "int32")]))
    a[...] = np.arange(100, dtype="int32").reshape(10, 10)
    first = a.version
    a.alter(rename={"x": "lat", "y": "x"})
    assert [dim.name for dim in a.schema.dims] == ["lat", "x"]
    assert a.read({"lat": (3, 3), "x": (4, 4)})["v"].tolist() == [[34]]
    assert a.at(version=first).read({"x": (3, 3), "y": (4, 4)})["v"].tolist() == [[34]]
    with pytest.raises(gs.SchemaError, match="dimension"):
        a.alter(rename={"z": "q"})
