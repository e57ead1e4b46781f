"""The filters of HDF5 chunks as the core names them."""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import _native
from ..errors import UnsupportedError

_PLAIN = {1: "deflate", 3: "fletcher32", 307: "bzip2", 32000: "lzf", 32001: "blosc", 32004: "lz4h5", 32015: "zstd"}


def pipeline(filters: Sequence[Mapping[str, Any]], element_size: int) -> str:
    """The pipeline of a dataset: the filters in the order of its writer.

    Raises:
        UnsupportedError: a filter that is not read.
    """
    return ",".join(_named(one, element_size) for one in filters) or "none"


def _named(one: Mapping[str, Any], element_size: int) -> str:
    number, parameters = one["id"], list(one["parameters"])
    if number in _PLAIN:
        return _PLAIN[number]
    if number == 2:
        width = parameters[0] if parameters and parameters[0] > 0 else element_size
        return f"shuffle:{width}"
    if number == 32008:
        return _bitshuffle(parameters, element_size)
    return _by_library(number, parameters, one.get("name"))


def _by_library(number: int, parameters: Sequence[int], own_name: str | None) -> str:
    """A filter that the core does not have: h5py decodes it, or what the program registered under its name."""
    id = f"hdf5.{number}"
    if id not in _native.registered_filters():
        # Deferred: no process is needed before a file has such a filter.
        from . import decoders

        try:
            decoders.decoder(id)
        except UnsupportedError as error:
            name = f" ({own_name})" if own_name else ""
            raise UnsupportedError(
                f"its chunks are packed by filter {number}{name}, which is not read: {error}"
            ) from error
    values = "%2C".join(str(value) for value in parameters)
    return f"{id}:{values}" if values else id


def _bitshuffle(parameters: Sequence[int], element_size: int) -> str:
    """Parameters: two of the version, bytes of an element, elements of a block, compression (0, 2 LZ4, 3 Zstandard)."""
    width = parameters[2] if len(parameters) > 2 and parameters[2] > 0 else element_size
    block = parameters[3] if len(parameters) > 3 else 0
    packing = {0: "", 2: ":lz4", 3: ":zstd"}.get(parameters[4] if len(parameters) > 4 else 0)
    if packing is None:
        return _by_library(32008, parameters, f"bitshuffle with compression {parameters[4]}")
    return f"bitshuffle:{width}" + (f":{block}" if block else "") + packing
