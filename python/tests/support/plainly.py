"""What reads give, in the plain form of the model: for the machine of `test_state_machine`."""

from typing import Any

import drawing
import pyarrow as pa
from model import Model, plain, plain_arrow, ticks

import gridstone as gs
from gridstone.column import datatype as dtypes


class Plainly:
    """Columns of NumPy and Arrow as lists of plain values."""

    model: Model
    schema: gs.Schema

    def numpy_columns(self, found: dict[str, Any]) -> dict[str, list[Any]]:
        """Columns of `to_numpy()` in plain form."""
        dims = {d.name: ticks(d, found[d.name]) for d in self.schema.dims}
        return dims | {n: plain(self.model.dtypes[n], v) for n, v in found.items() if n not in dims}

    def arrow_columns(self, table: Any) -> dict[str, list[Any]]:
        """Columns of an Arrow table in plain form."""
        made = {}
        for name in table.column_names:
            dtype = self.model.dtypes.get(name) or self.schema.dim(name).dtype
            column = table.column(name)
            # Arrow joins no chunks of dictionaries of times.
            made[name] = plain_arrow(dtype, column.combine_chunks() if column.chunks else pa.nulls(0, column.type))
        for dim in self.schema.dims:
            if dtypes.is_float(dim.dtype):
                made[dim.name] = table.column(dim.name).to_pylist()
        return made

    def in_arrow(self, bounds: Any) -> bool:
        """Whether Arrow has room for the coordinates."""
        return all(drawing.fits_arrow(d, b) for d, b in zip(self.schema.dims, bounds, strict=True))
