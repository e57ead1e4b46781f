"""The job of a climate cube: days of one variable, appended by two processes."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import gridstone as gs

WRITER = """
import sys
import numpy as np
import gridstone as gs

uri, part = sys.argv[1], int(sys.argv[2])
a = gs.open(uri, mode="r+")
for day in range(20):
    days = 1 + (part + day) % 4
    a.append(np.full((days, 6, 8), part * 100 + day, np.float32), axis="time", commit_key=f"{part}-{day}")
    if day % 7 == 3:  # A job that was started again.
        a.append(np.full((days, 6, 8), part * 100 + day, np.float32), axis="time", commit_key=f"{part}-{day}")
"""


def test_two_processes_append_days_and_each_day_is_there_once(tmp_path: Path) -> None:
    uri = str(tmp_path / "cube.gs")
    start = np.datetime64("2026-01-01", "D")
    dims = [gs.Dim("time", (start, start), tile=1, dtype="datetime64[D]"), gs.Dim("lat", (0, 5)), gs.Dim("lon", (0, 7))]
    a = gs.create(uri, gs.Schema(dims, [gs.Attr("t2m", "float32")]))
    jobs = [subprocess.Popen([sys.executable, "-c", WRITER, uri, str(part)]) for part in range(2)]
    assert [job.wait(120) for job in jobs] == [0, 0]
    a.refresh()
    cube = a[1:]
    assert (cube == cube[:, :1, :1]).all()
    values, counts = np.unique(cube[:, 0, 0], return_counts=True)
    want = {part * 100 + day: 1 + (part + day) % 4 for part in range(2) for day in range(20)}
    assert dict(zip(values.astype(int).tolist(), counts.tolist(), strict=True)) == want
    assert np.count_nonzero(np.diff(cube[:, 0, 0])) == 39, "each block is in one piece"
    last = start + len(cube)
    assert a.domain[0] == (start, last) and a.read({"time": (last, last)})["t2m"].shape == (1, 6, 8)
    a.consolidate("all")
    assert np.array_equal(a[1:], cube)
