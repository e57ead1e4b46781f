"""A process in which h5py works for another one: it decodes single chunks, and reads values of varying length.

`child.py` starts this file as a script. It imports nothing of this package, so that it starts fast, and ends when its
input does. What ends it otherwise, such as a fault in a C library, is an error of the process that asked.

A message, both ways: u64 length of the header, the header as JSON, u64 length of the body, the body. Numbers are
little-endian.
"""

import contextlib
import ctypes
import importlib
import json
import os
import struct
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol

Reply = tuple[dict[str, Any], bytes]

_LENGTH = struct.Struct("<Q")
_NOWHERE = 2**64 - 1
_PROBE = 511
"""The number of a filter that no file has: HDF5 leaves 256 to 511 to trials."""
_M_PERTURB = -6
"""`mallopt` of glibc: fills memory when it is allocated, and when it is freed."""
_FILLS = (0x55, 0x2A)
_ROOM_BYTES = 1 << 30
_COPY_ROOM_BYTES = 4 << 30
_PORTION_BYTES = 16 << 20
"""Values of varying length that are read at once, about."""
_PORTION_CELLS = 1 << 18


_Callback = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_uint,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_void_p),
)


class _Class(ctypes.Structure):
    """`H5Z_class2_t` of HDF5."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("id", ctypes.c_int),
        ("encoder_present", ctypes.c_uint),
        ("decoder_present", ctypes.c_uint),
        ("name", ctypes.c_char_p),
        ("can_apply", ctypes.c_void_p),
        ("set_local", ctypes.c_void_p),
        ("filter", _Callback),
    )


class Decoder:
    """Decodes chunks with a filter of the HDF5 library.

    HDF5 has no call for that. So the chunk is put into a file in memory: a dataset of one chunk with two filters, this
    one and a probe before it, which takes what the filter made, with its exact length. The filter's parameters are in
    that file as its writer computed them: for a dataset that it creates, the library would compute them anew.
    """

    def __init__(self) -> None:
        h5py = importlib.import_module("h5py")
        # The filters of hdf5plugin are h5py's own from here on.
        with contextlib.suppress(ImportError):
            importlib.import_module("hdf5plugin")
        self._h5py = h5py
        self._cell = importlib.import_module("numpy").empty(1, "u1")
        self._room = 0
        self._made: bytes | None = None
        self._length = 0
        self._mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
        self._callback = _Callback(self._take)
        self._class = _Class(1, _PROBE, 1, 1, b"gridstone probe", None, None, self._callback)
        h5py.h5z.register_filter(ctypes.addressof(self._class))

    def is_available(self, number: int) -> bool:
        """Whether the library has a filter that decodes."""
        if not self._h5py.h5z.filter_avail(number):
            return False
        return bool(self._h5py.h5z.get_filter_info(number) & self._h5py.h5z.FILTER_CONFIG_DECODE_ENABLED)

    def decode(self, chunk: bytes, number: int, values: list[int], room: int) -> bytes:
        """What the filter makes of a chunk, at most `room` bytes.

        It is decoded twice, over memory of other content: some filters leave memory as it was where a chunk is damaged.

        Raises:
            OSError: the filter refuses the chunk, or does not write all of what it makes.
            ValueError: it makes more.
        """
        made = self._decode_over(_FILLS[0], image(chunk, number, values), room)
        if self._mallopt is not None and made != self._decode_over(_FILLS[1], image(chunk, number, values), room):
            raise OSError("the filter leaves some of its output unwritten")
        return made

    def _decode_over(self, fill: int, file_image: bytes, room: int) -> bytes:
        """The same where memory that nothing was written to has the byte `fill`, if the system can."""
        if self._mallopt is not None:
            self._mallopt(_M_PERTURB, fill)
        self._room, self._made, self._length = room, None, 0
        refused: Exception | None = None
        try:
            self._read(file_image)
        except OSError as error:
            refused = error
        if self._length > room:
            raise ValueError(f"it decodes to {self._length} bytes; at most {room} were expected")
        if self._made is None:
            raise refused or OSError("it decodes to nothing")
        made, self._made = self._made, None
        return made

    def _read(self, file_image: bytes) -> None:
        file, dataset = self._h5py.h5f.open_file_image(file_image), None
        try:
            dataset = self._h5py.h5d.open(file, b"d")
            dataset.read(self._h5py.h5s.ALL, self._h5py.h5s.ALL, self._cell)
        finally:
            # A dataset that is open keeps its file.
            del dataset
            file.close()

    def _take(self, _flags: int, _count: int, _values: Any, length: int, _size: Any, buffer: Any) -> int:
        """The probe. It always fails, so that HDF5 never reads cells out of what may be shorter than a chunk."""
        self._length = length
        if length <= self._room:
            self._made = ctypes.string_at(buffer[0], length)
        return 0


def image(chunk: bytes, number: int, values: list[int]) -> bytes:
    """A file of HDF5 with the dataset `d`, one chunk behind a filter and the probe.

    ```
    superblock (version 0) | header of the root group: a link | header of the dataset | chunk
    ```
    """
    pipeline = struct.pack("<BB6x", 1, 2) + _filter(_PROBE, []) + _filter(number, values)
    fixed = [
        _message(0x1, struct.pack("<BBB5xQ", 1, 1, 0, 1)),  # dataspace: one cell
        _message(0x3, struct.pack("<B3xIHH", 0x10, 1, 0, 8)),  # datatype: unsigned, one byte
        _message(0x5, bytes([2, 2, 2, 0])),  # no fill value
        _message(0xB, pipeline),
    ]

    def headers(dataset: int, data: int) -> tuple[bytes, bytes]:
        layout = struct.pack("<8BQIQ", 4, 2, 2, 2, 1, 1, 1, 1, len(chunk), 0, data)  # a single chunk with filters
        link = struct.pack("<3BsQ", 1, 0, 1, b"d", dataset)
        group = struct.pack("<BBQQ", 0, 0, _NOWHERE, _NOWHERE)
        return _header([_message(0x2, group), _message(0x6, link)]), _header([*fixed, _message(0x8, layout)])

    root_at = 96
    root, dataset = headers(0, 0)
    dataset_at = root_at + len(root)
    data_at = dataset_at + len(dataset)
    root, dataset = headers(dataset_at, data_at)
    superblock = struct.pack("<8s8BHHI4Q", b"\x89HDF\r\n\x1a\n", 0, 0, 0, 0, 0, 8, 8, 0, 4, 16, 0, 0, _NOWHERE,
                             data_at + len(chunk), _NOWHERE)  # fmt: skip
    return b"".join([superblock, struct.pack("<QQII16x", 0, root_at, 0, 0), root, dataset, chunk])


def _message(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<HHB3x", kind, len(body), 0) + body


def _header(messages: list[bytes]) -> bytes:
    body = b"".join(messages)
    return struct.pack("<BxHII4x", 1, len(messages), 1, len(body)) + body


def _filter(number: int, values: list[int]) -> bytes:
    return struct.pack(f"<HHHH{len(values)}I{4 * (len(values) % 2)}x", number, 0, 0, len(values), *values)


def keeps_order(h5py: Any) -> bool:
    """Whether h5py gives lists of big-endian numbers as they are: releases up to 3.16 take them for little-endian."""
    with h5py.File("order", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("d", (1,), h5py.vlen_dtype(">i2"))
        dataset[0] = [1]
        return bool(dataset[0][0] == 1)


def portions(file: str, path: str, member: str, dtype: str, big_endian: bool) -> Iterator[Reply]:
    """The values of a dataset, some of the first dimension at a time: u64 ends of each in what follows, then all."""
    h5py, np = importlib.import_module("h5py"), importlib.import_module("numpy")
    swapped = big_endian and not keeps_order(h5py)
    # A program that writes the file may have locked it: what it wrote is read, as the index of chunks is.
    with h5py.File(file, "r", locking=False) as opened:
        dataset = opened[path]
        rows = dataset.shape[0] if dataset.shape else 1
        across = max(1, int(np.prod(dataset.shape[1:], dtype=np.int64)))
        low, step = 0, max(1, 1024 // across)
        while low < rows:
            high = min(low + step, rows)
            found = np.asarray(_member(dataset, slice(low, high) if dataset.shape else (), member), dtype=object)
            values = [_bytes(one, dtype, swapped) for one in found.reshape(-1)]
            ends = np.cumsum([len(one) for one in values], dtype="<u8").astype("<u8")
            body = b"".join([ends.tobytes(), *values])
            yield {"low": low, "high": high, "count": len(values)}, body
            if len(body) < _PORTION_BYTES // 2 and step * across < _PORTION_CELLS:
                step *= 2
            elif len(body) > _PORTION_BYTES:
                step = max(1, step // 2)
            low = high


def _member(dataset: Any, rows: Any, member: str) -> Any:
    """The cells, or of compounds the member, which may lie in another one."""
    if not member:
        return dataset[rows]
    first, *inner = member.split(".")
    found = dataset.fields(first)[rows]
    for name in inner:
        found = found[name]
    return found


def _bytes(value: Any, dtype: str, swapped: bool) -> bytes:
    """A text, or a list of numbers, little-endian; `swapped`: its bytes are in the other order than it says."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    np = importlib.import_module("numpy")
    value = np.asarray(value).byteswap() if swapped else value
    return bytes(np.ascontiguousarray(value, dtype=np.dtype(dtype).newbyteorder("<")).tobytes())


class Memory:
    """Limits what this process may take beyond what it has: lengths of a damaged file are not to be trusted."""

    def __init__(self) -> None:
        try:
            with open("/proc/self/statm", encoding="ascii") as file:
                self._own = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, AttributeError):
            self._own = 0

    def limit(self, more: int) -> None:
        """At most `more` bytes from here on."""
        if not self._own:
            return
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = self._own + more
        with contextlib.suppress(OSError, ValueError):
            soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class Server:
    """Answers what is asked."""

    def __init__(self) -> None:
        self._decoder: Decoder | None = None
        self._memory: Memory | None = None

    def answers(self, asked: dict[str, Any], body: bytes) -> Iterator[Reply]:
        """The replies to one message; the last has the key "done"."""
        if self._decoder is None:
            self._decoder = Decoder()
            self._memory = Memory()
        assert self._memory is not None
        match asked["do"]:
            case "available":
                yield {"done": True, "available": self._decoder.is_available(asked["number"])}, b""
            case "decode":
                room = asked["room"]
                self._memory.limit(8 * (room + len(body)) + _ROOM_BYTES)
                made = self._decoder.decode(body, asked["number"], asked["values"], room)
                yield {"done": True}, made
            case "copy":
                self._memory.limit(_COPY_ROOM_BYTES)
                yield from portions(*(asked[key] for key in ("file", "path", "member", "dtype", "big_endian")))
                yield {"done": True}, b""


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answers messages until there are none."""
    server = Server()
    while (message := receive(source)) is not None:
        try:
            for header, body in server.answers(*message):
                send(sink, header, body)
        except BrokenPipeError:
            return
        except Exception as error:
            told = str(error).splitlines()
            send(sink, {"done": True, "error": f"{told[0] if told else ''}" or type(error).__name__}, b"")


def send(sink: BinaryIO, header: dict[str, Any], body: bytes) -> None:
    """Writes a message."""
    head = json.dumps(header).encode()
    sink.write(_LENGTH.pack(len(head)) + head + _LENGTH.pack(len(body)))
    sink.write(body)
    sink.flush()


class Source(Protocol):
    """What messages are read from."""

    def read(self, count: int, /) -> bytes:
        """The next bytes; fewer at the end."""


def receive(source: Source) -> tuple[dict[str, Any], bytes] | None:
    """Reads a message; None at the end."""
    head = _part(source)
    body = None if head is None else _part(source)
    return None if head is None or body is None else (json.loads(head), body)


def _part(source: Source) -> bytes | None:
    length = source.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        return None
    (count,) = _LENGTH.unpack(length)
    found = source.read(count)
    return found if len(found) == count else None


def main() -> None:
    """Serves the process that started this one. What libraries print goes to where errors go, not between messages."""
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, sink)


if __name__ == "__main__":
    main()
