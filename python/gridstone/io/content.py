"""What a file holds, by its first bytes: for errors about files that are not what their names say."""

from pathlib import Path

from ..errors import InputError

_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"PAR1", "Parquet", "load it with from_parquet, or name it .parquet"),
    (b"ARROW1", "Arrow (Feather 2)", "load it with from_feather, or name it .arrow"),
    (b"\x93NUMPY", "NumPy (.npy)", "load it with from_npy, or name it .npy"),
    (b"\x1f\x8b", "compressed by gzip", "end its name in .gz"),
    (b"BZh", "compressed by bzip2", "end its name in .bz2"),
    (b"\xfd7zXZ\0", "compressed by xz", "end its name in .xz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "end its name in .zst"),
    (b"\x04\x22\x4d\x18", "compressed by lz4", "end its name in .lz4"),
    (b"PK\x03\x04", "a zip archive, or an Excel workbook", "end its name in .zip, or export the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook", "export the sheet as CSV"),
    (b"\x89HDF\r\n\x1a\n", "HDF5", "gridstone.attach shows it as an array"),
    (b"CDF\x01", "NetCDF", "gridstone.attach shows it as an array"),
    (b"CDF\x02", "NetCDF", "gridstone.attach shows it as an array"),
    (b"CDF\x05", "NetCDF", "gridstone.attach shows it as an array"),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture", "gridstone.array stores its pixels"),
    (b"\xff\xd8\xff", "a JPEG picture", "gridstone.array stores its pixels"),
    (b"GIF8", "a GIF picture", "gridstone.array stores its pixels"),
    (b"II*\0", "a TIFF picture", "gridstone.array stores its pixels"),
    (b"MM\0*", "a TIFF picture", "gridstone.array stores its pixels"),
    (b"%PDF-", "a PDF document", "export its tables as CSV"),
    (b"SQLite format 3\0", "an SQLite database", "export its tables as CSV"),
    (b"\x7fELF", "a program", "give another file"),
)
"""How files begin, what they are, and what to do with them."""
_LOOKED_AT = 4_096
_NULS_MANY, _NULS_FEW = 0.1, 8
"""A larger share of NUL bytes, and more than a few, is no text of one byte per character."""


def check_text(file: Path, head: bytes, decoded: bool) -> None:
    """An `InputError` that names what a file of text is instead, by its first bytes.

    Args:
        file: its path.
        head: its first bytes, decompressed.
        decoded: whether an encoding was given in which NUL bytes are usual.
    """
    found = _kind_of(head)
    if found is not None:
        raise InputError(f"{file} is no text but {found[0]}; {found[1]}")
    if decoded:
        return
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{file} is text in UTF-16; pass encoding='utf-16' (--encoding utf-16)")
    head = head[:_LOOKED_AT]
    if head.count(b"\0") <= max(_NULS_FEW, _NULS_MANY * len(head)):
        return
    even, odd = head[::2].count(b"\0"), head[1::2].count(b"\0")
    if min(even, odd) * 10 <= max(even, odd) and max(even, odd) * 4 > len(head):
        name = "utf-16-be" if even > odd else "utf-16-le"
        raise InputError(f"{file} looks like text in UTF-16; pass encoding='{name}' (--encoding {name})")
    raise InputError(f"{file} holds binary data, not text: a tenth of its first bytes and more are NUL")


def check(file: Path, plain: Path, kind: str, magic: bytes) -> None:
    """An `InputError` that names what a file is that is not of this kind, and does not begin with its magic.

    Args:
        file: its path, for the message.
        plain: where it lies decompressed.
        kind: what it should be.
        magic: how files of that kind begin.
    """
    with plain.open("rb") as raw:
        head = raw.read(16)
    found = None if head.startswith(magic) else _kind_of(head)
    if found is not None:
        raise InputError(f"{file} is no {kind} file but {found[0]}; {found[1]}")


def ending_of(head: bytes) -> str:
    """The end of a name that says how content is compressed; "" if it is not."""
    for magic, _, advice in _MAGIC:
        if head.startswith(magic) and advice.startswith("end its name in"):
            return advice.removeprefix("end its name in ").partition(",")[0]
    return ""


def _kind_of(head: bytes) -> tuple[str, str] | None:
    return next(((what, advice) for magic, what, advice in _MAGIC if head.startswith(magic)), None)
