"""Small files as other libraries write them: makes ``files.json`` beside this file.

Needs ``pip install h5py netCDF4`` and runs as ``python vectors/foreign/files.py``. Each entry has the name of the file
and its bytes as hexadecimal digits. Fuzzing starts from them.
"""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np


def hdf5(libver: Any, fill: Any) -> bytes:
    """The bytes of a file that ``fill`` puts datasets into."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.h5"
        with h5py.File(path, "w", libver=libver) as file:
            fill(file)
        return path.read_bytes()


def chunked(file: Any) -> None:
    """Every index of chunks: none (contiguous), one chunk, fixed, extensible, B-tree."""
    data = np.arange(24, dtype=">i2").reshape(4, 6)
    file.create_dataset("contiguous", data=data)
    file.create_dataset("single", data=data, chunks=(4, 6), compression="gzip")
    file.create_dataset("fixed", data=data, chunks=(3, 4), shuffle=True, fletcher32=True)
    file.create_dataset("growing", data=data, chunks=(2, 3), maxshape=(None, 6))
    file.create_dataset("both", data=data, chunks=(3, 5), maxshape=(None, None), compression="lzf")
    file.create_dataset("empty", shape=(9,), chunks=(2,), dtype="f8", fillvalue=3.5)


def kinds(file: Any) -> None:
    """Types, attributes, groups, links and scales."""
    record = np.dtype([("a", "<i4"), ("b", "S3"), ("c", "f4", (2,)), ("d", [("e", "u1")])])
    file.create_dataset("records", data=np.zeros(3, record), chunks=(2,))
    file["states"] = np.array([0, 1, 1], dtype=h5py.enum_dtype({"off": 0, "on": 1}, basetype="i1"))
    file.create_dataset("texts", data=["one", "three"], dtype=h5py.string_dtype())
    file["deep/er/array"] = np.arange(5.0)
    file["deep"].attrs["units"] = "m s-1"
    file["deep/er/array"].attrs["valid_range"] = np.array([0, 9], "u2")
    file["soft"] = h5py.SoftLink("/deep/er/array")
    file["outside"] = h5py.ExternalLink("other.h5", "/x")
    file["scale"] = np.arange(3)
    file["scale"].make_scale("scale")
    file["states"].dims[0].attach_scale(file["scale"])


def crowded(file: Any) -> None:
    """So many links and attributes that they go to heaps of their own."""
    for n in range(12):
        file.create_group(f"group {n:02}")
        file.attrs[f"attribute {n:02}"] = n


def netcdf3() -> bytes:
    """A file of NetCDF-3 with a record variable."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.nc"
        with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
            file.createDimension("time", None)
            file.createDimension("x", 3)
            file.createVariable("t", "i2", ("time", "x"), fill_value=-9)[:] = np.arange(6).reshape(2, 3)
            file.createVariable("x", "f4", ("x",))[:] = [1, 2, 3]
            file.title = "small"
        return path.read_bytes()


def numpy(order: Any) -> bytes:
    """An array of NumPy."""
    out = io.BytesIO()
    np.save(out, np.asarray(np.arange(6, dtype=">f4").reshape(2, 3), order=order))
    return out.getvalue()


def main() -> None:
    made = {
        f"{name} {version}": hdf5(libver, fill)
        for version, libver in (("earliest", "earliest"), ("latest", "latest"))
        for name, fill in (("chunked", chunked), ("kinds", kinds), ("crowded", crowded))
    }
    made |= {"netcdf3": netcdf3(), "numpy row": numpy("C"), "numpy column": numpy("F")}
    entries = [{"name": name, "bytes": content.hex()} for name, content in made.items()]
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    Path(__file__).with_suffix(".json").write_text(f"[\n{lines}\n]\n")
    print(len(entries), "files,", sum(len(content) for content in made.values()), "bytes")


if __name__ == "__main__":
    main()
