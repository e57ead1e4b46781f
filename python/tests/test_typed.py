"""What a user's own code sees of the types: a sample that `mypy --strict` accepts, and mistakes that it finds."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs

pytest.importorskip("mypy", reason="mypy is not installed: pip install -c constraints.txt 'gridstone[dev]'")

SOUND = """
import datetime as dt
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import gridstone as gs
from gridstone.errors import ConflictError, GridstoneError


def make(uri: str) -> gs.Array:
    schema = gs.Schema(
        [gs.Dim("x", (0, 99), 10), gs.Dim("t", ("2026-01-01", "2026-12-31"), dtype="datetime64[D]")],
        [gs.Attr("v", "float32", fill=np.nan), gs.Attr("n", str, nullable=True)],
        sparse=True,
        duplicates=True,
    )
    return gs.create(uri, schema, context=gs.Context("64MiB", threads=1))


def fill(a: gs.Array, values: npt.NDArray[np.float32]) -> int:
    places = {"x": np.arange(3), "t": ["2026-01-01"] * 3}
    version: int = a.write_cells(places, {"v": values, "n": [None] * 3}, message="first")
    receipt: gs.Receipt = a.write_cells({"x": [1], "t": ["2026-02-01"]}, {"v": [1.0], "n": ["a"]}, commit=False)
    committed: int = gs.commit(a.uri, [receipt], message="second")
    with a.writer(order="any") as w:
        w.append({"x": [5], "t": ["2026-03-01"]}, {"v": [2.0], "n": ["b"]})
    return max(version, committed)


def sound(a: gs.Array) -> bool:
    report: gs.Report = a.verify()
    boxes: list[tuple[tuple[str, str], ...]] = [part.domain for one in report.damage for part in one.affected]
    return report.ok and gs.verify(a.uri).ok and not boxes and not report["damage"]


def look(a: gs.Array) -> float:
    found: gs.Result = a.read({"x": (0, 9)}, attrs=["v"], where=(gs.col("v") > 1) & gs.col("n").is_not_null())
    values: npt.NDArray[Any] = found["v"]
    rows: int = found.to_arrow().num_rows + len(found.to_pandas())
    for batch in a.scan(batch_bytes="1MiB"):
        rows += batch.num_rows
    when: dt.datetime = a.timestamp
    box: tuple[tuple[Any, Any], ...] | None = a.nonempty_domain
    print(a.version, when.isoformat(), box, a.stats["cells_returned"], a.at(version=1).meta.get("k"), rows)
    return float(values.sum())


def places(uri: str) -> Iterator[tuple[str, str]]:
    for entry in gs.ls(uri):
        yield entry.path, entry.kind
    opened = gs.open(uri)
    if isinstance(opened, gs.Group):
        print(list(opened))


def book(uri: str) -> int:
    try:
        with gs.transaction(uri, isolation="serializable") as tx:
            tx["/"].meta["booked"] = True
        return tx.version or 0
    except ConflictError:
        return -1
    except GridstoneError as error:
        raise SystemExit(str(error)) from error


def missing(uri: str) -> str:
    try:
        return gs.open(uri).path
    except (gs.NotFoundError, gs.SnapshotExpiredError) as error:
        return str(error)


dense = gs.array("mem://typed", np.zeros((4, 5)))
dense[1:3, ::2] = 7
dense.oindex[[0, 3], :] = np.ones((2, 5))
dense.meta["unit"] = "m"
print(dense.shape[0] + dense.consolidate("all").fragments_after, dense.vacuum(versions=1).versions)
"""

MISTAKES = {
    'gs.array("mem://x", [1]).write([1], commit=False) + 1': "operator",
    'gs.Context(memory_budget=["1GiB"])': "arg-type",
    'gs.open("mem://x").shape': "union-attr",
    'gs.array("mem://x", [1]).version.lower()': "attr-defined",
    'gs.Schema([gs.Attr("v", int)], [])': "list-item",
    'gs.array("mem://x", [1]).read(oder="row")': "call-arg",
    'gs.array("mem://x", [1]).nothing': "attr-defined",
    'gs.nothing("mem://x")': "attr-defined",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy says of a user's files, line by line."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "sound.py").write_text(SOUND, encoding="utf-8")
    (folder / "mistakes.py").write_text("\n".join(["import gridstone as gs", *MISTAKES, ""]), encoding="utf-8")
    package = Path(gs.__file__).parents[1]
    env = dict(os.environ)
    if "site-packages" not in package.parts:  # A checkout on the path: mypy looks for it in a place of its own.
        env["MYPYPATH"] = str(package)
    # Complaints about other people's packages that have no types are theirs: `silent` leaves out what is imported.
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file="]
    done = subprocess.run(
        [*command, "sound.py", "mistakes.py"], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 1), done.stdout
    return done.stdout.splitlines()


def test_a_users_code_is_sound(said: list[str]) -> None:
    """Every line of it is checked, and what the calls give has the types that the sample's annotations ask for."""
    assert [line for line in said if line.startswith("sound.py")] == []
    assert said[-1].endswith("in 1 file (checked 2 source files)")


def test_the_sample_runs(memory_uri: str) -> None:
    names: dict[str, Any] = {"__name__": "sample"}
    exec(compile(SOUND, "sound.py", "exec"), names)
    made = names["make"](memory_uri)
    assert names["fill"](made, np.arange(3, dtype="float32")) == 3
    assert names["look"](made) == 2 and names["book"](memory_uri) == 5
    assert list(names["places"](memory_uri)) == [("/", "array")]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(said: list[str], mistake: str) -> None:
    number = list(MISTAKES).index(mistake) + 2
    told = [line for line in said if line.startswith(f"mistakes.py:{number}: error:")]
    assert len(told) == 1 and told[0].endswith(f"[{MISTAKES[mistake]}]"), told
