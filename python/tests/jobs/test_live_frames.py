"""The job of an instrument: frames at 100 Hz, appended as they come, beside a live reader in another process."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import gridstone as gs

FRAMES = 150
READER = """
import sys, time
import gridstone as gs

a, seen = gs.open(sys.argv[1]), []
print("ready", flush=True)
deadline = time.monotonic() + 60
while len(a) <= int(sys.argv[2]) and time.monotonic() < deadline:
    a.refresh()
    frames = a[1:]
    # Each look has whole frames, in their order, and all that earlier looks had.
    assert (frames == frames[:, :1, :1]).all()
    assert frames[:, 0, 0].tolist() == list(range(len(frames))) and len(frames) >= (seen or [0])[-1]
    seen.append(len(frames))
    time.sleep(0.01)
print(len(set(seen)), seen[-1])
"""


def test_a_reader_in_another_process_sees_frames_as_they_come(tmp_path: Path) -> None:
    uri = str(tmp_path / "frames.gs")
    dims = [gs.Dim("frame", (0, 0), tile=1), gs.Dim("y", (0, 15)), gs.Dim("x", (0, 15))]
    a = gs.create(uri, gs.Schema(dims, [gs.Attr("v", "uint16")]))
    command = [sys.executable, "-c", READER, uri, str(FRAMES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None and reader.stdout.readline() == "ready\n"
        frame = np.empty((16, 16), np.uint16)
        with a.writer(axis="frame", every=25, seconds=0.1) as writer:
            for number in range(FRAMES):
                frame[:] = number
                writer.append(frame)
                time.sleep(0.005)
        told = reader.stdout.read().split()
    assert reader.returncode == 0
    assert int(told[1]) == FRAMES and int(told[0]) > 1, "frames were seen before the last one came"
    assert len(gs.open(uri)) == FRAMES + 1
