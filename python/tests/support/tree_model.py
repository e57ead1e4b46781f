"""What a store should hold: a tree of groups and small arrays at every version, in plain Python.

A node keeps its number wherever it is moved; a copy, and what replaces something, is a new one.
"""

import copy
import itertools
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

import gridstone as gs

SIZE = 8
SCHEMAS = {
    "dense": gs.Schema([gs.Dim("x", (0, SIZE - 1), 3)], [gs.Attr("v", "int64"), gs.Attr("s", str, nullable=True)]),
    "sparse": gs.Schema(
        [gs.Dim("x", (0, SIZE - 1), 3)], [gs.Attr("v", "int64"), gs.Attr("s", str, nullable=True)], sparse=True
    ),
}
Cell = tuple[int, str | None]
_numbers = itertools.count()


@dataclass
class Node:
    """A group, or an array with its cells by place."""

    kind: str
    meta: dict[str, Any] = field(default_factory=dict)
    cells: dict[int, Cell] = field(default_factory=dict)
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def is_array(self) -> bool:
        """Whether it holds cells."""
        return self.kind != "group"


Tree = dict[str, Node]
"""Nodes by path; "/" is the root."""


def parents(path: str) -> list[str]:
    """The paths above, the root first."""
    parts = path.strip("/").split("/")
    return ["/", *("/" + "/".join(parts[:i]) for i in range(1, len(parts)))] if path != "/" else []


def below(tree: Tree, path: str) -> list[str]:
    """A path and all paths below it."""
    return [p for p in tree if p == path or path == "/" or p.startswith(path + "/")]


def children(tree: Tree, path: str) -> dict[str, Node]:
    """What lies directly in a group, by name."""
    lead = path.rstrip("/") + "/"
    return {p[len(lead) :]: n for p, n in sorted(tree.items()) if p != "/" and p.rpartition("/")[0] + "/" == lead}


class Refused(Exception):
    """What is asked for must be refused, with an error of one of these classes."""

    def __init__(self, *kinds: type[Exception]) -> None:
        super().__init__(kinds)
        self.kinds = kinds


def add_groups(tree: Tree, paths: list[str]) -> None:
    """Groups at these paths where there are none; refused below an array."""
    if any(path in tree and tree[path].is_array for path in paths):
        raise Refused(gs.errors.GridstoneError)
    for path in paths:
        tree.setdefault(path, Node("group"))


def put(tree: Tree, path: str, node: Node, *, overwrite: bool = False) -> None:
    """A new node; what was there goes if it may be replaced."""
    if path in tree and not overwrite:
        raise Refused(gs.errors.ExistsError)
    if any(above in tree and tree[above].is_array for above in parents(path)):
        raise Refused(gs.errors.GridstoneError)
    remove(tree, path)
    add_groups(tree, parents(path))
    tree[path] = node


def remove(tree: Tree, path: str) -> None:
    """Takes away what lies at a path and below."""
    for gone in below(tree, path):
        del tree[gone]


def move(tree: Tree, path: str, target: str) -> None:
    """Moves what lies at a path, with all below it."""
    if path == "/" or target == path or target.startswith(path + "/"):
        raise Refused(gs.errors.InputError, gs.errors.ExistsError, gs.errors.NotFoundError)
    if path not in tree:
        raise Refused(gs.errors.NotFoundError)
    if target in tree or any(above in tree and tree[above].is_array for above in parents(target)):
        raise Refused(gs.errors.ExistsError)
    moved = {target + p[len(path) :]: tree[p] for p in below(tree, path)}
    remove(tree, path)
    add_groups(tree, parents(target))
    tree.update(moved)


def copied(tree: Tree, path: str) -> Tree:
    """What lies at a path and below, as new nodes, by path from there ("" for itself)."""
    found = {p[len(path.rstrip("/")) :].rstrip("/"): tree[p] for p in below(tree, path)}
    return {p: replace(copy.deepcopy(n), number=next(_numbers)) for p, n in found.items()}


@dataclass
class StoreModel:
    """All versions of a store."""

    now: Tree = field(default_factory=dict)
    versions: dict[int, Tree] = field(default_factory=dict)
    messages: dict[int, str | None] = field(default_factory=dict)
    touched: dict[int, set[int]] = field(default_factory=dict)
    """The numbers of the arrays that a version changed."""
    upkeep: set[int] = field(default_factory=set)
    """What vacuums committed, which changed nothing and counts for nothing."""
    hiding: set[int] = field(default_factory=set)
    """What vacuums committed before, to take out what newer writes hide; counts for nothing either."""
    tags: dict[str, int] = field(default_factory=dict)
    tagged: dict[int, dict[str, int]] = field(default_factory=dict)
    """The tags that each version knows."""

    @property
    def newest(self) -> int:
        """The last version."""
        return max(self.versions, default=0)

    @property
    def oldest(self) -> int:
        """The first version that is kept."""
        return min(self.versions)

    def commit(self, version: int, message: str | None = None, touched: set[int] | None = None) -> None:
        """Keeps `now` as this version."""
        assert version == self.newest + 1, (version, self.newest)
        self.versions[version], self.messages[version] = copy.deepcopy(self.now), message
        self.touched[version], self.tagged[version] = touched or set(), dict(self.tags)

    def forget(self, oldest: int) -> None:
        """Versions before this one go."""
        for version in [v for v in self.versions if v < oldest]:
            del self.versions[version]

    def floor(self, asked: str | int) -> int:
        """The oldest version that is to stay: of an age of nothing, an hour, or a number of versions."""
        if isinstance(asked, str):
            return self.newest if asked == "0s" else self.oldest
        uncounted = self.upkeep if asked == 1 else self.upkeep | self.hiding
        counted = [version for version in sorted(self.versions) if version not in uncounted]
        return counted[-asked] if asked <= len(counted) else self.oldest

    def settled(self, floor: int) -> int:
        """The floor, or what the vacuums right below it left as it was."""
        while floor > self.oldest and floor in self.upkeep:
            floor -= 1
        return floor

    def path_of(self, number: int) -> str | None:
        """Where a node lies now."""
        return next((path for path, node in self.now.items() if node.number == number), None)


def shown(kind: str, found: dict[str, Any]) -> dict[int, Cell]:
    """The cells that a read gives; of a dense array those that are not as if never written."""
    texts = [None if gone else text for text, gone in zip(found["s"].data, np.ma.getmaskarray(found["s"]), strict=True)]
    cells = list(zip(found["v"].tolist(), texts, strict=True))
    if kind == "dense":
        return {x: cell for x, cell in enumerate(cells) if cell != (0, None)}
    return dict(zip(found["x"].tolist(), cells, strict=True))


def look(root: gs.Group, tree: Tree) -> None:
    """Compares a store, from its root on, with a tree: groups, arrays, their metadata and cells."""
    _look_below(root, tree, "/", root.version)


def _look_below(group: gs.Group, tree: Tree, path: str, version: int) -> None:
    look_at_group(group, tree, path, version)
    for name, node in children(tree, path).items():
        child, place = group[name], f"{path.rstrip('/')}/{name}"
        if node.is_array:
            look_at_array(child, place, node)
        else:
            assert isinstance(child, gs.Group)
            _look_below(child, tree, place, version)


def look_at_group(group: gs.Group, tree: Tree, path: str, version: int) -> None:
    """Compares all that a handle of a group says with a tree: of one version, however it is asked."""
    assert (group.path, group.version, dict(group.meta)) == (path, version, tree[path].meta)
    expected = children(tree, path)
    assert list(group) == list(expected) == list(group.keys()) and len(group) == len(expected)
    assert [tuple(entry) for entry in group.children()] == [_entry(f"{path.rstrip('/')}/{n}", tree) for n in expected]
    shown = ", ".join(f"{name} ({'array' if node.is_array else 'group'})" for name, node in expected.items())
    assert repr(group) == f"<gridstone.Group {group.uri!r} {path!r} version {version}: {shown or 'empty'}>"
    html = group._repr_html_()
    assert f", version {version}<" in html and all(escape(f"{path.rstrip('/')}/{name}") in html for name in expected)
    inside = sorted((p for p in below(tree, path) if p != path), key=lambda p: p.split("/"))
    assert [tuple(entry) for entry in group.walk()] == [_entry(p, tree) for p in inside]
    assert all(p[len(path.rstrip("/")) + 1 :] in group for p in inside) and "nothing" not in group
    assert "nothing/below" not in group and group.get("nothing/below") is None


def _entry(path: str, tree: Tree) -> tuple[str, str, str]:
    """What is listed of a node."""
    return path.rpartition("/")[2], path, "array" if tree[path].is_array else "group"


def look_at_array(found: Any, path: str, node: Node) -> None:
    """Compares an array with its node."""
    assert isinstance(found, gs.Array) and found.path == path
    assert found.schema == SCHEMAS[node.kind], path
    assert dict(found.meta) == node.meta
    assert shown(node.kind, found.read().to_numpy()) == node.cells, path
