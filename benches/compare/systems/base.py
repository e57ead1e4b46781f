"""What a system offers. Each imports its library in `prepare`, so that a process holds one only.

Every system has the abstract methods. What raises NotImplementedError some cannot do: the plan never asks them for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

from disk import sync_tree
from inputs import Array, Box, Columns, Layout, Shape, Spans


def threads_started(count: int) -> ThreadPoolExecutor:
    """Threads that run already, so that none is started within a clock."""
    pool, meeting = ThreadPoolExecutor(count), Barrier(count)
    list(pool.map(lambda _: meeting.wait(), range(count)))
    return pool


class System:
    """One way to store something: `family` is what --systems chooses, `variant` tells its compression or order."""

    family = ""
    role = "peer"
    """"gridstone", "peer", "limit": what the machine can do without any of them, or "orientation": what something
    simpler takes, which may be more.
    """
    module = ""
    also: Sequence[str] = ()
    """Modules that it needs beside."""
    settings = ""
    durability = ""

    def __init__(self, variant: str = "") -> None:
        self.variant = variant
        self.threads = 2
        self.bare = False
        """Whether nothing may be warmed up beforehand, because warming up is what is measured."""

    @property
    def name(self) -> str:
        """The name in the tables."""
        return f"{self.family}, {self.variant}" if self.variant else self.family

    @property
    def kept_as(self) -> str:
        """The name of its stores: systems that share one differ in what they do to it only."""
        return self.name

    @property
    def ranked(self) -> bool:
        """Whether it is compared, and chosen by --systems."""
        return self.role in ("gridstone", "peer")

    def confine(self, part: int) -> None:
        """Before `prepare`, where a row asks for one thread: makes sure of it, if settings do not. `part`: of several
        processes, which this is.
        """

    def prepare(self, threads: int) -> None:
        """Imports the library and makes what belongs to the process: threads, an engine. Never timed."""
        self.threads = threads

    def renew(self) -> Any:
        """What the next opening needs that holds no data of a store. Not timed."""

    def finish(self, folder: Path) -> None:
        """Makes a loaded store durable."""
        sync_tree(folder)


class DenseHandle(ABC):
    """An open dense array."""

    @abstractmethod
    def read(self, box: Box) -> Array:
        """The cells of a box, as a new array."""

    def read_into(self, box: Box, out: Array) -> None:
        """The cells of a box, into an array that is there."""
        out[...] = self.read(box)

    def points(self, rows: Array, cols: Array) -> Array:
        """Single cells."""
        raise NotImplementedError

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        """Changes single cells; durable when it returns, if it was opened so."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 -- some hold none
        """Lets go of the files."""


class DenseSystem(System, ABC):
    """A system that stores a dense int32 array."""

    def create(self, folder: Path, shape: Shape, tile: Shape) -> None:
        """An empty array in a folder that does not exist yet."""
        raise NotImplementedError

    def write(self, folder: Path, box: Box, values: Array) -> None:
        """Writes a box of whole tiles; several processes may, at once."""
        raise NotImplementedError

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        """Creates the array and writes all of it; durable when it returns."""
        self.create(folder, (values.shape[0], values.shape[1]), tile)
        self.write(folder, (slice(0, values.shape[0]), slice(0, values.shape[1])), values)
        self.finish(folder)

    def keep(self, folder: Path) -> None:
        """Stores what a load left in memory. Not timed."""

    def merge(self, folder: Path) -> None:
        """Merges what updates left beside the array, as far as the system advises; durable when it returns."""
        raise NotImplementedError

    @abstractmethod
    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> DenseHandle:
        """Opens it with no data cached from earlier; `prepared`: of `renew`, made here if it is None."""


class CellsHandle(ABC):
    """An open set of cells."""

    @abstractmethod
    def read(self, box: Spans | None) -> Columns:
        """All columns of the cells in a box, in any order; None: of all cells."""

    def select(self, box: Spans, name: str, above: int) -> Columns:
        """x, y and one attribute of the cells in a box at which that is greater, in any order."""
        raise NotImplementedError

    def commit(self, cells: Columns) -> None:
        """Adds cells; durable when it returns, if it was opened so."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 -- some hold none
        """Lets go of the files."""


class CellsSystem(System, ABC):
    """A system that stores cells at (x, y) with int64 attributes."""

    @abstractmethod
    def load(self, folder: Path, batches: list[Columns]) -> None:
        """Writes the batches into a folder that does not exist yet; durable when it returns."""

    def pile(self, folder: Path, batches: list[Columns]) -> None:
        """Writes each batch in a commit of its own, merged with no other."""
        self.load(folder, batches[:1])
        handle = self.open(folder, self.renew(), writable=True, durable=False)
        for batch in batches[1:]:
            handle.commit(batch)
        handle.close()
        self.finish(folder)

    def merge(self, folder: Path) -> None:
        """Brings all that was committed into the order of its tiles; durable when it returns."""
        raise NotImplementedError

    def settle(self, folder: Path) -> None:
        """Brings what was loaded into its quickest state for reading, where that is a step of its own. Not timed."""

    def gather(self, folder: Path) -> None:
        """After many small commits: what is advised for reading them, without merging them. Not timed."""

    @abstractmethod
    def open(self, folder: Path, prepared: Any, *, writable: bool = False, durable: bool = True) -> CellsHandle:
        """Opens them, with no data cached from earlier."""

    def look_up(self, folder: Path, prepared: Any, box: Spans) -> Columns:
        """Opens, reads one box and closes, in the way that is quickest for it."""
        handle = self.open(folder, prepared)
        found = handle.read(box)
        handle.close()
        return found


class TableHandle(ABC):
    """An open table of cells at (x, y)."""

    @abstractmethod
    def ask(self, question: Any) -> Columns:
        """The answer to a `Question`: a row per group, in any order."""

    def select(self, name: str, above: float) -> Columns:
        """x, y and one attribute of the cells at which that is greater, in any order."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 -- some hold none
        """Lets go of the files."""


class TableSystem(System, ABC):
    """A system that answers questions to cells at (x, y)."""

    @abstractmethod
    def load(self, folder: Path, cells: Columns, layout: Layout) -> None:
        """Writes the cells into a folder that does not exist yet; durable when it returns."""

    @abstractmethod
    def open(self, folder: Path, prepared: Any) -> TableHandle:
        """Opens them, with no data cached from earlier."""


class CubeHandle(ABC):
    """An open cube of float32."""

    @abstractmethod
    def mean(self, axes: tuple[int, ...]) -> Array:
        """The mean along axes, in the memory of a few tiles."""

    def close(self) -> None:  # noqa: B027 -- some hold none
        """Lets go of the files."""


class CubeSystem(System, ABC):
    """A system that stores a dense cube of float32."""

    @abstractmethod
    def load(self, folder: Path, cube: Array, tile: tuple[int, int, int]) -> None:
        """Creates the array and writes all of it; durable when it returns."""

    @abstractmethod
    def open(self, folder: Path, prepared: Any) -> CubeHandle:
        """Opens it, with no data cached from earlier."""


class FileHandle(ABC):
    """Datasets of a foreign file, open where they lie or as what was made of them."""

    @abstractmethod
    def read(self, box: tuple[slice, ...]) -> Array:
        """The cells of a box, as a new array."""

    def read_into(self, box: tuple[slice, ...], out: Array) -> None:
        """The cells of a box, into an array that is there."""
        raise NotImplementedError

    def mean(self, box: tuple[slice, ...]) -> float:
        """The mean of a box."""
        raise NotImplementedError

    def spectrum(self) -> Columns:
        """The spectrum of particles: see `files.Spectrum`."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 -- some hold none
        """Lets go of the files."""


class FileSystem(System, ABC):
    """A system that answers questions to datasets of a foreign file."""

    in_place = True
    """Whether the file is still read once it was taken."""

    @abstractmethod
    def take(self, source: Path, folder: Path, names: Sequence[str], prepared: Any) -> FileHandle:
        """Makes what it needs of the file, in a folder that does not exist yet; durable when it returns."""

    @abstractmethod
    def open(self, source: Path, folder: Path, prepared: Any) -> FileHandle:
        """Opens what was made, with no data cached from earlier."""

    def join(self, sources: Sequence[Path], folder: Path, prepared: Any) -> None:
        """Makes one array of the dataset `field` of many files, in their order."""
        raise NotImplementedError

    def open_series(self, folder: Path, prepared: Any) -> FileHandle:
        """Opens what `join` made."""
        raise NotImplementedError

    def script(self, source: Path, folder: Path, box: tuple[slice, ...]) -> str:
        """A program without double quotes that imports, takes the file, and prints the mean of a box."""
        raise NotImplementedError


class DatasetSystem(System, ABC):
    """A system that stores a dataset of xarray. `variant`: how it is coded, and the layout of its chunks."""

    @property
    def reduces(self) -> bool:
        """Whether it answers a mean by itself, without Dask."""
        return False

    @property
    def layout(self) -> str:
        """The layout of the chunks: see `Weather.chunk`."""
        return self.variant.split(", ")[1]

    @property
    def coder(self) -> str:
        """How the values are coded."""
        return self.variant.split(", ")[0]

    @abstractmethod
    def write(self, dataset: Any, folder: Path, chunk: tuple[int, ...]) -> None:
        """Writes a dataset into a folder that does not exist yet; more days will follow. Not durable yet."""

    def load(self, dataset: Any, folder: Path, chunk: tuple[int, ...]) -> None:
        """The same; durable when it returns."""
        self.write(dataset, folder, chunk)
        self.finish(folder)

    @abstractmethod
    def append(self, dataset: Any, folder: Path, prepared: Any) -> None:
        """Opens what was written, adds days and closes it. Not durable yet."""

    @abstractmethod
    def open(self, folder: Path, prepared: Any, chunks: Any = None) -> Any:
        """Opens it as a dataset of xarray with no data cached from earlier; `chunks`: {} for Dask's arrays."""

    def mean(self, variable: Any, dim: str) -> Any:
        """The mean of a variable along a dimension, by itself."""
        raise NotImplementedError


class PlotSystem(System, ABC):
    """A system that makes a dataset of xarray of a NetCDF file where it lies."""

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import matplotlib
        import xarray  # noqa: F401 -- its import is in no clock

        matplotlib.use("Agg")

    @abstractmethod
    def open(self, source: Path, folder: Path, prepared: Any) -> Any:
        """Opens the file, with whatever it needs in a folder that does not exist yet."""


class CsvSystem(System, ABC):
    """A system that loads a CSV file."""

    @abstractmethod
    def load(self, folder: Path, csv: Path) -> None:
        """Loads the columns x, y (int32), a and b into a folder that does not exist yet; durable when it returns."""

    @abstractmethod
    def everything(self, folder: Path) -> Columns:
        """All columns that were loaded, in any order."""
