"""The compiled core, as Python sees it: buffers in, buffers out. Everything pleasant is made of it in Python.

A column is `(values, offsets, validity)`:

- fixed-width types: `values` are the little-endian values, `offsets` is None;
- strings and bytes: `values` are the concatenated bytes, `offsets` are n + 1 int64 from 0;
- `validity` is None (all valid) or one byte per cell, 1 valid, 0 null.

Ends of boxes are ints (datetimes as ticks of their unit), floats, or texts (of numbers too); both ends inclusive. In
lists of boxes an end may be None (that of the domain), and a flag says that the high one, of a text dimension, is left
out. Bounds that the core gives are texts: decimal integers, `repr` of floats, texts as they are.

Times are UTC microseconds. Every call may raise the classes of `gridstone.errors`; long calls release the GIL and
stop within 100 ms of Ctrl-C with KeyboardInterrupt, leaving the store as it was.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from typing_extensions import Buffer as _BufferLike

_Column = tuple[_BufferLike, _BufferLike | None, _BufferLike | None]
_End = int | float | str
_Box = Sequence[tuple[_End | None, _End | None]]
_Boxes = Sequence[Sequence[tuple[_End | None, _End | None, bool]]]
_Key = tuple[bytes, bool] | None
_Names = Sequence[str] | None
_Progress = Callable[[int, int], object]
_Chosen = tuple[int, int, int] | tuple[str, _BufferLike] | str | None
"""Along one dimension: start, count and step; "listed" or "paired" positions (uint64); "masked"; None for all of it."""
_Mask = tuple[int, Sequence[int], _BufferLike]
"""The number of the first dimension that it stands for, its shape, a byte per position."""

__all__ = [
    "Answers", "Array", "Buffer", "Cells", "Condition", "Context", "Field", "Group", "Keys", "Portions", "Scan",
    "Staged", "Transaction", "Upkeep", "Writer", "__version__", "aggregate", "alter_labelled", "answers",
    "append_block", "attached_boxes", "check_condition", "check_receipt", "check_schema", "commit_receipts", "copy",
    "create_array", "create_group", "delete_store", "environment_keys", "exists", "finish_partials", "foreign_sources",
    "foreign_tree", "forget_copied", "labels_of", "log_events", "look_at_source", "merge_partials", "move_node",
    "open", "parse_condition", "partial", "reduce", "reduce_nothing", "register_filter", "registered_filters",
    "repair", "replace_attached", "select_rows", "shared_labels", "stage_delete_where", "stage_external", "store_usage",
    "tag", "untag", "upgrade", "verify_store",
]  # fmt: skip

__version__: str

@final
class Buffer:
    """Bytes owned by the core, 16-byte aligned and writable through the buffer protocol without a copy."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

_Labels = tuple[str, str, _Column]
"""The name of a dimension, the type of labels, and these."""
_OutColumn = tuple[Buffer, Buffer | None, Buffer | None]
_Keys = Sequence[tuple[str, str, int | float | None]]
_Asked = Sequence[tuple[str, str]]
_Named = tuple[str, str, _OutColumn]
_Tables = list[tuple[int, list[_Named]]]
_Parts = Sequence[Sequence[tuple[int, Sequence[tuple[str, str, _Column]]]]]
_Area = _Boxes | None
_Report = _Progress | None
_Answered = tuple[int, list[_Named], list[str | None], dict[str, int]]

_Literal = bool | int | float | str | bytes | tuple[str, int | None]
"""A value beside a column; a time is its type and its ticks, None for NaT."""

@final
class Condition:
    """A condition on cells, immutable and hashable. What makes one raises an InputError if it is too deep or large."""

    @staticmethod
    def from_json(text: str) -> Condition: ...
    @staticmethod
    def constant(value: bool) -> Condition: ...
    @staticmethod
    def column(column: str) -> Condition:
        """A column of bools by itself."""
    @staticmethod
    def compare(column: str, sign: str, value: _Literal) -> Condition: ...
    @staticmethod
    def compare_columns(left: str, sign: str, right: str) -> Condition: ...
    @staticmethod
    def among(column: str, values: Sequence[_Literal]) -> Condition: ...
    @staticmethod
    def between(column: str, low: _Literal, high: _Literal) -> Condition: ...
    @staticmethod
    def null(column: str) -> Condition: ...
    @staticmethod
    def not_null(column: str) -> Condition: ...
    def negated(self) -> Condition: ...
    def both(self, other: Condition) -> Condition:
        """Both are true."""
    def either(self, other: Condition) -> Condition:
        """At least one is true."""
    @property
    def text(self) -> str: ...
    def to_json(self) -> str: ...
    def check(self, schema_json: str) -> str:
        """What it means for a schema, as JSON: columns that decide it, box (null if nothing is selected), constant."""
    def select_rows(self, schema_json: str, columns: Mapping[str, _Column]) -> Buffer:
        """One byte per row, 1 where it is true; columns by name, those at least that `check` names."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

_If = Condition | None
_Counted = tuple[_If, bytes | None]
_Ending = tuple[_If, Sequence[tuple[str, bool]] | None, int | None]

@final
class Context:
    """Memory budget, threads, cache, durability and keys shared by everything opened with it."""

    def __new__(
        cls,
        memory_budget: int,
        threads: int | None,
        cache: int,
        durability: str,
        verify: str,
        auto_consolidate: tuple[int, int] | None,
        keys: Keys | None = None,
        storage_options: dict[str, str] | None = None,
        sources: list[str] | None = None,
    ) -> Context:
        """`auto_consolidate`: a number of fragments, and bytes of a merged one."""
    def allowing(self, sources: list[str]) -> Context:
        """The same, which may also read files of other formats under these prefixes."""
    @property
    def sources(self) -> list[str]: ...
    @property
    def threads(self) -> int: ...
    @property
    def peak_bytes(self) -> int: ...

@final
class Keys:
    """What a context was given as its key: bytes, text, or a function that is asked for the key of an id."""

    def __new__(cls, key: bytes | str | Callable[[bytes | None], bytes | str]) -> Keys: ...
    @property
    def id(self) -> str | None:
        """The id of a key that is fixed, in hexadecimal digits."""

@final
class Cells:
    """The outcome of a read, or one batch of a scan."""

    @property
    def count(self) -> int:
        """Cells in it."""
    @property
    def shape(self) -> list[int] | None:
        """Cells per dimension of a dense read's box; None for cell lists (sparse arrays, every scan)."""
    @property
    def dims(self) -> dict[str, _OutColumn]:
        """Coordinates by dimension, one value per cell; empty for a dense read."""
    @property
    def attrs(self) -> dict[str, _OutColumn]:
        """Values by attribute, in the order asked for."""
    @property
    def damage(self) -> list[str]:
        """What was left out because it is damaged, each a JSON object; of `read_around` only."""
    @property
    def stats(self) -> dict[str, int]:
        """The counters of this read (of the whole scan so far, for a batch)."""

_Buffers = Sequence[tuple[str, _BufferLike, _BufferLike | None, _BufferLike | None]]

@final
class Portions:
    """A read that fills its caller's buffers again and again."""

    @property
    def complete(self) -> bool:
        """Whether every cell was given."""
    @property
    def stats(self) -> dict[str, int] | None: ...
    def next(self, columns: _Buffers | None = None) -> int:
        """Fills the buffers, or those given from now on; gives how many cells, 0 at the end."""

@final
class Scan:
    """A stream of cells in bounded memory."""

    @property
    def damage(self) -> list[str]:
        """What is left out because it is damaged, each a JSON object; of `scan_around` only."""
    def next(self) -> Cells | None:
        """The next batch, None at the end."""

@final
class Answers:
    """The answer to a question batch by batch; `nothing`: one without a group, and which columns may have nulls."""
    def nothing(self) -> tuple[_Answered, list[bool]]: ...
    def next(self) -> _Answered | None: ...

@final
class Staged:
    """Written fragments that no commit refers to yet."""

    @property
    def cells(self) -> int: ...
    @property
    def bytes(self) -> int: ...

@final
class Writer:
    """Cells being streamed, in global order into one fragment or in any order."""

    def append(self, dims: Sequence[_Column] | None, attrs: Mapping[str, _Column]) -> None:
        """Appends cells: in global order into a dense array attribute values only (all attributes of the writer, equal
        counts), else coordinates too."""
    def finish(self) -> Staged: ...
    def abort(self) -> None:
        """Ends it, whatever other threads do with it: a call under way ends with an InputError. A call during another
        one is an InputError and changes nothing."""

@final
class Upkeep:
    """A consolidation that goes on in the background."""

    @property
    def done(self) -> bool: ...
    def cancel(self) -> None: ...
    def wait(self, milliseconds: int) -> str | None:
        """The report in JSON, or None if it goes on still; raises what it failed with."""

@final
class Array:
    """An array at one version of its store."""

    @property
    def uri(self) -> str: ...
    @property
    def key_id(self) -> str | None:
        """The id of the key that seals the store; None if it is not sealed."""
    @property
    def path(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def writable(self) -> bool: ...
    @property
    def version(self) -> int: ...
    @property
    def timestamp_us(self) -> int: ...
    @property
    def schema_json(self) -> str: ...
    def refresh(self) -> int:
        """Moves to the newest version and returns it. An InputError on an array opened at a version."""
    def still(self) -> Array: ...
    def at(self, version: int | str | None, timestamp_us: int | None) -> Array:
        """The same array, read-only, at a version (its number or its tag) or at the last version not after a time."""
    def history(self) -> list[str]:
        """The versions of the store that touch this array, oldest first, each a JSON object: version, time_us,
        message, operations (list of {op, ...}), commit_id, tags (names)."""
    def nonempty_domain(self) -> list[tuple[str, str]] | None: ...
    def fragments(self) -> list[str]:
        """One JSON object per fragment, oldest order first: id, kind ("dense" | "sparse" | "tombstones"), version,
        index, cells, bytes, inline (bool), attrs (names), domain (list of [low, high] texts)."""
    def tiles(self, boxes: _Boxes | None = None) -> dict[str, Any]:
        """The data tiles that touch the boxes: `fragment` (uint32 positions in `fragments()`), `cells` (uint64), and
        `lo`, `hi`: per dimension a column of MBR bounds in the dimension's own type."""
    def read(self, box: _Box | None, attrs: _Names, order: str, progress: _Progress | None = None) -> Cells:
        """Reads a box whole. order: "row", "col", "global", "any". Sparse: cells in that order (ties of duplicates
        in order of writing). Dense: the memory layout of every column ("global", "any": a flat vector
        in global order)."""
    def read_cells(
        self,
        boxes: _Boxes | None,
        attrs: _Names,
        condition: _If,
        order: str,
        progress: _Progress | None = None,
    ) -> Cells:
        """Reads the cells in any of the boxes, each once, that a condition selects, in this order, coordinates
        included for dense arrays too."""
    def read_into(
        self, box: _Box | None, attrs: Sequence[str], order: str, outs: Sequence[Any], progress: _Progress | None = None
    ) -> dict[str, int]:
        """Reads a box of a dense array into contiguous buffers that do not overlap, one per attribute, none of which
        may be null, of variable length or bool; gives the counters."""
    def points(self, dims: Sequence[_Column], attrs: _Names, progress: _Progress | None = None) -> Cells:
        """Reads the cells at these coordinates, in their order. Dense: one row per point, no coordinates. Sparse: the
        cells that exist, with coordinates; duplicates in order of writing."""
    def read_positions(self, chosen: Sequence[_Chosen], mask: _Mask | None, attrs: _Names) -> Cells:
        """Reads the cells at chosen positions, one choice per dimension, in row order. Dense: points first, if
        dimensions are paired or masked, then one axis per other dimension. Sparse: the cells that exist, each once,
        with coordinates; no points, no mask."""
    def scan(
        self, boxes: _Boxes | None, attrs: _Names, order: str, batch_bytes: int, condition: Condition | None = None
    ) -> Scan:
        """Streams boxes, or what a condition selects of them, coordinates included for dense arrays too."""
    def portions(
        self,
        boxes: _Boxes | None,
        attrs: Sequence[str],
        order: str,
        columns: _Buffers,
        batch_bytes: int,
        condition: Condition | None = None,
    ) -> Portions:
        """Starts a read into buffers: of each column its name, values, offsets and validity."""
    def read_around(
        self,
        boxes: _Boxes | None,
        attrs: _Names,
        condition: _If,
        order: str,
        progress: _Progress | None = None,
    ) -> Cells:
        """As `read` or `read_where`, leaving out what is damaged."""
    def scan_around(
        self, boxes: _Boxes | None, attrs: _Names, order: str, batch_bytes: int, condition: Condition | None = None
    ) -> Scan:
        """As `scan`, leaving out what is damaged; the whole box is looked at first."""
    def stage_dense(
        self,
        box: _Box,
        attrs: Mapping[str, _Column],
        layout: str,
        progress: _Progress | None = None,
        commit_key: bytes | None = None,
        grow: bool = False,
    ) -> Staged:
        """Writes a dense box from buffers laid out "row" or "col"; any subset of the attributes."""
    def stage_cells(
        self,
        dims: Sequence[_Column],
        attrs: Mapping[str, _Column],
        sorted: bool,
        dedup: str,
        progress: _Progress | None = None,
        commit_key: bytes | None = None,
        grow: bool = False,
    ) -> Staged:
        """Writes cells (into a sparse or a dense array); dedup: "error", "first", "last"."""
    def stage_positions(self, chosen: Sequence[_Chosen], mask: _Mask | None, attrs: Mapping[str, _Column]) -> Staged:
        """Writes the cells at chosen positions, from columns as they are read; the last value of a cell stays."""
    def stage_delete(
        self, dims: Sequence[_Column], progress: _Progress | None = None, commit_key: bytes | None = None
    ) -> Staged:
        """Writes tombstones for these coordinates."""
    def stage_delete_boxes(self, boxes: _Boxes, commit_key: bytes | None = None) -> Staged:
        """Deletes every cell of the boxes that is older than the commit."""
    def alter(self, evolution_json: str, message: str | None) -> int:
        """Changes the schema and commits that; the version, the present one if nothing changes."""
    def note_ends(self, ends: Sequence[tuple[bool, bool]]) -> None:
        """In a transaction: all beyond these low and high ends of the dimensions counts as read. None given: all."""
    def schema_since(self, known: int | None) -> tuple[int, str] | None:
        """A stamp of the schema and its JSON, with `origin` where the first tile is cut; not if `known`."""
    def receipt_where(self, boxes: _Boxes | None, condition: Condition, progress: _Progress | None = None) -> str:
        """A receipt, as JSON, for a delete of what a condition selects now."""
    def delete_where(
        self,
        boxes: _Boxes | None,
        condition: Condition,
        message: str | None,
        progress: _Progress | None = None,
        commit_key: bytes | None = None,
    ) -> int:
        """Deletes and commits what a condition selects; the version, the present one if that is nothing."""
    def writer(self, box: _Box | None, attrs: _Names, commit_key: _Key = None, grow: bool = False) -> Writer:
        """A stream in global order; the key of its commit, and whether its content names the array by its path."""
    def unsorted_writer(self, attrs: _Names, dedup: str, commit_key: _Key = None, grow: bool = False) -> Writer: ...
    def commit(self, staged: Sequence[Staged], message: str | None) -> int:
        """Commits all in one version, moves to it and returns it; at "r+" only."""
    def receipt(self, staged: Sequence[Staged]) -> str:
        """A receipt, as JSON, for all of them; their files are left to whoever commits it."""
    @property
    def in_transaction(self) -> bool: ...
    def meta_get(self, key: str) -> str | None:
        """JSON text of a metadata value."""
    def meta_keys(self) -> list[str]: ...
    def meta_set(self, changes: Mapping[str, str | None]) -> int:
        """Sets (JSON text) or removes (None) keys in one commit."""
    def consolidate(
        self,
        strategy: str,
        fragments: list[str] | None,
        within: _Boxes | None,
        target_bytes: int,
        dry_run: bool,
        progress: _Progress | None = None,
    ) -> str:
        """A JSON report: {"before": n, "after": n, "overtaken": n, "failure": text | null, "tiles_copied": n,
        "blocks_decoded": n, "merges": [{kind, fragments, cells, bytes, estimate: [fragments, bytes], memory,
        written: [fragments, bytes] | null}]}."""
    def consolidate_in_background(
        self, strategy: str, fragments: list[str] | None, within: _Boxes | None, target_bytes: int
    ) -> Upkeep:
        """Starts it; this handle stays at its version."""
    def upkeep(self) -> Upkeep | None:
        """The consolidation that the context's policy started, if it goes on."""

    @property
    def tags(self) -> list[tuple[str, int]]:
        """The store's tags: (name, version), by name."""
    def vacuum(
        self, keep_us: int | None, versions: int | None, safety_us: int, dry_run: bool, progress: _Progress | None
    ) -> str:
        """A JSON report: {"oldest_before", "oldest", "newest": versions, "records", "data", "manifest", "temporary",
        "young": {objects, bytes}, "leases": n, "held_by": [{tag, version}], "committed": version | null}."""

    def verify(self, progress: _Progress | None) -> str:
        """A JSON report: {"fragments": n, "tiles": n, "blocks": n, "bytes": n,
        "damage": [{fragment, tile, attribute, message}]}."""

@final
class Field:
    """An attribute or dimension of an array, by its name."""

    def __new__(cls, array: Array, name: str) -> Field: ...
    def meta_get(self, key: str) -> str | None: ...
    def meta_keys(self) -> list[str]: ...
    def meta_set(self, changes: Mapping[str, str | None]) -> int: ...

@final
class Group:
    """A group at one version of its store."""

    @property
    def uri(self) -> str: ...
    @property
    def key_id(self) -> str | None:
        """The id of the key that seals the store; None if it is not sealed."""
    @property
    def path(self) -> str: ...
    @property
    def version(self) -> int: ...
    def refreshed(self, context: Context) -> Group:
        """The same group at the newest version of its store, wherever it was moved to."""
    def history(self, context: Context, pinned: bool) -> list[str]:
        """The versions of the store up to this one, oldest first, each as JSON. Up to a newer one, unless `pinned`, if
        a vacuum takes this one away meanwhile."""
    def children(self) -> list[tuple[str, str]]:
        """(name, "array" | "group") of each child, sorted by name."""
    def walk(self) -> list[tuple[str, str]]:
        """(path, "array" | "group") of everything below, each group followed by what is in it."""
    def contains(self, name: str) -> bool:
        """Whether something is called `name`, or lies at this path below."""
    def open(self, name: str, writable: bool, pinned: bool) -> Array | Group:
        """What is called `name`, or lies at this path below, of this version."""
    def create_array(self, context: Context, name: str, schema_json: str, overwrite: bool) -> Array: ...
    def create_group(self, context: Context, name: str) -> Group:
        """The group called `name`, created if nothing lies there."""
    def remove(self, context: Context, name: str, message: str | None) -> int: ...
    def move_child(self, context: Context, name: str, target: str, message: str | None) -> int:
        """Moves what is called `name` to a name or path in this group or, from "/" on, in the store."""
    def meta_get(self, key: str) -> str | None: ...
    def meta_keys(self) -> list[str]: ...
    def meta_set(self, changes: Mapping[str, str | None]) -> int: ...
    @property
    def tags(self) -> list[tuple[str, int]]: ...
    def vacuum(
        self,
        context: Context,
        keep_us: int | None,
        versions: int | None,
        safety_us: int,
        dry_run: bool,
        progress: _Progress | None,
    ) -> str: ...

@final
class Transaction:
    """Changes of any number of arrays that become one version, or none."""

    def __new__(cls, context: Context, uri: str, isolation: str, commit_key: _Key = None) -> Transaction: ...
    @property
    def uri(self) -> str: ...
    @property
    def base_version(self) -> int:
        """The version that it reads."""
    @property
    def version(self) -> int | None:
        """The version that it made, None before it is committed."""
    @property
    def is_open(self) -> bool: ...
    def array(self, path: str) -> Array: ...
    def kind(self, path: str) -> str | None:
        """What lies there: "array", "group" or None."""
    def children(self, path: str) -> list[tuple[str, str]]:
        """(name, "array" | "group") of each child, sorted by name."""
    def create_array(self, path: str, schema_json: str, overwrite: bool, id: str | None = None) -> Array: ...
    def add_receipts(self, receipts: Sequence[str]) -> None: ...
    def meta_get(self, path: str, key: str) -> str | None: ...
    def meta_keys(self, path: str) -> list[str]: ...
    def meta_set(self, path: str, changes: Mapping[str, str | None]) -> None: ...
    def create_group(self, path: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def move_node(self, path: str, target_path: str) -> None: ...
    def commit(self, message: str | None) -> int: ...
    def abort(self) -> None: ...

def foreign_tree(path: str) -> str:
    """The tree of a file of HDF5, NetCDF or NumPy, or of a folder of Zarr, as JSON."""

def look_at_source(array: Array, uri: str) -> tuple[str, int | None, int | None, str | None]:
    """The state of a source now: its URI as the store keeps it, size, time of the last change in microseconds, etag."""

def stage_delete_where(
    array: Array, boxes: _Boxes | None, condition: Condition, progress: _Progress | None = None
) -> Staged:
    """In a transaction: stages what deletes the cells that a condition selects of those that it sees."""

def stage_external(array: Array, spec: str, grow: bool = False, progress: _Progress | None = None) -> Staged:
    """Stages cells of files of another format; `spec` is JSON."""

def foreign_sources(array: Array) -> list[str]:
    """The files of other formats that the cells of an array lie in, each as JSON."""

def attached_boxes(array: Array) -> list[dict[str, Any]]:
    """The boxes of an array that lie in files of other formats, oldest first."""

def replace_attached(array: Array, staged: Sequence[Staged], replaced: Sequence[str]) -> int:
    """Puts staged cells of files in the place of attached boxes; gives the version."""

def append_block(
    array: Array,
    place: tuple[int, int],
    attrs: Mapping[str, _Column],
    layout: str,
    message: str | None,
    progress: _Progress | None = None,
    commit_key: bytes | None = None,
    labels: _Labels | None = None,
) -> int: ...
def aggregate(
    array: Array, boxes: _Area, condition: _If, by: _Keys, aggregates: _Asked, ending: _Ending, progress: _Report = None
) -> _Answered:
    """Aggregates by groups; `ending`: a condition, the order and whether each descends (None: any), how many."""

def answers(
    array: Array, boxes: _Area, condition: _If, by: _Keys, aggregates: _Asked, ending: _Ending, progress: _Report = None
) -> Answers: ...
def partial(
    array: Array, boxes: _Area, condition: _If, by: _Keys, aggregates: _Asked, progress: _Report = None
) -> tuple[_Tables, dict[str, int]]: ...
def merge_partials(
    schema_json: str, by: _Keys, aggregates: _Asked, parts: _Parts
) -> tuple[_Tables, dict[str, int]]: ...
def finish_partials(schema_json: str, by: _Keys, aggregates: _Asked, parts: _Parts) -> _Answered: ...
def reduce(
    array: Array, boxes: _Area, cells: _Counted, aggregates: _Asked, kept: Sequence[int], progress: _Report = None
) -> tuple[list[int], list[_Named], list[str | None], dict[str, int]]: ...
def reduce_nothing(schema_json: str, aggregates: _Asked, kept: Sequence[int], places: int) -> _Answered: ...
def labels_of(array: Array, place: int) -> Array | None: ...
def shared_labels(array: Array, dimension: str, path: str) -> str: ...
def alter_labelled(array: Array, evolution_json: str, listed: Sequence[_Labels], message: str | None) -> int: ...
def create_array(context: Context, uri: str, path: str, schema_json: str, overwrite: bool) -> Array: ...
def create_group(context: Context, uri: str, path: str) -> Group: ...
def open(
    context: Context, uri: str, path: str, writable: bool, version: int | str | None, timestamp_us: int | None
) -> Array | Group: ...
def tag(context: Context, uri: str, name: str, version: int | None, replace: bool) -> int: ...
def untag(context: Context, uri: str, name: str) -> int: ...
def exists(context: Context, uri: str) -> bool: ...
def register_filter(
    id: str, encode: Callable[[bytes, int], object], decode: Callable[[bytes, int], object], overwrite: bool
) -> None: ...
def registered_filters() -> list[str]: ...
def environment_keys() -> Keys | None: ...
def delete_store(context: Context, uri: str) -> None: ...
def check_schema(schema_json: str) -> str: ...
def parse_condition(text: str) -> Condition: ...
def check_condition(condition_json: str, schema_json: str) -> str: ...
def select_rows(condition_json: str, schema_json: str, columns: Mapping[str, _Column]) -> Buffer: ...
def commit_receipts(
    context: Context, uri: str, receipts: Sequence[str], message: str | None, commit_key: bytes | None = None
) -> int: ...
def check_receipt(text: str) -> tuple[str, int, int]: ...
def copy(
    context: Context,
    source: str,
    path: str,
    version: int | str | None,
    target_context: Context,
    target: str,
    target_path: str,
    history: bool,
    overwrite: bool,
    progress: _Progress | None,
) -> str:
    """Copies nodes, or a store with its history; a report as JSON. Progress counts bytes, of a history objects."""

def move_node(context: Context, uri: str, path: str, target_path: str, message: str | None) -> int: ...
def upgrade(context: Context, uri: str) -> int: ...
def forget_copied(
    context: Context, uri: str, keep_us: int | None, versions: int | None, safety_us: int, progress: _Progress | None
) -> str: ...
def store_usage(
    context: Context, uri: str, keep_us: int | None, versions: int | None, safety_us: int
) -> tuple[str, str]: ...
def log_events() -> None: ...
def verify_store(context: Context, uri: str, progress: _Progress | None) -> str: ...
def repair(context: Context, uri: str, dry_run: bool, cut: bool, progress: _Progress | None) -> str: ...
