"""The second day of a store: a mistake is corrected, a written day is asked for, and a backup gets what is new."""

from pathlib import Path

import numpy as np

from ..arrays.array import Array
from ..column import datatype
from ..stores import copies, usage
from .outcome import Outcome, Tell, check

_TIME, _SHIP, _SPEED = "BaseDateTime", "MMSI", "SOG"


def run(array: Array, backup: str, outcome: Outcome, tell: Tell) -> Array:
    """Corrects the speed of one ship between two backups. Positions without times, ships and speeds are left alone."""
    kinds = {attr.name: attr.dtype for attr in array.schema.attrs}
    if not {_TIME, _SHIP, _SPEED} <= kinds.keys() or not datatype.is_time(kinds[_TIME]):
        return array
    array.refresh()
    with outcome.step("back the store up, with its history", tell) as counters:
        counters["bytes"] = copies.copy(array.uri, backup, history=True).stats["bytes_copied"]
    first = array.head(1, [_SHIP, _TIME])
    ship, day = int(first[_SHIP][0]), str(first[_TIME][0].astype("datetime64[D]"))
    with outcome.step("count the positions of a written day", tell) as counters:
        of_day = array.count(where=f"{_TIME} in period('{day}')")
        counters["cells"] = 1
    chosen = f"{_SHIP} == {ship}"
    before = array.read(where=chosen, order="global", attrs=_SPEED)[_SPEED]
    with outcome.step("halve the speeds of one ship", tell) as counters:
        changed = array.update({_SPEED: f"{_SPEED} * 0.5"}, where=chosen, message="the log was in half knots")
        counters.update(cells=changed.cells, **array.stats)
    after = array.read(where=chosen, order="global", attrs=_SPEED)[_SPEED]
    check(np.allclose(np.sort(after), np.sort(before) / 2, rtol=1e-6, equal_nan=True), array.uri, "the halved speeds")
    with outcome.step("back it up again: what is new", tell) as counters:
        again = copies.copy(array.uri, backup, history=True)
        counters["bytes"] = again.stats["bytes_copied"]
    check(again.version == int(changed), backup, "the backup's newest version")
    whole, new = usage.du(backup).total.bytes, again.stats["bytes_copied"]
    outcome.stores.append(backup)
    outcome.found.append(
        f"{of_day:,} positions are of {day}. The speeds of ship {ship} were halved in {changed.cells:,} cells, in one "
        f"commit. The backup of {whole / 2**20:.1f} MiB got {new / 2**10:,.0f} KiB the second time."
    )
    return array


def place(folder: Path) -> Path:
    """Where the backup lies."""
    return folder / "ais-backup.gs"
