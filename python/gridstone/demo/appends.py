"""Several processes append to one axis; a reader follows frames while a camera appends them."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..arrays.array import Array
from ..column.datatype import AnyArray
from ..errors import GridstoneError
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from ..stores import store
from . import swell, waterfall
from .outcome import Outcome, Tell, check

_SECONDS_MAX = 60


class Looks(NamedTuple):
    """What a reader saw: seconds since the camera began, and how many frames there were."""

    seconds: list[float]
    frames: list[int]


def run(swell_uri: str, film_uri: str, folder: Path, outcome: Outcome, tell: Tell) -> None:
    """Both, each compared with what was sent, and drawn."""
    spectra, senders = _buoys(swell_uri, outcome, tell)
    film, looks = _camera(film_uri, outcome, tell)
    outcome.stores += [swell_uri, film_uri]
    with outcome.step("draw appends.png", tell):
        shown = [(number, film[number]) for number in range(0, 12, 2)]
        target = waterfall.draw(spectra[...], senders, looks, shown, folder / "appends.png")
    outcome.pictures.append(str(target))


def _buoys(uri: str, outcome: Outcome, tell: Tell) -> tuple[Array, AnyArray]:
    """The array that all buoys appended to, and which buoy sent each row."""
    rows = Dim("row", (0, swell.ROWS - 1), tile=swell.ROWS)
    first = store.create(uri, Schema([rows, Dim("bin", (0, swell.BINS - 1))], [Attr("power", "float32")]))
    first[...] = swell.block(0, 0)
    before = first.at(version=first.version)
    with outcome.step(f"append from {swell.BUOYS} processes to one axis", tell) as counters:
        _together([_sender(uri, "buoy", number) for number in range(swell.BUOYS)])
        array = store.open_array(uri)
        counters["cells"] = array.shape[0] * array.shape[1]
    blocks = swell.BUOYS * swell.BLOCKS
    check(array.shape == (blocks * swell.ROWS, swell.BINS), uri, f"{blocks} blocks of {swell.ROWS} rows were sent")
    check(array.version == before.version + blocks - 1, uri, "each block is one commit, and a repeated one none")
    check(before.shape == (swell.ROWS, swell.BINS), uri, "the version before the appends has another shape")
    check(np.array_equal(before[...], swell.block(0, 0)), uri, "the version before the appends has changed")
    senders = _senders(array)
    outcome.found.append(
        f"{swell.BUOYS} processes appended at once, each with one block sent twice under its key: {array.shape[0]:,} "
        f"rows came, every one once, those of each process in order. The version before still has {before.shape[0]}."
    )
    return array, senders


def _senders(array: Array) -> AnyArray:
    """Which buoy sent each row. Every row that was sent is there once, and each buoy's lie in the order sent."""
    sent = {
        row.tobytes(): (buoy, number * swell.ROWS + place)
        for buoy in range(swell.BUOYS)
        for number in range(swell.BLOCKS)
        for place, row in enumerate(swell.block(buoy, number))
    }
    rows = array[...]
    found = [sent.pop(row.tobytes(), None) for row in rows]
    lost = sum(one is None for one in found)
    check(lost == 0 and not sent, array.uri, f"{lost} rows that no one sent or twice, {len(sent)} that did not come")
    made = [one for one in found if one is not None]
    for buoy in range(swell.BUOYS):
        order = [place for sender, place in made if sender == buoy]
        check(order == sorted(order), array.uri, f"the rows of buoy {buoy} are out of order")
    return np.array([sender for sender, _ in made])


def _camera(uri: str, outcome: Outcome, tell: Tell) -> tuple[Array, Looks]:
    """The film, and how it grew in the eyes of a reader that was open all the time."""
    begun = swell.TOGETHER
    dims = [Dim("frame", (0, begun - 1), tile=begun), Dim("y", (0, swell.HEIGHT - 1)), Dim("x", (0, swell.WIDTH - 1))]
    first = store.create(uri, Schema(dims, [Attr("height", "float32")]))
    first[...] = np.stack([swell.frame(number) for number in range(begun)])
    reader = store.open_array(uri)
    early, looks = reader.at(version=reader.version), Looks([0.0], [begun])
    with outcome.step("follow frames while another process appends them", tell) as counters:
        camera = _sender(uri, "camera", swell.FRAMES)
        try:
            _begin(camera)
            start = time.perf_counter()
            while len(reader) < swell.FRAMES and time.perf_counter() - start < _SECONDS_MAX:
                is_over = camera.poll() is not None
                reader.refresh()
                if len(reader) > looks.frames[-1]:
                    _compare(reader, looks.frames[-1])
                    looks.seconds.append(time.perf_counter() - start)
                    looks.frames.append(len(reader))
                elif is_over:
                    break
                time.sleep(0.005)
        finally:
            _end(camera)
        counters["cells"] = reader.size
    check(len(reader) == swell.FRAMES, uri, f"{swell.FRAMES} frames were sent, {len(reader)} came")
    check(early.shape == (begun, swell.HEIGHT, swell.WIDTH), uri, "the version before the appends has another shape")
    outcome.found.append(
        f"A reader saw {len(reader)} frames come in {len(looks.frames) - 1} steps while a camera appended them, and "
        f"compared each. The version before still has shape {early.shape}, the newest has {reader.shape}."
    )
    return reader, looks


def _compare(film: Array, begin: int) -> None:
    """The frames that are new to the reader are those that were sent."""
    for number, frame in enumerate(film[begin:], start=begin):
        check(np.array_equal(frame, swell.frame(number)), film.uri, f"frame {number}")


def _sender(uri: str, kind: str, number: int) -> "subprocess.Popen[str]":
    """A process that imports this package, wherever it was found."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from gridstone.demo import sender; sender.main(sys.argv[1:])"
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", code, uri, kind, str(number)], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def _together(senders: Sequence["subprocess.Popen[str]"]) -> None:
    """Lets all begin at once, and waits for them."""
    try:
        for sender in senders:
            _ready(sender)
        for sender in senders:
            _go(sender)
    finally:
        for sender in senders:
            _end(sender)


def _begin(sender: "subprocess.Popen[str]") -> None:
    _ready(sender)
    _go(sender)


def _ready(sender: "subprocess.Popen[str]") -> None:
    assert sender.stdout is not None
    sender.stdout.readline()


def _go(sender: "subprocess.Popen[str]") -> None:
    assert sender.stdin is not None
    try:
        sender.stdin.write("\n")
        sender.stdin.flush()
    except BrokenPipeError:
        pass  # It has ended; `_end` says why.


def _end(sender: "subprocess.Popen[str]") -> None:
    """Waits for a process; an error tells what it wrote last."""
    try:
        _, told = sender.communicate(timeout=_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        sender.kill()
        sender.communicate()
        raise GridstoneError(f"a process that appends did not end in {_SECONDS_MAX} seconds; try again") from None
    if sender.returncode != 0:
        last = told.strip().rpartition("\n")[2]
        raise GridstoneError(
            f"a process that appends ended with status {sender.returncode}: {last or 'it said nothing'}"
        )
