"""Filters of foreign chunks that Python libraries decode: `hdf5.N` by h5py, `numcodecs.NAME` by numcodecs.

The core asks for a decoder by the filter's name, and calls it for each chunk: with the stored bytes, the parameters
that the pipeline has, and the most bytes that it may give. Several threads call one at once.

h5py works in processes of its own (`child.py`). They decode beside each other, which its lock would not allow. A thread
that holds that lock waits for no chunk. A damaged chunk that crashes a C library does not end this process. numcodecs
works in this process.
"""

import functools
import json
import lzma
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.extras import found, needed
from ..errors import CorruptionError, StorageError, UnsupportedError
from .child import CHILDREN, WorkerDeath, WorkerRefusal
from .filter_names import LIBRARY_FILTERS, filter_name

Decode = Callable[[bytes, str, int], "bytes | memoryview"]

_HDF5, _NUMCODECS = "hdf5.", "numcodecs."
_BYTES_PER_S_MIN = 1 << 21
"""A decoder that is slower than this, on a busy machine, is taken for one that never ends."""
_OBJECTS = ("pickle", "json2", "msgpack2", "categorize", "vlen-utf8", "vlen-bytes", "vlen-array")
"""Codecs whose decoded form is objects of Python. Those of `pickle` may be any code."""
_CODEC_PACKAGES = {"pcodec": "pcodec", "zfpy": "zfpy", "crc32c": "google-crc32c"}


@functools.lru_cache(maxsize=256)
def decoder(id: str) -> Decode:
    """The decoder of the filter `id`.

    Raises:
        UnsupportedError: there is none, or a library is missing; the message says what to install.
    """
    if id.startswith(_HDF5) and id.removeprefix(_HDF5).isdecimal():
        return _hdf5(int(id.removeprefix(_HDF5)))
    if id.startswith(_NUMCODECS):
        return _numcodecs(id.removeprefix(_NUMCODECS))
    raise UnsupportedError(f"no library decodes the filter {id!r}: it is hdf5 with a number, or numcodecs with a name")


def _hdf5(number: int) -> Decode:
    name = filter_name(number)
    if not 0 < number < 1 << 16:
        raise UnsupportedError(f"HDF5 has no filter {number}")
    found("h5py", "hdf5", f"decoding chunks of {name}")
    try:
        with CHILDREN.decoding() as child:
            known = any(header["available"] for header, _ in child.ask({"do": "available", "number": number}))
    except WorkerRefusal as error:
        raise UnsupportedError(f"decoding chunks of {name} needs h5py, which cannot be imported ({error})") from error
    except WorkerDeath as error:
        raise StorageError(f"decoding chunks of {name}: {error}") from error
    if not known:
        plugin = "" if number in LIBRARY_FILTERS else f", {_plugin()}"
        raise UnsupportedError(f"the HDF5 library of h5py has no decoder of {name} ({number}){plugin}")

    def decode(chunk: bytes, parameters: str, room: int) -> bytes:
        asked = {"do": "decode", "number": number, "values": _values(parameters, name), "room": room}
        try:
            with CHILDREN.decoding() as child:
                (_, made), *_ = child.ask(asked, chunk, room / _BYTES_PER_S_MIN)
            return made
        except WorkerRefusal as error:
            raise CorruptionError(f"{name} cannot decode a chunk of {len(chunk)} bytes: {error}") from error
        except WorkerDeath as error:
            kind = CorruptionError if error.faulted else StorageError
            raise kind(f"{name}, decoding a chunk of {len(chunk)} bytes: {error}") from error

    return decode


def _plugin() -> str:
    try:
        found("hdf5plugin", "hdf5", "it")
    except UnsupportedError as error:
        return str(error)
    return "and hdf5plugin has none either"


def _values(parameters: str, name: str) -> list[int]:
    """The client data of a filter: numbers of 32 bits, separated by commas."""
    parts = parameters.split(",") if parameters else []
    if all(part.isascii() and part.isdecimal() for part in parts):
        values = [int(part) for part in parts]
        if all(value < 1 << 32 for value in values):
            return values
    raise CorruptionError(f"the parameters of {name} are numbers of 32 bits, not {parameters[:80]!r}")


def _numcodecs(name: str) -> Decode:
    if name in _OBJECTS:
        raise UnsupportedError(f"the codec {name} of numcodecs makes objects of Python, which are not read")
    numcodecs = needed("numcodecs", "zarr", f"decoding chunks of {name}")
    try:
        numcodecs.get_codec({"id": name})
    except TypeError:
        pass  # It is there, and has parameters.
    except ValueError as error:
        package = _CODEC_PACKAGES.get(name)
        hint = f"; it needs {package}: pip install {package}" if package else ""
        raise UnsupportedError(f"numcodecs has no codec {name}{hint}") from error

    def decode(chunk: bytes, parameters: str, room: int) -> memoryview:
        codec = _codec(name, parameters)
        try:
            made = _of_lzma(codec, chunk, room) if name == "lzma" else codec.decode(chunk)
        except Exception as error:
            raise CorruptionError(f"{name} cannot decode a chunk of {len(chunk)} bytes: {_line(error)}") from error
        values = np.asarray(memoryview(made) if isinstance(made, bytes | bytearray) else made)
        if values.dtype.hasobject:
            raise UnsupportedError(f"the codec {name} of numcodecs makes objects of Python, which are not read")
        if values.nbytes > room:
            raise CorruptionError(f"{name} decodes to {values.nbytes} bytes; at most {room} were expected")
        # The values as they lie in memory: their order is that of the chunk.
        return np.ascontiguousarray(values.reshape(-1, order="A")).view(np.uint8).data

    return decode


def _of_lzma(codec: Any, chunk: bytes, room: int) -> bytes:
    """What LZMA makes of a chunk, at most one byte more than `room`: a short chunk may claim any number of bytes."""
    decoder = lzma.LZMADecompressor(codec.format, filters=codec.filters if codec.format == lzma.FORMAT_RAW else None)
    made = decoder.decompress(chunk, room + 1)
    if len(made) <= room and not decoder.eof:
        raise EOFError("it ends too early")
    return made


@functools.lru_cache(maxsize=256)
def _codec(name: str, parameters: str) -> Any:
    numcodecs = needed("numcodecs", "zarr", f"decoding chunks of {name}")
    try:
        config = json.loads(parameters) if parameters else {}
        return numcodecs.get_codec({**config, "id": name})
    except Exception as error:
        raise UnsupportedError(f"numcodecs has no codec {name} of {parameters[:200]}: {_line(error)}") from error


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0] or type(error).__name__
