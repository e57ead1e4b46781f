"""A root of GS0: ``docs/format/root-gs0.md``."""

from __future__ import annotations

from typing import Any

from .bytes import Read, Unsupported, need
from .log import Line, hex16, hex32, is_beyond_gs0, root_reference, whole
from .pages import Pages
from .schema import fields, history
from .state import Node, Retained, Version, insert


def state_of(line: Line, data: bytes, read: Read) -> Version:
    """The state that the root ``data`` with this line names."""
    need(line.body == len(data), "a root of GS0 with a body")
    needed = {"gs": int, "record": str, "store": str, "nodes": list}
    optional = {"version": None, "time_us": None, "retained": None}
    top = fields(line.value, needed, optional, "a root of GS0")
    record, store = hex16(top["record"]), hex32(top["store"])
    state = Version(whole(top["version"]), whole(top["time_us"]), record, store, {})
    pages = Pages(read)
    for value in top["nodes"]:
        insert(state, _node(value, pages))
    if top["retained"] is not None:
        state.retained = _retained(top["retained"])
    return state


def _node(value: Any, pages: Pages) -> Node:
    n = fields(value, {"id": str, "path": str, "metadata": dict}, {"array": None}, "a node")
    node = Node(hex32(n["id"]), n["path"], dict(n["metadata"]))
    if n["array"] is not None:
        array = fields(n["array"], {"schemas": list, "pages": list}, {}, "an array")
        if any(isinstance(schema, dict) and is_beyond_gs0(schema) for schema in array["schemas"]):
            raise Unsupported("a schema of GS1 in a root of GS0")
        node.schemas = history(array["schemas"])
        need(node.schemas, "an array without a schema")
        for page in array["pages"]:
            node.fragments += pages.descriptions(page)
    return node


def _retained(value: Any) -> Retained:
    r = fields(value, {"tags": dict, "data": list, "manifest": list}, {"floor": None}, "what is retained")
    tags = {name: whole(version) for name, version in r["tags"].items()}
    data, manifest = ({hex32(i) for i in r[which]} for which in ("data", "manifest"))
    return Retained(tags, root_reference(r["floor"]), data, manifest)
