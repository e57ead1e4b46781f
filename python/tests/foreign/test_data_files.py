"""Every HDF5, NetCDF and NumPy file of the test data: attached and equal to what h5py reads, or refused."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate import AT_GATE

import gridstone as gs

h5py = pytest.importorskip("h5py")

DATA = Path(os.environ.get("GRIDSTONE_TEST_DATA", Path(__file__).parents[3].parent / "shared" / "data"))
TABLE = Path(__file__).with_name("data_files.tsv")
"""What became of each file, and why: written anew with GRIDSTONE_WRITE_TABLES=1, and looked at."""
_MAGIC = (b"\x89HDF\r\n\x1a\n", b"CDF\x01", b"CDF\x02", b"CDF\x05", b"\x93NUMPY")


def _files() -> list[Path]:
    if not DATA.is_dir():
        return []
    found = []
    for path in sorted(DATA.rglob("*")):
        if path.is_file() and path.stat().st_size >= 8:
            with path.open("rb") as file:
                head = file.read(8)
            named = path.suffix in (".h5", ".hdf5", ".nc", ".nxs", ".h5ad", ".hdf")
            if head.startswith(_MAGIC) or named:
                found.append(path)
    return found


FILES = _files()
_CELLS_MAX = 1 << 24
"""Larger arrays are attached, and not compared."""


def _arrays(group: gs.Group) -> Iterator[gs.Array]:
    for entry in group.walk():
        if entry.kind == "array":
            found = group[entry.path.removeprefix(group.path).strip("/")]
            assert isinstance(found, gs.Array)
            yield found


def _expected(file: Any, array: gs.Array) -> dict[str, Any] | None:
    """What h5py reads of the dataset of an array, by attribute; None if it cannot read it."""
    encoding = next((array[attr.name].meta.get("encoding") for attr in array.schema.attrs), None)
    path = encoding["dataset"] if encoding else array.path
    try:
        read = file[path][()]
    except (OSError, KeyError, TypeError, ValueError, RuntimeError):
        return None
    if getattr(read, "dtype", None) is None or not read.dtype.names:
        return {array.schema.attrs[0].name: read}
    found: dict[str, Any] = {}
    for attr in array.schema.attrs:
        value = read
        for part in attr.name.split("."):
            value = value[part]
        found[attr.name] = value
    return found


def _equal(found: Any, expected: Any) -> bool:
    found, expected = np.asarray(np.ma.getdata(found)), np.asarray(expected)
    if found.dtype.kind in "SV" and expected.dtype.kind in "mM":
        # h5py keeps times as opaque bytes.
        return np.ascontiguousarray(expected).tobytes() == np.ascontiguousarray(found).tobytes()
    if found.dtype.kind in "OTU" or expected.dtype.kind in "OSVU":
        texts = [[_text(one) for one in values.ravel().tolist()] for values in (found, expected)]
        return texts[0] == texts[1]
    native = expected.astype(expected.dtype.newbyteorder("="))
    return found.shape == native.shape and np.array_equal(found, native, equal_nan=native.dtype.kind in "fcmM")


def _text(one: Any) -> Any:
    if isinstance(one, np.ndarray | list):
        return [_text(inner) for inner in one]
    if isinstance(one, bytes):
        return one.rstrip(b"\0").decode("utf-8", "surrogateescape")
    return one.rstrip("\0") if isinstance(one, str) else one


def _outcome(path: Path, folder: Path) -> tuple[str, list[str]]:
    """What becomes of a file, in a line; and where values differ from those of h5py."""
    differing: list[str] = []
    try:
        made = gs.attach(folder / "store.gs", path, decode=False)
    except gs.errors.GridstoneError as error:
        return f"refused: {type(error).__name__}\t{_reason(error, path)}", differing
    assert isinstance(made, gs.Group)
    arrays = unreadable = 0
    reasons: set[str] = set()
    opened = _opened(path)
    for array in _arrays(made):
        arrays += 1
        if array.size > _CELLS_MAX:
            continue
        try:
            read = array.read()
        except gs.errors.GridstoneError as error:
            unreadable += 1
            reasons.add(f"unreadable: {_reason(error, path)}")
            continue
        expected = None if opened is None else _expected(opened, array)
        for attr in array.schema.attrs:
            if attr.enumeration is None and expected is not None and not _equal(read[attr.name], expected[attr.name]):
                differing.append(f"{array.path}:{attr.name}")
    groups = [made, *(made[entry.path.strip("/")] for entry in made.walk() if entry.kind == "group")]
    refused = [reason for one in groups for reason in one.meta.get("not attached", {}).values()]
    reasons |= {_reason(reason, path) for reason in refused}
    told = " | ".join(sorted(reasons))
    return f"{arrays} arrays, {len(refused)} not attached, {unreadable} unreadable\t{told}", differing


def _reason(error: Any, path: Path) -> str:
    """Why, in a line: without the places of files, and without the numbers and names that differ within a file."""
    text = str(error).replace(str(path), "the file").replace(str(path.parent), "its folder").splitlines()[0]
    text = re.sub(r"[\w.]+-\d+/store\.gs|/\S*store\.gs", "the store", text)
    text = re.sub(r"(?<![\w.])/[^\s:,;'\"]+", "PATH", re.sub(r"'[^']*'|\"[^\"]*\"", "NAME", text))
    return re.sub(r"\b[0-9a-f]{16,}\b|\d+", "N", text)[:160]


def _opened(path: Path) -> Any:
    if "cve" in path.name:
        # h5py itself dies of some of these.
        return None
    try:
        return h5py.File(path, "r")
    except OSError:
        return None


def _looked_at() -> list[Path]:
    """The files: at the gate the first one of each kind with each outcome, and those that the table does not have."""
    if not AT_GATE or os.environ.get("GRIDSTONE_WRITE_TABLES"):
        return FILES
    kept, names = _kept(), {path: str(path.relative_to(DATA)) for path in FILES}
    firsts = {(path.suffix, kept.get(name, name)): path for path, name in reversed(names.items())}
    return sorted(firsts.values())


def _kept() -> dict[str, str]:
    rows = [line.split("\t") for line in TABLE.read_text().splitlines() if line] if TABLE.exists() else []
    return {row[0]: "\t".join(row[1:]) for row in rows}


@pytest.mark.skipif(not FILES, reason=f"there are no data files in {DATA}; set GRIDSTONE_TEST_DATA")
def test_every_file_is_attached_or_refused_as_the_table_says(tmp_path: Path) -> None:
    outcomes: dict[str, str] = {}
    wrong: dict[str, list[str]] = {}
    for number, path in enumerate(_looked_at()):
        name = str(path.relative_to(DATA))
        folder = tmp_path / str(number)
        folder.mkdir()
        before = path.stat().st_mtime_ns
        outcomes[name], differing = _outcome(path, folder)
        assert path.stat().st_mtime_ns == before
        if differing and "cve" not in name:
            wrong[name] = differing
    assert wrong == {}
    if os.environ.get("GRIDSTONE_WRITE_TABLES"):
        TABLE.write_text("".join(f"{name}\t{outcome}\n" for name, outcome in outcomes.items()))
    assert outcomes == {name: outcome for name, outcome in _kept().items() if not AT_GATE or name in outcomes}
