"""Every array of Zarr in the test data: attached and equal to what zarr reads, or refused."""

import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

import gridstone as gs

zarr = pytest.importorskip("zarr", minversion="3")

DATA = Path(os.environ.get("GRIDSTONE_TEST_DATA", Path(__file__).parents[3].parent / "shared" / "data")) / "zarr"
TABLE = Path(__file__).with_name("zarr_data.tsv")
"""What became of each array: written anew with GRIDSTONE_WRITE_TABLES=1, and looked at."""
ARCHIVES = sorted(DATA.glob("*.tar.gz")) if DATA.is_dir() else []

pytestmark = pytest.mark.filterwarnings("ignore")


def _arrays(root: Path) -> list[Path]:
    """The folders with metadata of an array."""
    found = {path.parent for name in (".zarray", "zarr.json") for path in root.rglob(name)}
    return sorted(path for path in found if (path / ".zarray").exists() or _is_array(path / "zarr.json"))


def _is_array(path: Path) -> bool:
    text = path.read_text()
    return '"node_type": "array"' in text or '"node_type":"array"' in text


def _outcome(array: Path, store: Path) -> tuple[str, bool]:
    """What becomes of an array, in a line; and whether its values are those that zarr reads."""
    try:
        a = gs.attach(store, array, "/")
    except gs.errors.GridstoneError as error:
        reason = str(error).replace(str(array), "").lstrip(": ").partition(";")[0]
        return f"refused: {type(error).__name__}: {reason}", True
    assert isinstance(a, gs.Array)
    found = np.asarray(a[...])
    try:
        expected = np.asarray(zarr.open_array(array, mode="r")[...])
    except Exception as error:
        return f"{a.shape} {a.dtype}, which zarr does not read: {type(error).__name__}", True
    same = found.shape == expected.shape and (
        found.tolist() == expected.tolist()
        if expected.dtype.kind not in "biufc"
        else np.array_equal(found, expected, equal_nan=expected.dtype.kind in "fc")
    )
    return f"{a.shape} {a.dtype}", same


def _kept() -> dict[str, str]:
    rows = [line.split("\t") for line in TABLE.read_text().splitlines() if line] if TABLE.exists() else []
    return {row[0]: row[1] for row in rows}


@pytest.mark.skipif(not ARCHIVES, reason=f"there are no archives in {DATA}; set GRIDSTONE_TEST_DATA")
def test_every_array_is_attached_or_refused_as_the_table_says(tmp_path: Path) -> None:
    outcomes: dict[str, str] = {}
    differing: list[str] = []
    for archive in ARCHIVES:
        root = tmp_path / archive.name.removesuffix(".tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(root, filter="data")
        for number, array in enumerate(_arrays(root)):
            name = str(array.relative_to(tmp_path))
            outcomes[name], same = _outcome(array, tmp_path / f"{root.name}-{number}.gs")
            if not same:
                differing.append(name)
    assert differing == []
    assert len(outcomes) > 25
    if os.environ.get("GRIDSTONE_WRITE_TABLES"):
        TABLE.write_text("".join(f"{name}\t{outcome}\n" for name, outcome in outcomes.items()))
    assert outcomes == _kept()
