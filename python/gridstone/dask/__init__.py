"""Arrays as arrays and frames of Dask, and blocks of Dask as commits.

gs.dask.array(gs.open("sea.gs")).mean(axis=0).compute()
gs.dask.store(x, "sea.gs", path="/anomaly")
gs.dask.frame(gs.open("ships.gs"), columns=["sog"], where="sog > 20")
"""

from .frame import frame
from .read import array
from .store import store

__all__ = ["array", "frame", "store"]
