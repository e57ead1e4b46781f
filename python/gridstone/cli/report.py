"""What `info` and `history` print of arrays and groups."""

import json
import math
from collections.abc import Sequence
from typing import Any

import click

from .. import _native
from ..advice import tile_overlap
from ..arrays.array import Array
from ..arrays.metadata import Metadata
from ..base.printable import printable
from ..column.datatype import show as show_value
from ..schema.dimension import Dim
from ..stores.group import Group
from ..stores.nodes import Entry
from ..version.history import Version, time_text
from .output import bytes_text, emit_table


def summary(array: Array) -> dict[str, Any]:
    """An array in a few words."""
    return {
        "uri": array.uri,
        "path": array.path,
        "version": array.version,
        "timestamp": array.timestamp,
        "schema": json.loads(array.schema.to_json()),
    }


def sealed(found: Array | Group) -> str:
    """Whether the store is encrypted, and under which key."""
    return "not sealed" if found.key_id is None else f"sealed (AES-256-GCM) with the key {found.key_id}"


def details(array: Array) -> dict[str, Any]:
    """Everything that `info` tells, in plain values."""
    return {
        **summary(array),
        "key_id": array.key_id,
        "nonempty_domain": array.nonempty_domain,
        "fragments": array.fragments.to_pylist(),
        "attached": outside(array),
        "tiles": tile_overlap.report(array),
        "versions": len(array.history()),
        "metadata": dict(array.meta),
    }


def outside(array: Array) -> dict[str, int]:
    """How much of an array lies in files of other formats: cells, files, and the bytes of these."""
    rows = [json.loads(text) for text in _native.foreign_sources(array.native)]
    boxes = _native.attached_boxes(array.native)
    changed = sum(row["problem"] is not None for row in rows)
    cells = sum(math.prod(shape) for _, shape in {(tuple(box["position"]), tuple(box["shape"])) for box in boxes})
    return {"cells": cells, "files": len(rows), "bytes": sum(row["size"] or 0 for row in rows), "changed": changed}


def group_details(group: Group) -> dict[str, Any]:
    """Everything that `info` shows of a group, in plain values."""
    return {
        "uri": group.uri,
        "path": group.path,
        "version": group.version,
        "key_id": group.key_id,
        "metadata": dict(group.meta),
        "children": [entry._asdict() for entry in group.children()],
    }


def version(found: Version) -> dict[str, Any]:
    """A version in plain values."""
    return {
        "version": found.version,
        "timestamp": found.timestamp,
        "message": found.message,
        "kind": found.kind,
        "fragments": found.fragments,
        "cells": found.cells,
        "bytes": found.bytes,
        "deleted_cells": found.deleted_cells,
        "removed": found.removed,
        "removed_bytes": found.removed_bytes,
        "operations": list(found.operations),
        "commit_id": found.commit_id,
        "tags": list(found.tags),
    }


VERSION_HEADER = ("version", "time (UTC)", "what", "fragments", "cells", "size", "message", "tags")


def version_row(found: Version) -> tuple[Any, ...]:
    """A version in a table."""
    when = time_text(found.time_us).removesuffix(" UTC")
    fragments = f"+{found.fragments:,}" if found.fragments else ""
    fragments += f" -{found.removed:,}" if found.removed else ""
    cells = f"{found.cells:,}" if found.cells else ""
    cells += f" -{found.deleted_cells:,}" if found.deleted_cells else ""
    size = bytes_text(found.bytes) if found.bytes else ""
    tags = ", ".join(found.tags)
    return (str(found.version), when, found.kind, fragments.strip(), cells.strip(), size, found.message, tags)


def show_entries(entries: Sequence[Entry]) -> None:
    """What a group holds, for people."""
    emit_table(None, ("name", "kind", "path"), [(e.name, e.kind, e.path) for e in entries])


def show_group(group: Group) -> None:
    """`info` of a group for people."""
    click.echo(f"{group.uri} {printable(group.path)}: group, version {group.version}")
    click.echo(sealed(group))
    show_entries(group.children())
    _show_meta(group.meta)


def show(array: Array) -> None:
    """`info` for people."""
    kind = "sparse" if array.sparse else "dense"
    when = time_text(array.native.timestamp_us)
    click.echo(f"{array.uri} {printable(array.path)}: {kind} array, version {array.version} of {when}")
    click.echo(sealed(array))
    click.echo(array.schema._options_text() + "\n")
    found = array.nonempty_domain or (None,) * array.ndim
    labelled = any(d._labels_text for d in array.schema.dims)
    dims = [
        (
            d.name,
            d.dtype,
            *(("", f"{d.max_bytes} bytes") if d.is_text else _ends(d)),
            "whole" if d.tile is None else str(d.tile),
            _span(used),
            *((d._labels_text,) if labelled else ()),
        )
        for d, used in zip(array.schema.dims, found, strict=True)
    ]
    more = ("labels",) if labelled else ()
    emit_table("dimensions", ("name", "type", "from", "to", "tile", "written", *more), dims)
    attrs = [
        (a.name, a.described, a.nullable, show_value(a.fill, a.dtype), f"{a.filters} (lossy)" if a.lossy else a.filters)
        for a in array.schema.attrs
    ]
    emit_table("attributes", ("name", "type", "nullable", "fill", "filters"), attrs)
    _show_fragments(array)
    _show_tiles(array)
    _show_meta(array.meta)
    for name, meta in [(d.name, array.dim(d.name).meta) for d in array.schema.dims]:
        _show_meta(meta, f" of {printable(name)}")
    for name in array.schema_names:
        _show_meta(array[name].meta, f" of {printable(name)}")


def _show_meta(meta: Metadata, owner: str = "") -> None:
    for key in meta:
        click.echo(f"meta{owner} {printable(key)} = {meta.text_of(key)}")


def _ends(dim: Dim) -> tuple[str, str]:
    """The ends of a domain, and whether they are open."""
    shown = ("", "") if dim.is_empty else (show_value(dim.reach[0], dim.dtype), show_value(dim.reach[1], dim.dtype))
    low, high = (
        f"{end or 'none yet'} (open)" if is_open else end for end, is_open in zip(shown, dim.open, strict=True)
    )
    return low or "none yet", high or "none yet"


def _span(used: Any) -> str:
    return "nothing" if used is None else f"{show_value(used[0])} .. {show_value(used[1])}"


def _show_fragments(array: Array) -> None:
    fragments = array.fragments.to_pylist()
    shown = [
        (f["kind"], str(f["version"]), f["cells"], bytes_text(f["bytes"]), ", ".join(f["attrs"] or []))
        for f in fragments[-20:]
    ]
    title = f"fragments: {len(fragments)}" + (f" (the newest {len(shown)})" if len(shown) < len(fragments) else "")
    emit_table(title, ("kind", "version", "cells", "size", "attributes"), shown)
    found = outside(array)
    if found["files"]:
        changed = f"; {found['changed']} changed, moved or not to be read" if found["changed"] else ""
        click.echo(
            f"attached: {found['cells']:,} cells lie outside the store, in {found['files']:,} files of "
            f"{bytes_text(found['bytes'])}{changed}"
        )


def _show_tiles(array: Array) -> None:
    click.echo(tile_overlap.text(tile_overlap.report(array)))
