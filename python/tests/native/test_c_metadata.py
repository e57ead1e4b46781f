"""Metadata that Python writes, read and written again through C, and read by Python."""

import ctypes
import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import Installed

import gridstone as gs

VALUES: dict[str, Any] = {
    "none": None,
    "true": True,
    "least": -(2**63),
    "most": 2**64 - 1,
    "beyond 64 bits": 2**70,
    "float": 0.1,
    "infinity": float("-inf"),
    "text": 'ä "quoted" \U0001f30a',
    "bytes": b"\0\xff",
    "list": [1, [2.5, []]],
    "dict": {"a": {"b": None}},
    "dict of a dollar": {"$int": 1, "y": [{}]},
    "datetime": dt.datetime(2026, 1, 2, 3, 4, 5, 6),
    "datetime64": np.datetime64("2026-01-01", "s"),
    "NaT": np.datetime64("NaT", "s"),
    "timedelta64": np.timedelta64(5, "ms"),
}


class OpenOptions(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("path", ctypes.c_char_p),
        ("version", ctypes.c_uint64),
        ("tag", ctypes.c_char_p),
        ("time_us", ctypes.c_int64),
        ("by_time", ctypes.c_uint32),
        ("mode", ctypes.c_uint32),
    )


class Library:
    """The shared library, and an array that is open for writing."""

    def __init__(self, installed: Installed, uri: str) -> None:
        self.native = ctypes.CDLL(str(installed.prefix / "lib" / "libgridstone.so.0"))
        self.native.gridstone_last_error.restype = ctypes.c_char_p
        context, self.array = ctypes.c_uint64(), ctypes.c_uint64()
        self.done("context_create", None, ctypes.byref(context))
        options = OpenOptions(size=ctypes.sizeof(OpenOptions), mode=1)
        self.done("array_open", context, uri.encode(), ctypes.byref(options), ctypes.byref(self.array))

    def done(self, name: str, *arguments: Any) -> None:
        status = getattr(self.native, f"gridstone_{name}")(*arguments)
        assert status == 0, self.native.gridstone_last_error()

    def text(self, name: str, *arguments: Any) -> str:
        text, characters = ctypes.c_uint64(), ctypes.c_char_p()
        self.done(name, self.array, *arguments, ctypes.byref(text))
        self.done("text_get", text, ctypes.byref(characters), None)
        found = (characters.value or b"").decode()
        self.done("free", text)
        return found


@pytest.fixture
def stored(tmp_path: Path) -> gs.Array:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int32")])
    return gs.create(tmp_path / "store.gs", schema)


def test_python_and_c_read_what_the_other_wrote(installed: Installed, stored: gs.Array) -> None:
    stored.meta.update(VALUES)
    library = Library(installed, stored.uri)
    texts = {key: library.text("metadata_get", None, key.encode()) for key in VALUES}
    assert json.loads(library.text("metadata_all", None)) == {key: json.loads(text) for key, text in texts.items()}
    assert json.loads(library.text("metadata_keys", None)) == sorted(VALUES, key=str.encode)

    count = len(texts)
    keys = (ctypes.c_char_p * count)(*(f"again {key}".encode() for key in texts))
    values = (ctypes.c_char_p * count)(*(text.encode() for text in texts.values()))
    version = ctypes.c_uint64()
    library.done("metadata_set", library.array, None, keys, values, ctypes.c_size_t(count), ctypes.byref(version))
    stored.refresh()
    assert stored.version == version.value
    for key, value in VALUES.items():
        found = stored.meta[f"again {key}"]
        assert type(found) is type(value)
        assert np.isnat(found) if key == "NaT" else found == value


def test_metadata_of_attributes_and_dimensions_are_those_of_python(installed: Installed, stored: gs.Array) -> None:
    stored["v"].meta["units"] = "m"
    stored.dim("x").meta["units"] = "km"
    library = Library(installed, stored.uri)
    assert library.text("metadata_get", b"v", b"units") == '"m"'
    assert library.text("metadata_get", b"x", b"units") == '"km"'
    assert library.text("metadata_all", None) == "{}"
