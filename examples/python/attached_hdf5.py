"""A file of HDF5 as an array, in place: nothing is copied, and the file is never written.

Run it in an empty folder: it makes `run.h5` and `run.gs` there. Needs h5py (`pip install 'gridstone[hdf5]'`).
"""

from pathlib import Path

import h5py
import numpy as np

import gridstone as gs


def main() -> None:
    energy = np.arange(60_000, dtype="float64").reshape(200, 300)
    with h5py.File("run.h5", "w") as file:  # any file you have
        dataset = file.create_dataset(
            "detector/energy", data=energy, chunks=(50, 100), compression="gzip", shuffle=True
        )
        dataset.attrs["unit"] = "keV"
    stamp = Path("run.h5").read_bytes()

    run = gs.attach("run.gs", "run.h5", "/detector/energy")
    assert run.shape == (200, 300) and run.meta["unit"] == "keV"
    assert (run[40:60, 90:110] == energy[40:60, 90:110]).all()
    print(f"{run.max()} {run.meta['unit']} at most; the store takes {size('run.gs')} bytes")

    # An update goes into the store and hides the cells of the file.
    attached = run.version
    run[0] = -1.0
    assert (run[0] == -1).all() and (run.at(version=attached)[0] == energy[0]).all()
    assert Path("run.h5").read_bytes() == stamp

    # The cells become the store's own, and the file may go.
    run.consolidate("all")
    Path("run.h5").unlink()
    assert (gs.open("run.gs")[1:] == energy[1:]).all()
    print(f"without the file the store takes {size('run.gs')} bytes")


def size(folder: str) -> int:
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


if __name__ == "__main__":
    main()
