"""What a row is to reach, as numbers, and whether a run reached it. A target is a ratio measured in one run."""

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

Row = Mapping[str, Any]
Rows = Mapping[str, list[Row]]
"""The figures by key of the case, Gridstone's judged variant first."""

_SAME_SIZE = 1.01
"""A hundredth more is no larger: indexes and checksums."""


@dataclass(frozen=True)
class Reach:
    """One condition. `value` takes the figures of all cases and the key of its own; None: it cannot be told."""

    text: str
    needed: float
    at_least: bool
    value: Callable[[Rows, str], float | None]
    remark: Callable[[Rows, str], str] = lambda rows, key: ""
    """What the value is to be read with, or why there is none."""

    def judge(self, rows: Rows, key: str) -> dict[str, Any]:
        """The value that was measured, and whether it is enough."""
        value = self.value(rows, key)
        met = None if value is None else (value >= self.needed if self.at_least else value <= self.needed)
        told = {"text": self.text, "needed": self.needed, "at_least": self.at_least, "value": value, "reached": met}
        return {**told, "remark": self.remark(rows, key)}


def _own(rows: Rows, key: str) -> Row | None:
    return next((row for row in rows.get(key, []) if row["role"] == "gridstone"), None)


def _peers(rows: Rows, key: str, among: str, role: str = "peer") -> list[Row]:
    """The peers whose name begins with `among`, or whose variant is `among`."""
    found = [row for row in rows.get(key, []) if row["role"] == role]
    return [row for row in found if row["system"].startswith(among) or row["system"].endswith(f", {among}")]


def _median(row: Row) -> float:
    return float(row["seconds"]["median"])


def faster(times: float, among: str = "") -> Reach:
    """At least `times` as fast as the quickest of these peers."""

    def value(rows: Rows, key: str) -> float | None:
        own, peers = _own(rows, key), _peers(rows, key, among)
        return min(map(_median, peers)) / _median(own) if own and peers else None

    return Reach(f"≥ ×{times:g} of {among or 'the best peer'}", times, True, value)


def _others(rows: Rows, key: str, among: str) -> list[Row]:
    """Gridstone's other variants, of which the name begins with `among`."""
    variants = [row for row in rows.get(key, []) if row["role"] == "gridstone"][1:]
    return [row for row in variants if row["system"].startswith(f"gridstone, {among}")]


def no_slower(times: float, among: str) -> Reach:
    """At most `times` the time of the quickest of these peers."""

    def value(rows: Rows, key: str) -> float | None:
        own, peers = _own(rows, key), _peers(rows, key, among)
        return _median(own) / min(map(_median, peers)) if own and peers else None

    return Reach(f"≤ {times:g}× of {among}", times, False, value)


def sooner(times: float, among: str) -> Reach:
    """At least `times` as fast as the quickest of these variants of Gridstone itself."""

    def value(rows: Rows, key: str) -> float | None:
        own, others = _own(rows, key), _others(rows, key, among)
        return min(map(_median, others)) / _median(own) if own and others else None

    return Reach(f"≥ ×{times:g} of {among}", times, True, value)


def within_variant(times: float, among: str) -> Reach:
    """At most `times` the time of the quickest of these variants of Gridstone itself."""

    def value(rows: Rows, key: str) -> float | None:
        own, others = _own(rows, key), _others(rows, key, among)
        return _median(own) / min(map(_median, others)) if own and others else None

    return Reach(f"≤ {times:g}× of {among}", times, False, value)


def before_the_end(among: str) -> Reach:
    """All of it, before the first step of the quickest of these variants of Gridstone itself has ended."""

    def value(rows: Rows, key: str) -> float | None:
        own, others = _own(rows, key), _others(rows, key, among)
        return min(float(row["each"][0]) for row in others) / _median(own) if own and others else None

    return Reach(f"before what is {among} is there", 1, True, value)


def crossover(among: str) -> Reach:
    """After how many steps the first of these variants has taken less than the first one, steps before included; it is
    shown. Where it lies beyond the last step it comes from the median of the steps.
    """

    def found(rows: Rows, key: str) -> tuple[float | None, str]:
        own, others = _own(rows, key), _others(rows, key, among)
        if not own or not others:
            return None, ""
        mine, other = own["each"], others[0]["each"]
        own_step, other_step = statistics.median(mine[1:]), statistics.median(other[1:])
        told = f"{mine[0]:.3f} s + {own_step * 1e3:.3g} ms each; {among}: {other[0]:.3f} s + {other_step * 1e3:.3g} ms"
        for step, (a, b) in enumerate(zip(accumulate(mine), accumulate(other), strict=True)):
            if step and b <= a:
                return step, told
        if own_step <= other_step:
            return None, told
        return math.ceil((other[0] - mine[0]) / (own_step - other_step)), told

    return Reach(
        f"steps until {among} pays (shown)",
        1,
        True,
        lambda rows, key: found(rows, key)[0],
        lambda rows, key: found(rows, key)[1],
    )


def no_limits(rows: list[Row]) -> dict[str, str]:
    """Those of a case's limits that are none, since a system took less: each with the quickest such system."""
    ranked = [row for row in rows if row["role"] in ("gridstone", "peer")]
    limits = [row for row in rows if row["role"] == "limit"]
    best = min(ranked, key=_median, default=None)
    return {row["system"]: best["system"] for row in limits if best is not None and _median(best) < _median(row)}


def near_limit(times: float) -> Reach:
    """At most `times` the time of the machine's limit; no verdict where the limit is none."""

    def limit(rows: Rows, key: str) -> Row | None:
        return min(_peers(rows, key, "", "limit"), key=_median, default=None)

    def value(rows: Rows, key: str) -> float | None:
        own, quickest = _own(rows, key), limit(rows, key)
        if own is None or quickest is None or quickest["system"] in no_limits(rows[key]):
            return None
        return _median(own) / _median(quickest)

    def remark(rows: Rows, key: str) -> str:
        quickest = limit(rows, key)
        faster = no_limits(rows[key]).get(quickest["system"]) if quickest else None
        return f"limit slower than {faster}" if faster else ""

    return Reach(f"≤ {times:g}× the raw limit", times, False, value, remark)


def no_larger(among: str = "") -> Reach:
    """Not more bytes on disk than the smallest of these peers."""

    def value(rows: Rows, key: str) -> float | None:
        own, peers = _own(rows, key), _peers(rows, key, among)
        return own["disk_bytes"] / min(p["disk_bytes"] for p in peers) if own and peers else None

    return Reach(f"bytes ≤ {_SAME_SIZE:g}× {among or 'the smallest peer'}", _SAME_SIZE, False, value)


def no_larger_than_best() -> Reach:
    """Not more bytes on disk than the quickest peer."""

    def value(rows: Rows, key: str) -> float | None:
        own, peers = _own(rows, key), _peers(rows, key, "")
        return own["disk_bytes"] / min(peers, key=_median)["disk_bytes"] if own and peers else None

    return Reach(f"bytes ≤ {_SAME_SIZE:g}× the best peer's", _SAME_SIZE, False, value)


def at_most(milliseconds: float) -> Reach:
    """At most so long; meant at scale 1 on the machine of the targets."""

    def value(rows: Rows, key: str) -> float | None:
        own = _own(rows, key)
        return _median(own) * 1e3 if own else None

    return Reach(f"≤ {milliseconds:g} ms", milliseconds, False, value)


def growth_at_most(mebibytes: float) -> Reach:
    """The process's memory grows by at most so many MiB over what it held before."""

    def value(rows: Rows, key: str) -> float | None:
        own = _own(rows, key)
        return own["rss_growth_bytes"] / 2**20 if own else None

    return Reach(f"grows ≤ {mebibytes:g} MiB", mebibytes, False, value)


def within_case(times: float, other: str) -> Reach:
    """At most `times` the time of Gridstone itself in another case."""

    def value(rows: Rows, key: str) -> float | None:
        own, base = _own(rows, key), _own(rows, other)
        return _median(own) / _median(base) if own and base else None

    return Reach(f"≤ {times:g}× of {other}", times, False, value)


def scaling(times: float, base: str, two: str) -> Reach:
    """At least `times` as fast as Gridstone itself in the case `base`. The remark: what is no system and does
    nothing else gains from there to the case `two`.
    """

    def value(rows: Rows, key: str) -> float | None:
        own, before = _own(rows, key), _own(rows, base)
        return _median(before) / _median(own) if own and before else None

    def remark(rows: Rows, key: str) -> str:
        before, after = _peers(rows, base, "", "orientation"), _peers(rows, two, "", "orientation")
        if not before or not after:
            return ""
        return f"{after[0]['system']}: {_median(before[0]) / _median(after[0]):.2f}"

    return Reach(f"≥ ×{times:g} of {base}", times, True, value, remark)
