"""The Protocol of an array that indexing reads and writes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from .. import _native
from ..base.progress import Progress
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..context.settings import Context
from ..query.box import Box, BoxLike
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..version.receipt import Closing, Receipt
from ..write.writer import Writer

Found = TypeVar("Found")


class Handle(Protocol):
    """An array at a version of its store, as `gridstone.Array` is."""

    _stats: dict[str, int]

    @property
    def _schema(self) -> Schema: ...

    @property
    def schema_names(self) -> list[str]: ...

    @property
    def sparse(self) -> bool: ...

    @property
    def context(self) -> Context: ...

    def read(self, box: BoxLike = ..., attrs: Sequence[str] | str | None = ...) -> Result: ...

    def _pinned(self) -> "Handle": ...

    def _retry_if_schema_moved(self, look: Callable[[Schema], Found]) -> Found: ...

    def _check_dense(self, what: str) -> None: ...

    def _note_ends(self, key: Any = ...) -> None: ...

    def _read_box(self, schema: Schema, box: Box, names: list[str]) -> dict[str, AnyArray]: ...

    def _read_points(self, dims: Mapping[str, Column], names: Sequence[str], progress: Progress) -> "_native.Cells": ...

    def _writable(self) -> "_native.Array": ...

    def _stage_box(
        self, box: Box, made: Mapping[str, Any], layout: str, message: Closing, progress: Progress, grow: bool = ...
    ) -> int | Receipt: ...

    def _writer(
        self, box: Box | None, names: Sequence[str], closing: Closing, progress: Progress, grow: bool = ...
    ) -> Writer: ...

    def _stage_cells(
        self,
        dims: Mapping[str, Column],
        values: Mapping[str, Column],
        *,
        sorted: bool,
        dedup: str,
        message: Closing,
        progress: Progress,
    ) -> int | Receipt: ...

    def _read_positions(
        self, chosen: Sequence["_native._Chosen"], mask: "_native._Mask | None", names: Sequence[str]
    ) -> "_native.Cells": ...

    def _write_positions(
        self, chosen: Sequence["_native._Chosen"], mask: "_native._Mask | None", values: Mapping[str, Column]
    ) -> None: ...

    def _commit(self, staged: Sequence["_native.Staged"], message: Closing) -> int | Receipt: ...
