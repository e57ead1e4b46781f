"""The HTML of arrays in notebooks."""

import json
from typing import Protocol

from .. import _native
from ..base import drawer, html
from ..schema.array_schema import Schema
from ..version.history import time_text

_FRAGMENTS_MAX = 10


class Open(Protocol):
    """An array that is open."""

    @property
    def native(self) -> "_native.Array": ...

    @property
    def uri(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def schema(self) -> Schema: ...


def closed(uri: str) -> str:
    """The place of an array that is closed."""
    return f"<div><b>gridstone.Array</b> {html.escape(uri)} (closed)</div>"


def opened(array: Open) -> str:
    """Place and version, then the schema and a small picture, then the fragments."""
    native, path = array.native, array.path
    place = html.escape(array.uri if path == "/" else f"{array.uri} {path}")
    head = f"<b>gridstone.Array</b> {place}, version {native.version} ({time_text(native.timestamp_us)})"
    picture = drawer.thumbnail(array)
    return f"<div>{head}{html.beside(array.schema._repr_html_(), picture)}{_fragments(native)}</div>"


def _fragments(native: "_native.Array") -> str:
    """How many fragments there are, and the newest of them."""
    found = [json.loads(text) for text in native.fragments()]
    rows = [
        (
            one["kind"],
            one["version"],
            f"{one['cells']:,}",
            f"{one['bytes']:,}",
            " x ".join(f"{lo}..{hi}" for lo, hi in one["domain"]),
        )
        for one in found[-_FRAGMENTS_MAX:]
    ]
    cells, size = (sum(one[key] for one in found) for key in ("cells", "bytes"))
    title = f"<small>{len(found):,} fragments, {cells:,} cells, {size:,} bytes"
    title += f"; the newest {len(rows)}:</small>" if len(rows) < len(found) else "</small>"
    return title + (html.table(("kind", "version", "cells", "bytes", "box"), rows) if rows else "")
