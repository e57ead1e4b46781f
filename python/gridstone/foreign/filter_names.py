"""What filters of other formats are called, and which libraries decode those that the core does not."""

LIBRARY_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "n-bit", 6: "scale-offset"}
"""The filters of the HDF5 library itself."""
_NAMES = {
    **LIBRARY_FILTERS,
    307: "bzip2",
    32000: "lzf",
    32001: "Blosc",
    32004: "LZ4",
    32008: "bitshuffle",
    32013: "ZFP",
    32015: "Zstandard",
    32017: "SZ",
    32018: "JPEG-LS",
    32024: "SZ3",
    32026: "Blosc 2",
    32028: "SPERR",
}


def filter_name(number: int) -> str:
    """What a filter of HDF5 is called; its number if that is not known."""
    return _NAMES.get(number, f"filter {number}")


def told(pipeline: str) -> str:
    """A pipeline in words: its filters without parameters, and which library decodes those that the core does not."""
    return ", ".join(_told(part.partition(":")[0]) for part in pipeline.split(","))


def _told(name: str) -> str:
    family, _, rest = name.partition(".")
    if family == "numcodecs" and rest:
        return f"{rest} by numcodecs"
    if family != "hdf5" or not rest.isdecimal():
        return name
    return f"{filter_name(int(rest))} by {'h5py' if int(rest) in LIBRARY_FILTERS else 'hdf5plugin'}"
