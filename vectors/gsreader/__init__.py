"""An independent reader of Gridstone stores, formats GS0 and GS1, written from the pages in ``docs/format``.

It is slow and complete: it checks every checksum, every bound and every statistic of what it reads, and refuses what
does not fit. Pure standard library, except that blocks packed by zstd, lz4 or pco need ``zstandard``, ``lz4`` or
``pcodec``, imported when such a block is met.
"""

from .bytes import Absent, Damaged, Unsupported
from .store import Store

__all__ = ["Absent", "Damaged", "Store", "Unsupported"]
