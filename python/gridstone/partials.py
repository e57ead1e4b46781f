"""Partial results of questions, that `Array.partial` makes: merged in any order, and finished.

parts = [a.partial({"m": "mean(v)"}, by="k", box=box) for box in boxes]
gs.partials.finish(gs.partials.merge(parts))
"""

from .arrays.partials import finish, merge

__all__ = ["finish", "merge"]
