"""Calls every function of the C interface with arguments that fit badly; a program of its own, as it may crash.

Usage: `misuse.py LIBRARY HEADER SEED CALLS THREADS`, in a folder of its own. Functions and structs are those of the
header, so that a new one is tried without a change here. What a caller promises holds: a pointer that is not null
points to as much as its count says. Everything else is drawn: null and misaligned pointers, wrong counts and sizes,
texts that mean nothing, calls in any order, and handles that are 0, freed, of another kind or in use by another thread.
"""

import ctypes
import random
import re
import sys
import threading
from pathlib import Path
from typing import Any

ARENA_BYTES = 1 << 18
COUNT_MAX = 1000
"""Values that a count may say; each has at most 16 bytes in the arena behind its pointer."""
FIXED = {
    "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t, "double": ctypes.c_double, "uint8_t": ctypes.c_uint8, "int": ctypes.c_int,
}  # fmt: skip
TEXTS = {
    "uri": ["mem://m", "mem://n", "mem://m", "mem://n", "a.gs", "none.gs", "", "s3:/", "mem://"],
    "path": ["/", "/a", "/a/b", "a", "", "//", "/..", "/b"],
    "type": ["int64", "float64", "string", "int8", "datetime64[s]", "datetime64[25us]", "timedelta64[Y]", "bytes",
             "bool", "float32[3]", "nonsense", ""],
    "name": ["x", "y", "v", "w", "s", "", "nothing"],
    "condition": ["v > 3", "v is null", "(", "s = 'a'", "x = 1 and y = 2", ""],
    "low": ["0", "-5", "a", "", "2026-03", "2026", "-9999999999999999999-12", "NaT", "5 W"],
    "high": ["9", "99", "-9", "b", "", "2026-04-01T12:30+02:00", "9999999999999999999-01", "1 as"],
    "tile": ["1", "5", "0", "1000000000", "x", "1 W", "36 h", "-1 M", "9223372036854775807 Y"],
    "ends": ["0", "9", "-1", "300", "2026-03", "2026-03-01T06", "2026", "24-",
             "1 W", "9e9", "-99999999999999999999999", ""],
    "filters": ["auto", "none", "zstd:3", "shuffle,zstd:3", "what"],
    "fill": ["0", "a", "nan", "", "2026-03-01", "NaT"],
    "json": ["{}", "[]", "null", '{"dims":[],"attrs":[]}', '{"a": 1}', '"x"', "1", "{", ""],
    "tag": ["t", "u", ""], "strategy": ["all", "auto", "none", "tiered", "x"],
    "isolation": ["snapshot", "serializable", "x"],
    "key": ["k", "title", ""], "value": ["1", '"a"', "null", "[1, 2]", "{"],
}  # fmt: skip
DIMS = b'"dims":[{"name":"x","dtype":"int64","domain":["0","9"]},{"name":"y","dtype":"int64","domain":["0","9"]}]'
DENSE = b'{%s,"attrs":[{"name":"v","dtype":"float64"}]}' % DIMS
WEEKS = b'"dims":[{"name":"x","dtype":"datetime64[W]","domain":["2900","2999"]}]'
TIMES = b'{%s,"attrs":[{"name":"v","dtype":"float64"}]}' % WEEKS
SPARSE = b'{"sparse":true,%s,"attrs":[{"name":"s","dtype":"string","nullable":true}]}' % DIMS
ODD = ["\x01", "é", "x" * 5000, "0", "count(*)", "sum(v)", "ends", "\n"]
PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p)
NEVER = {"gridstone_last_error", "gridstone_status_name", "gridstone_version"}


LOCK = threading.Lock()
"""Held while the pool of handles changes."""


class Header:
    """Structs, types and functions of a header."""

    def __init__(self, source: str) -> None:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.S)
        self.structs: dict[str, list[tuple[str, str]]] = {}
        for name, body in re.findall(r"struct (\w+) \{(.*?)\}", text, flags=re.S):
            self.structs[name] = [split(part) for part in body.split(";") if part.strip() and "(*" not in part]
        self.handles = set(re.findall(r"typedef gridstone_handle (\w+);", text)) | {"gridstone_handle"}
        self.callbacks = set(re.findall(r"typedef \w+ \(\*(\w+)\)", text))
        self.functions: dict[str, tuple[str, list[tuple[str, str]]]] = {}
        for result, name, given in re.findall(
            r"^(gridstone_status|uint64_t|int32_t|const char \*) ?(gridstone_\w+)\((.*?)\);", text, flags=re.S | re.M
        ):
            parts = [] if given.strip() == "void" else [split(part) for part in given.split(",")]
            self.functions[name] = (result, parts)


def split(declared: str) -> tuple[str, str]:
    """The type and the name of a declaration."""
    found = re.fullmatch(r"\s*(.*?)(\w+)\s*", " ".join(declared.split()))
    assert found is not None, declared
    return found[1].replace("struct ", "").strip(), found[2]


def target_of(kind: str) -> str:
    """What a pointer of this type points to."""
    return kind.replace("const", "").replace("*", "").strip() if "*" in kind else ""


class Caller:
    """Draws arguments and calls; keeps the handles that it was given."""

    def __init__(self, library: ctypes.CDLL, header: Header, seed: int, handles: dict[str, list[int]]) -> None:
        self.library, self.header, self.handles = library, header, handles
        self.draw = random.Random(seed)
        self.lock = LOCK
        self.called: set[str] = set()
        # Callbacks outlive what they are given to. They go on, stop the work, or call the library, which is refused.
        self.callbacks = {
            "gridstone_progress": [PROGRESS(lambda *_: 0), PROGRESS(lambda *_: 1)],
            "gridstone_log": [LOG(lambda *_: None), LOG(lambda *_: library.gridstone_free(ctypes.c_uint64(1)))],
        }
        self.statuses: dict[int, int] = {}
        self.arena = (ctypes.c_uint64 * (ARENA_BYTES // 8))()
        self.kept: list[Any] = []
        self.arrow: dict[str, Any] = {}

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def handle(self, kind: str) -> int:
        """Mostly one of the right kind."""
        with self.lock:
            kind = self.draw.choice(list(self.handles) or [kind]) if kind == "gridstone_handle" else kind
            own = list(self.handles.get(kind, []))
            every = [handle for some in self.handles.values() for handle in some]
        if own and self.chance(0.85):
            return self.draw.choice(own)
        return self.draw.choice([0, 1, 2**64 - 1, self.draw.getrandbits(64), *every[-50:]])

    def text(self, name: str) -> bytes:
        fit = next((texts for word, texts in TEXTS.items() if word in name), None)
        if self.chance(0.04):
            return b"\xff\xfe"
        return self.draw.choice(fit if fit and self.chance(0.9) else ODD).encode()

    def place(self, is_aligned: bool = True) -> int:
        """An address in the arena with room for the largest count behind it."""
        offset = self.draw.randrange(0, (ARENA_BYTES - 16 * COUNT_MAX) // 16) * 16
        return ctypes.addressof(self.arena) + offset + (0 if is_aligned else self.draw.randrange(1, 8))

    def integer(self, kind: str, name: str) -> int:
        if kind == "size_t":
            return self.draw.choice([0, 1, 2, 3, 4, 8, 16, 40, 80, self.draw.randrange(COUNT_MAX)])
        if name == "threads":
            return self.draw.choice([0, 1, 2])
        small = [0, 0, 0, 1, 1, 2, 3, 4, 5, 9, 10]
        wild = [2**31 - 1, -1, 2**63 - 1, self.draw.getrandbits(32), 1 << 20, 1 << 30]
        return self.draw.choice(small if self.chance(0.85) else wild)

    def struct(self, name: str, space: int) -> None:
        """Writes a struct at an address."""
        offset, before, fields = 0, "", self.header.structs[name]
        total = sum(
            8
            if "*" in kind or kind in self.header.callbacks
            else -(-ctypes.sizeof(FIXED.get(kind, ctypes.c_uint64)) // 1)
            for kind, _ in fields
        )
        total = -(-total // 8) * 8
        for kind, field in fields:
            if kind in self.header.callbacks:
                function = self.draw.choice(self.callbacks[kind])
                made: Any = ctypes.c_uint64(
                    0 if self.chance(0.5) else ctypes.cast(function, ctypes.c_void_p).value or 0
                )
            elif field == "reserved":
                made = FIXED[kind](0 if self.chance(0.95) else 7)
            elif field == "size":
                value = (
                    total if self.chance(0.93) else self.draw.choice([0, 1, 8, total - 8, total + 8, total + 64, 2**63])
                )
                made = ctypes.c_size_t(value)
            elif "*" in kind:
                made = ctypes.c_uint64(self.pointer(kind, field))
            elif kind in self.header.handles:
                made = ctypes.c_uint64(0 if self.chance(0.4) else self.handle(kind))
            elif kind == "size_t" and before in self.header.structs:
                made = ctypes.c_size_t(self.draw.randrange(4))
            else:
                made = FIXED[kind](self.integer(kind, field) if kind != "double" else self.draw.uniform(-9, 9))
            before = target_of(kind)
            width = ctypes.sizeof(made)
            offset = -(-offset // width) * width
            ctypes.memmove(space + offset, ctypes.addressof(made), width)
            offset += width

    def pointer(self, kind: str, name: str) -> int:
        """An address for a pointer of this type, or null."""
        if self.chance(0.12 if "const char *" not in kind else 0.25):
            return 0
        target = kind.replace("const", "").replace("*", "", 1).strip()
        if kind.count("*") == 2 and "char" in kind:
            many = (ctypes.c_char_p * (COUNT_MAX + 1))(*(self.text(name) for _ in range(8)))
            if not self.chance(0.1):
                for place in range(8, COUNT_MAX + 1):
                    many[place] = many[place % 8]
            self.kept.append(many)
            return ctypes.addressof(many)
        if target == "char":
            made = ctypes.create_string_buffer(self.text(name))
            self.kept.append(made)
            return ctypes.addressof(made)
        if target in self.arrow:
            return ctypes.addressof(self.arrow[target])
        if target in self.header.structs:
            width = 8 * (len(self.header.structs[target]) + 16)
            several = ctypes.create_string_buffer(width * 4 + 16 * COUNT_MAX * 8)
            self.kept.append(several)
            start = -(-ctypes.addressof(several) // 16) * 16
            if not target.startswith("Arrow"):
                self.struct(target, start)
                size = ctypes.c_size_t.from_address(start).value
                for place in range(1, 4):
                    if 8 <= size <= width:
                        self.struct(target, start + place * size)
            return start
        if target in self.header.handles and "const" in kind:
            some = (ctypes.c_uint64 * COUNT_MAX)(*(self.handle(target) for _ in range(COUNT_MAX)))
            self.kept.append(some)
            return ctypes.addressof(some)
        return self.place(self.chance(0.95))

    def count_for(self, given: list[Any], kinds: list[tuple[str, str]]) -> int:
        """A count behind a pointer to structs is small: so many there are."""
        before = target_of(kinds[len(given) - 1][0]) if given else ""
        return self.draw.randrange(4) if before in self.header.structs else self.integer("size_t", "count")

    def exported(self) -> dict[str, Any]:
        """A stream and a batch of Arrow that the library makes; what a call does not take is never released."""
        made = {name: ctypes.create_string_buffer(256) for name in ("ArrowSchema", "ArrowArray", "ArrowArrayStream")}
        read, result = (ctypes.c_uint64(self.handle(f"gridstone_{kind}")) for kind in ("read", "result"))
        self.library.gridstone_read_to_arrow(read, made["ArrowArrayStream"])
        self.library.gridstone_result_to_arrow(result, made["ArrowSchema"], made["ArrowArray"])
        return made

    def call(self, name: str) -> None:
        """Calls a function once."""
        _, kinds = self.header.functions[name]
        given: list[Any] = []
        outs: list[tuple[str, Any]] = []
        self.kept.clear()
        self.called.add(name)
        self.arrow = self.exported() if "_arrow" in name and "to_arrow" not in name and self.chance(0.8) else {}
        for kind, argument in kinds:
            if kind.rstrip("*").strip() in self.header.handles and kind.endswith("*") and "const" not in kind:
                out = ctypes.c_uint64(0)
                outs.append((kind.rstrip("*").strip(), out))
                given.append(ctypes.c_uint64(0) if self.chance(0.03) else ctypes.c_uint64(ctypes.addressof(out)))
            elif "*" in kind:
                given.append(ctypes.c_uint64(self.pointer(kind, argument)))
            elif kind in self.header.handles:
                given.append(ctypes.c_uint64(self.handle(kind)))
            elif kind == "size_t":
                given.append(ctypes.c_size_t(self.count_for(given, kinds)))
            elif kind == "double":
                given.append(ctypes.c_double(self.draw.uniform(-100, 100)))
            else:
                given.append(FIXED[kind](self.integer(kind, argument)))
        status = getattr(self.library, name)(*given)
        message = self.library.gridstone_last_error()
        self.statuses[status] = self.statuses.get(status, 0) + 1
        assert 0 <= status <= 17 and (status == 0) == (message == b""), (name, status, message)
        if name == "gridstone_free" and status == 0 and self.chance(0.9):
            with self.lock:
                for own in self.handles.values():
                    if given[0].value in own:
                        own.remove(given[0].value)
        for kind, out in outs:
            if status == 0 and out.value:
                self.add(kind, out.value)
            assert status == 0 or out.value == 0, f"{name} put a handle and failed"

    def add(self, kind: str, handle: int) -> None:
        """Puts a handle into the pool."""
        with self.lock:
            self.handles.setdefault(kind, []).append(handle)

    def make(self, kind: str, name: str, *given: Any) -> int:
        """A handle that a call makes of good arguments; it goes to the pool. 0: the call has failed."""
        out = ctypes.c_uint64(0)
        if getattr(self.library, name)(*given, ctypes.byref(out)) == 0:
            self.add(kind, out.value)
        return out.value

    def refill(self) -> None:
        """Makes a handle of each kind, so that there are always some."""
        none = ctypes.c_void_p(None)

        def handle(value: int) -> ctypes.c_uint64:
            return ctypes.c_uint64(value)

        context = handle(self.make("gridstone_context", "gridstone_context_create", none))
        uri = self.draw.choice([b"mem://m", b"mem://n"])
        self.make("gridstone_group", "gridstone_group_create", context, uri, b"/g")
        self.make("gridstone_group", "gridstone_group_open", context, uri, none)
        for path, text in ((b"/a", DENSE), (b"/b", SPARSE), (b"/c", TIMES)):
            schema = handle(self.make("gridstone_schema", "gridstone_schema_from_json", text))
            array = handle(self.make("gridstone_array", "gridstone_array_create", context, uri, path, schema, 1))
            self.make("gridstone_read", "gridstone_read_create", array, none, none)
            self.make("gridstone_writer", "gridstone_writer_create", array, none, none)
            self.make("gridstone_result", "gridstone_array_read_all", array, none, none)
            self.make("gridstone_upkeep", "gridstone_array_consolidate_begin", array, none)
            staged = handle(self.make("gridstone_staged", "gridstone_stage_delete", array, handle(0), none, none))
            self.make("gridstone_text", "gridstone_receipt", array, ctypes.byref(staged), ctypes.c_size_t(1))
            self.make("gridstone_staged", "gridstone_stage_delete", array, handle(0), none, none)
        self.make("gridstone_transaction", "gridstone_transaction_begin", context, uri, 0, none)
        region = handle(self.make("gridstone_region", "gridstone_region_create"))
        self.library.gridstone_region_add(region, (ctypes.c_int64 * 4)(0, 3, 0, 3), ctypes.c_size_t(4))
        dates = handle(self.make("gridstone_region", "gridstone_region_create"))
        self.library.gridstone_region_add_texts(
            dates, (ctypes.c_char_p * 2)(b"2026-03", b"2026-04"), ctypes.c_size_t(2)
        )

    def forget_some(self) -> None:
        """Keeps the pool small; handles that were freed stay in it for a while."""
        with self.lock:
            full = [own for own in self.handles.values() if len(own) > 40]
            first = [own[0] for own in full]
            for own in full:
                del own[:5]
        for handle in first:
            self.library.gridstone_free(ctypes.c_uint64(handle))


def run(library: ctypes.CDLL, header: Header, seed: int, calls: int, handles: dict[str, list[int]]) -> Caller:
    caller = Caller(library, header, seed, handles)
    names = [
        name
        for name, (result, _) in sorted(header.functions.items())
        if name not in NEVER and result == "gridstone_status"
    ]
    names += [name for name in names if "create" in name or "open" in name or "add" in name or "write" in name] * 2
    # Each function once, then those that fall.
    every = caller.draw.sample(sorted(set(names)), len(set(names)))
    for place in range(calls):
        if place % 50 == 0:
            caller.refill()
        caller.call(every[place] if place < len(every) else caller.draw.choice(names))
        caller.forget_some()
    return caller


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    header = Header(Path(sys.argv[2]).read_text(encoding="utf-8"))
    seed, calls, threads = (int(text) for text in sys.argv[3:6])
    assert len(header.functions) > 40, "the header was not understood"
    for name, (result, _) in header.functions.items():
        getattr(library, name).restype = ctypes.c_char_p if "char" in result else FIXED.get(result, ctypes.c_int32)
    handles: dict[str, list[int]] = {}
    failed: list[BaseException] = []
    done: list[Caller] = []

    def work(place: int) -> None:
        try:
            done.append(run(library, header, seed * 1000 + place, calls, handles))
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed:
        raise failed[0]
    counted: dict[int, int] = {}
    for caller in done:
        for status, times in caller.statuses.items():
            counted[status] = counted.get(status, 0) + times
    print(" ".join(f"{status}:{times}" for status, times in sorted(counted.items())))


if __name__ == "__main__":
    main()
