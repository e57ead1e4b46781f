"""This project on HDF5 files: attached where they lie, loaded by h5py, or attached and then brought home."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from files import ABOVE, FIELD, WIDTH
from inputs import Array, Columns
from systems.base import FileHandle, FileSystem, PlotSystem
from systems.gridstone import _Gridstone

_SLAB_BYTES = 256 << 20
"""Read from the file, and written in one commit."""


class _Files(_Gridstone, FileSystem):
    settings = (
        "Context(threads=…, sources=['/']), all else default; a new context for each opening, its "
        "threads started by a read of another array, in memory; loaded: by h5py, 256 MiB in a commit, in tiles of the "
        "file's chunks; brought home: attached, then consolidate('all')"
    )

    reads: Mapping[str, Any] = {"sources": ["/"]}

    @property
    def kept_as(self) -> str:
        return self.name

    def take(self, source: Path, folder: Path, names: Sequence[str], prepared: Any) -> "_Handle":
        import gridstone as gs

        made = gs.attach(folder, source, list(names), context=prepared)
        return _Handle(made)

    def open(self, source: Path, folder: Path, prepared: Any) -> "_Handle":
        import gridstone as gs

        return _Handle(gs.open(folder, context=prepared))


class Attached(_Files):
    """`gridstone.attach`."""

    def __init__(self) -> None:
        super().__init__("attached")

    def join(self, sources: Sequence[Path], folder: Path, prepared: Any) -> None:
        import gridstone as gs

        gs.attach(folder, list(sources), FIELD, concat="d0", context=prepared).close()

    def open_series(self, folder: Path, prepared: Any) -> "_Handle":
        import gridstone as gs

        return _Handle(gs.open(folder, context=prepared))

    def script(self, source: Path, folder: Path, box: tuple[slice, ...]) -> str:
        bounds = {f"d{axis}": (one.start, one.stop - 1) for axis, one in enumerate(box)}
        return f"import gridstone as gs; found = gs.attach('{folder}', '{source}', '{FIELD}').mean(box={bounds})"


class Loaded(_Files):
    """What h5py reads, written into an array of tiles as the file's chunks; `filters` of its attributes."""

    in_place = False

    def __init__(self, filters: str) -> None:
        super().__init__(f"loaded, {filters}")
        self._filters = filters

    @property
    def filters(self) -> str | list[str]:
        return self._filters.split(" + ") if " + " in self._filters else self._filters

    @property
    def flags(self) -> list[str]:
        return []

    def take(self, source: Path, folder: Path, names: Sequence[str], prepared: Any) -> "_Handle":
        import h5py

        import gridstone as gs

        with h5py.File(source) as file:
            datasets = {name: file[name] for name in names}
            first = next(iter(datasets.values()))
            tile = first.chunks or tuple(min(n, 1 << 20) for n in first.shape)
            dims = [gs.Dim(f"d{i}", (0, n - 1), t) for i, (n, t) in enumerate(zip(first.shape, tile, strict=True))]
            attrs = [gs.Attr(name, one.dtype.name, filters=self.filters) for name, one in datasets.items()]
            made = gs.create(folder, gs.Schema(dims, attrs), context=prepared)
            row = sum(one.nbytes // one.shape[0] for one in datasets.values())
            step = max(tile[0], _SLAB_BYTES // row // tile[0] * tile[0])
            for start in range(0, first.shape[0], step):
                made[start : start + step] = {name: one[start : start + step] for name, one in datasets.items()}
        return _Handle(made)


class Home(_Files):
    """Attached, then brought home."""

    in_place = False

    def __init__(self) -> None:
        super().__init__("brought home")

    def take(self, source: Path, folder: Path, names: Sequence[str], prepared: Any) -> "_Handle":
        handle = super().take(source, folder, names, prepared)
        handle.array.consolidate("all")
        return handle


class Plot(_Gridstone, PlotSystem):
    """The tree of a NetCDF file, attached and opened as a dataset of xarray."""

    also = ("xarray", "matplotlib")
    settings = _Files.settings + "; attach, and open_dataset with engine gridstone"
    reads: Mapping[str, Any] = {"sources": ["/"]}

    def __init__(self) -> None:
        super().__init__("attached")

    def open(self, source: Path, folder: Path, prepared: Any) -> Any:
        import xarray as xr

        import gridstone as gs

        gs.attach(folder, source, context=prepared).close()
        return xr.open_dataset(folder, engine="gridstone", context=prepared)


class _Handle(FileHandle):
    def __init__(self, array: Any) -> None:
        self.array = array

    def read(self, box: tuple[slice, ...]) -> Array:
        found: Array = self.array[box]
        return found

    def read_into(self, box: tuple[slice, ...], out: Array) -> None:
        self.array.read(box, out=out)

    def mean(self, box: tuple[slice, ...]) -> float:
        bounds = {name: (one.start, one.stop - 1) for name, one in zip(self.array.dims, box, strict=True)}
        return float(self.array.aggregate({"mean": f"mean({FIELD})"}, box=bounds)["mean"][0])

    def spectrum(self) -> Columns:
        asked = {"n": "count(*)", "mean": "mean(ux)"}
        found: Columns = self.array.aggregate(asked, {"energy": WIDTH}, where=f"energy > {ABOVE}").to_numpy()
        return {name: np.asarray(column) for name, column in found.items()}

    def close(self) -> None:
        self.array.close()
