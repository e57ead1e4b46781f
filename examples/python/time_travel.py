"""Versions of a grid: a history with messages, tags, differences, and a way back.

Run it in an empty folder: it makes `levels.gs` there.
"""

import numpy as np

import gridstone as gs


def main() -> None:
    levels = gs.array("levels.gs", np.zeros((50, 80), "float32"), name="level")
    levels[10:20, 30:40] = 1.5
    gs.tag("levels.gs", "as delivered")
    levels.refresh()
    levels.write_cells(([0, 49], [0, 79]), {"level": [9.0, 8.0]}, message="two gauges")

    for entry in levels.history():
        print(entry.version, entry.message or "")

    # By number, by tag, by time.
    delivered = gs.open("levels.gs", version="as delivered")
    assert delivered[0, 0] == 0 and levels[0, 0] == 9
    moment = levels.history()[-1].timestamp
    assert gs.open("levels.gs", timestamp=moment).version == levels.version

    # What changed since? Cells are compared by their coordinates.
    difference = gs.diff(delivered, levels)
    assert not difference.cells_equal
    print(difference)

    # Several arrays in one version: all of it, or nothing.
    try:
        with gs.transaction("levels.gs") as tx:
            tx["/"][0, 0] = -1
            raise ValueError("the second step failed")
    except ValueError:
        pass
    levels.refresh()
    assert levels[0, 0] == 9

    # The way back is a write, and what it undoes can still be read.
    undone = levels.version
    levels[...] = delivered[...]
    assert levels[0, 0] == 0 and levels.at(version=undone)[0, 0] == 9


if __name__ == "__main__":
    main()
