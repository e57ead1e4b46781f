"""Every member of every handle, in mode "r", in mode "r+" and at an old version: which of them may write."""

import importlib
import inspect
import pkgutil
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from handle_members import DENSE, NO_HANDLES, PAST, QUICK, READERS, REFRESH, TABLE, WRITERS, World, made, through_r_plus
from places import Stores

import gridstone as gs
from gridstone.errors import AccessError, BoundsError, InputError, NotFoundError

READS = [(kind, name) for kind, (reads, _) in TABLE.items() for name in reads]
WRITES = [(kind, name) for kind, (_, writes) in TABLE.items() for name in writes]


def called(case: object) -> str:
    """What a case is called."""
    return case.__name__ if isinstance(case, type) else str(case)


def files(store: Path) -> dict[str, bytes]:
    return {str(p.relative_to(store)): p.read_bytes() for p in sorted(store.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store that no test changes."""
    uri = tmp_path_factory.mktemp("modes") / "template.gs"
    made(uri)
    before = files(uri)
    yield uri
    assert files(uri) == before


# The table knows all there is.


def classes() -> Iterator[type]:
    """All classes of the packages whose objects hold a store, or what was read of one."""
    for package in ("arrays", "stores", "indexing", "write", "result", "maintain"):
        path = importlib.import_module(f"gridstone.{package}").__path__
        for module in (importlib.import_module(f"gridstone.{package}.{m.name}") for m in pkgutil.iter_modules(path)):
            yield from (c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__)


def members(kind: type) -> set[str]:
    """What a user may call or look at."""
    public = {name for name in dir(kind) if not name.startswith("_")}
    ours = [base for base in kind.__mro__ if base.__module__.startswith("gridstone")]
    special = {name for base in ours for name, value in vars(base).items() if name[:2] == "__" and callable(value)}
    return public | (special - {"__init__", "__subclasshook__"}) | ({"_repr_html_"} & set(dir(kind)))


def test_every_class_of_handles_is_in_the_table() -> None:
    found = {kind for kind in classes() if not getattr(kind, "_is_protocol", False)}
    unknown = {kind for kind in found - set(TABLE) - set(WRITERS) if kind.__name__ not in NO_HANDLES}
    assert not unknown, "say in support/handle_members.py what they may do, or that they are no handles"


@pytest.mark.parametrize("kind", [*TABLE, *WRITERS], ids=called)
def test_every_member_is_in_the_table(kind: type) -> None:
    reads, writes = TABLE.get(kind, (dict.fromkeys(WRITERS.get(kind, ())), {}))
    told = {name.partition(",")[0] for name in [*reads, *writes]} | ({REFRESH} & members(kind))
    assert told == members(kind), "say in support/handle_members.py whether they may write"


# In mode "r" and at old versions.


@pytest.mark.parametrize(("kind", "name"), WRITES, ids=called)
def test_a_handle_that_is_opened_for_reading_refuses_to_write(template: Path, kind: type, name: str) -> None:
    before = files(template)
    for way, opened in READERS.items():
        with pytest.raises(AccessError, match=r'mode="r\+"') as refused:
            TABLE[kind][1][name](opened(template))
        assert "past" not in str(refused.value), way
        assert files(template) == before, way


@pytest.mark.parametrize(("kind", "name"), WRITES, ids=called)
def test_a_handle_of_an_old_version_refuses_to_write(template: Path, kind: type, name: str) -> None:
    before = files(template)
    for way, opened in PAST.items():
        with pytest.raises(AccessError, match=r'past.*without a version.*mode="r\+"'):
            TABLE[kind][1][name](opened(template))
        assert files(template) == before, way


@pytest.mark.parametrize(("kind", "name"), READS, ids=called)
def test_what_reads_changes_nothing(template: Path, kind: type, name: str) -> None:
    before = files(template)
    for opened in (READERS["gs.open"], PAST["gs.open"], lambda uri: World(uri, through_r_plus)):
        TABLE[kind][0][name](opened(template))
        assert files(template) == before


# In mode "r+".


@pytest.mark.parametrize(("kind", "name"), WRITES, ids=called)
def test_a_handle_that_is_opened_for_writing_writes(template: Path, tmp_path: Path, kind: type, name: str) -> None:
    uri = tmp_path / "s.gs"
    shutil.copytree(template, uri)
    world, before = World(uri, through_r_plus), files(uri)
    TABLE[kind][1][name](world)
    nothing = "of nothing" in name or name.endswith("uncommitted")
    assert (files(uri) == before) == nothing


def test_what_a_group_makes_can_be_written(tmp_path: Path) -> None:
    group = gs.group(tmp_path / "s.gs", mode="a", context=QUICK)
    assert (group.mode, group.group("g").mode, group.create("a", DENSE).mode) == ("r+", "r+", "r+")
    assert [child.mode for child in group.values()] == ["r+", "r+"]
    read = gs.group(tmp_path / "s.gs")
    assert read.mode == "r" and [child.mode for child in read.values()] == ["r", "r"]


def test_a_transaction_writes_nothing_until_it_commits(template: Path, tmp_path: Path) -> None:
    uri = tmp_path / "s.gs"
    shutil.copytree(template, uri)
    before = files(uri)
    with gs.transaction(uri, context=QUICK) as tx:
        array = tx["/g/dense"]
        assert isinstance(array, gs.Array) and array.mode == "r+"
        array[0, 0] = 3
        array.meta["k"] = 5
        tx.create("/g/new", DENSE)
        tx.move("/g/sparse", "/g/moved")
        tx.group("/h")
        assert files(uri) == before
        tx.abort()
    assert files(uri) == before


# gs.group.


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_typing_error_makes_no_store(stores: Stores, mode: str) -> None:
    with pytest.raises(NotFoundError, match='mode="a"'):
        gs.group(stores("typo"), mode=mode)
    assert not gs.exists(stores("typo"))
    with pytest.raises(NotFoundError):
        gs.group(stores("typo"))
    gs.group(stores("there"), mode="a")
    with pytest.raises(NotFoundError, match='mode="a"'):
        gs.group(stores("there"), path="/typo", mode=mode)
    assert gs.ls(stores("there")) == [] and gs.open(stores("there")).version == 1


def test_a_group_is_opened_in_the_mode_that_is_asked_for(stores: Stores) -> None:
    uri = stores("s")
    made = gs.group(uri, path="/a/b", mode="a")
    assert (made.mode, made.path) == ("r+", "/a/b")
    again = gs.group(uri, path="/a/b", mode="a")
    assert again.version == made.version == 1
    gs.group(uri, path="/a/b", mode="r+").meta["k"] = 1
    assert gs.group(uri, path="/a/b").meta["k"] == 1
    assert [gs.group(uri, mode=mode).mode for mode in ("r", "r+", "a")] == ["r", "r+", "r+"]
    gs.array(uri, np.arange(3), path="/c")
    for mode in ("r", "r+", "a"):
        with pytest.raises(InputError, match="not a group"):
            gs.group(uri, path="/c", mode=mode)
    with pytest.raises(InputError, match="mode"):
        gs.group(uri, mode="w")


# refresh().


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_refreshing_a_deleted_store_says_so(stores: Stores, mode: str) -> None:
    uri = stores("s")
    gs.array(uri, np.arange(3), path="/g/a")
    array: Any = gs.open(uri, path="/g/a", mode=mode)
    group: Any = gs.open(uri, path="/g", mode=mode)
    assert array.refresh() == group.refresh() == array.version
    gs.delete(uri)
    for handle in (array, group):
        with pytest.raises(NotFoundError, match="deleted"):
            handle.refresh()


def test_refreshing_a_store_whose_folder_was_removed_says_so(tmp_path: Path) -> None:
    uri = tmp_path / "s.gs"
    gs.array(uri, np.arange(3), path="/g/a")
    handles: list[Any] = [gs.open(uri, path="/g/a"), gs.open(uri)]
    shutil.rmtree(uri)
    for handle in handles:
        with pytest.raises(NotFoundError, match="deleted"):
            handle.refresh()


def test_refreshing_an_old_version_is_refused(template: Path) -> None:
    for opened in PAST.values():
        world = opened(template)
        for handle in (world.group, world.dense):
            with pytest.raises(BoundsError):
                handle.refresh()
