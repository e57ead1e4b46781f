"""Icechunk: Zarr's chunks with snapshots and commits, through xarray."""

from pathlib import Path
from typing import Any

from systems import zarr


class Dataset(zarr.Dataset):
    """A dataset of xarray in a repository."""

    family, module = "icechunk", "icechunk"
    also = ("xarray", "dask", "zarr")
    durability = "atomic commits, synced by none of its own; fsync of every file and directory after them"
    settings = (
        "xarray's to_zarr into a session's store and a commit (its to_icechunk calls what newer xarray does not have), "
        "local_filesystem_storage; open_zarr of a read-only session; all else default; threading.max_workers and the "
        "coordinate's chunk as zarr"
    )

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import icechunk  # noqa: F401 -- its import is in no clock

    def write(self, dataset: Any, folder: Path, chunk: tuple[int, ...]) -> None:
        from icechunk import Repository, local_filesystem_storage

        session = Repository.create(local_filesystem_storage(str(folder))).writable_session("main")
        dataset.to_zarr(session.store, mode="w-", encoding=self.encoding(chunk), consolidated=False)
        session.commit("written")

    def append(self, dataset: Any, folder: Path, prepared: Any) -> None:
        from icechunk import Repository, local_filesystem_storage

        session = Repository.open(local_filesystem_storage(str(folder))).writable_session("main")
        dataset.to_zarr(session.store, append_dim="time", consolidated=False)
        session.commit("a day more")

    def open(self, folder: Path, prepared: Any, chunks: Any = None) -> Any:
        import xarray as xr
        from icechunk import Repository, local_filesystem_storage

        session = Repository.open(local_filesystem_storage(str(folder))).readonly_session("main")
        return xr.open_zarr(session.store, chunks=chunks, consolidated=False)
