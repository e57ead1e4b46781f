"""What objects say that they are, on one line and in notebooks."""

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from places import Stores

import gridstone as gs

ODD = "<b>&'\"v"


class Tags(HTMLParser):
    """The tags and the text of a piece of HTML; all that is opened is closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(thing: Any) -> str:
    """The text of what a notebook shows, in which no value has become a tag."""
    found = Tags(thing._repr_html_())
    assert found.tags <= {"div", "b", "br", "small", "pre", "table", "thead", "tbody", "tr", "th", "td"}
    assert found.text.count("<b>") == thing._repr_html_().count("&lt;b&gt;")
    return found.text


@pytest.fixture
def odd(stores: Stores) -> gs.Array:
    """A sparse array of three commits whose attribute has a name that HTML could take for its own."""
    schema = gs.Schema([gs.Dim("x", (0, 99), 10)], [gs.Attr(ODD, "string")], sparse=True)
    array = gs.create(stores("odd"), schema)
    for start in (0, 10, 20):
        array.write_cells([start, start + 1], ["<script>", "b"], message=f"{ODD} {start}")
    return array


def test_advice(odd: gs.Array) -> None:
    found = gs.advise(odd)
    assert repr(found).startswith("<gridstone.Advice: a sparse schema of x, <b>") and "6 cells>" in repr(found)
    text = shown(found)
    assert "chosen" in text and "gs.Schema(" in text and ODD.replace("'", "\\'") in text
    assert all(reason in text for reason in found.reasons)
    plain = gs.advise(np.arange(1000.0))
    assert "dense" in repr(plain) and "chosen" in shown(plain)
    assert "Trial(" not in repr(found)


def test_difference(odd: gs.Array, stores: Stores) -> None:
    other = gs.create(stores("other"), gs.Schema(odd.schema.dims, odd.schema.attrs, sparse=True, capacity=7))
    other.write_cells([0, 1, 50], ["<i>", "b", "c"])
    found = gs.diff(odd, other)
    assert repr(found) == (
        "<gridstone.Difference: 1 parts of the schema; 1 cells differ, 4 are only in a, 1 only in b>"
    )
    text = shown(found)
    assert "<script>" in text and "<i>" in text and "capacity" in text and "1 are the same" not in text
    none = gs.diff(odd, odd)
    assert repr(none) == "<gridstone.Difference: nothing differs>" and "nothing differs" in shown(none)
    dense = gs.diff(odd, gs.array(stores("dense"), np.arange(3)))
    assert "cannot be compared" in repr(dense) and "cannot be compared" in shown(dense)


def test_consolidation_and_history(odd: gs.Array) -> None:
    planned, done = odd.consolidate("all", dry_run=True), odd.consolidate("all")
    assert repr(planned) == "<gridstone.Consolidation: 3 fragments, 1 after 1 merges planned>"
    assert repr(done) == "<gridstone.Consolidation: 3 fragments, 1 after 1 merges>"
    assert "about" in shown(planned) and "sparse" in shown(done) and "about" not in shown(done)
    assert "sparse" not in shown(odd.consolidate("all"))
    versions = odd.history()
    assert isinstance(versions, list) and all("\n" not in repr(version) for version in versions)
    told = repr(versions[1])
    assert told.startswith(f"<gridstone.Version {versions[1].version}: 20") and " UTC, " in told
    assert "<b>" in told and "\n" not in repr(odd.history())


def test_streams_and_views(odd: gs.Array) -> None:
    stream = odd.scan()
    assert repr(stream) == f"<gridstone.Stream of x, {ODD}: cells are left>"
    assert len(list(stream)) == 1 and repr(stream) == f"<gridstone.Stream of x, {ODD}: at its end>"
    view = odd[ODD]
    assert repr(view).startswith(f"<gridstone.AttrView {ODD!r}: string, of <gridstone.Array")
    for access, name in ((odd.loc, "Loc"), (view.loc, "Loc"), (view.vindex, "VIndex"), (odd.oindex, "OIndex")):
        assert repr(access).startswith(f"<gridstone.{name} of ") and repr(access).endswith("version 4>>")
    odd.close()
    assert "(closed)" in repr(view) and "(closed)" in repr(view.loc)
