"""Prints a store as the independent reader sees it: ``python vectors/reader.py STORE [VERSION [KEY]]`` (hex)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from gsreader import Absent, Damaged, Store, Unsupported

CELLS_MAX = 1_000_000


def listing(store: Store, version: int) -> dict[str, Any]:
    """A version's nodes, and of every array that is not too large its cells."""
    state = store.at(version)
    nodes = []
    for node in sorted(state.nodes.values(), key=lambda n: n.path):
        listed: dict[str, Any] = {"path": node.path, "kind": node.kind, "metadata": node.metadata}
        if node.owner is not None:
            listed["hidden"] = True
        if node.fields:
            listed["fields"] = node.fields_json()
        if node.schemas:
            schema, places = node.schemas[-1], 1
            domain = [(dim.low, dim.high) for dim in schema.dims]
            for low, high in domain:
                places *= max(high - low + 1, 0)
            listed["schema"] = schema.json
            listed["fragments"] = len(node.fragments)
            if schema.sparse or places <= CELLS_MAX:
                listed["cells"], listed["columns"] = store.columns(node, domain)
        nodes.append(listed)
    return {"version": version, "time_us": state.time_us, "nodes": nodes}


def main(arguments: list[str]) -> int:
    """The command line."""
    if len(arguments) not in (1, 2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    store = Store(Path(arguments[0]), bytes.fromhex(arguments[2]) if len(arguments) > 2 else None)
    try:
        version = int(arguments[1]) if len(arguments) > 1 else store.newest()
        print(json.dumps(listing(store, version), ensure_ascii=False))
    except (Absent, Damaged, Unsupported) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
