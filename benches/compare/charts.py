"""The figures as pictures: the times of all systems by family of cases, and Gridstone's beside the best peer's."""

from pathlib import Path
from typing import Any

_COLOURS = {
    "gridstone": "#d1495b", "tiledb": "#2e6f95", "h5py": "#66a182", "zarr": "#edae49", "zarrs": "#c98a1b",
    "icechunk": "#a9d6e5", "netCDF4": "#4f8a6a", "h5netcdf": "#8cc5a2",
    "tensorstore": "#8d6a9f", "duckdb": "#f2d544", "parquet": "#7f7f7f", "raw file": "#cccccc",
    "raw columns": "#cccccc", "memcpy": "#e8e8e8", "zstd alone": "#e8e8e8", "numpy": "#cccccc",
}  # fmt: skip

_VARIANTS = [("-", "o"), ("--", "s"), (":", "^"), ("-.", "D")]


def draw(folder: Path, results: dict[str, Any]) -> list[Path]:
    """Writes one PNG for each family and one of the ratios; none without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    cases = [case for case in results["cases"] if case["systems"]]
    families = dict.fromkeys(case["family"] for case in cases)
    made = [_family(folder, name, [c for c in cases if c["family"] == name]) for name in families]
    made += _fragments(folder, cases)
    compared = [case for case in cases if _ratio(case) is not None]
    return [*made, _ratios(folder, compared)] if compared else made


def _family(folder: Path, name: str, cases: list[dict[str, Any]]) -> Path:
    """Horizontal bars, a group for each case, on a log scale; whiskers from the quickest run to the slowest."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    count = sum(len(case["systems"]) + 1 for case in cases)
    figure = Figure(figsize=(10, 1.2 + 0.2 * count), layout="constrained")
    axes = figure.subplots()
    ticks, labels, at, families = [], [], 0, {}
    for case in cases:
        axes.text(
            0, at, f" {case['key']}: {case['title']}", transform=axes.get_yaxis_transform(), va="center", weight="bold"
        )
        at += 1
        for row in case["systems"]:
            seconds = row["seconds"]
            error = [[seconds["median"] - seconds["min"]], [seconds["max"] - seconds["median"]]]
            colour = families.setdefault(row["family"], _COLOURS.get(row["family"], "black"))
            axes.barh(at, seconds["median"], color=colour, xerr=error, error_kw={"lw": 0.7})
            ticks.append(at)
            labels.append(row["system"])
            at += 1
    quickest = min(row["seconds"]["min"] for case in cases for row in case["systems"])
    axes.set(xscale="log", xlabel="seconds, log scale; median, quickest and slowest run")
    axes.set(xlim=(quickest / 2, None), ylim=(at - 0.3, -0.7))
    axes.set_yticks(ticks, labels, fontsize=7)
    axes.legend(handles=[Patch(color=c, label=f) for f, c in families.items()], fontsize=7, loc="upper right")
    axes.grid(axis="x", alpha=0.3)
    path = folder / f"{name.replace(' ', '-')}.png"
    figure.savefig(path, dpi=110)
    return path


_BY_FRAGMENTS = {"D5a": "a box of a dense array", "S3b": "a box of cells"}
"""Rows whose cases are named by the fragments beside the first one, or "merged"."""


def _fragments(folder: Path, cases: list[dict[str, Any]]) -> list[Path]:
    """What reading costs with more and more fragments, and after they were merged (the paper's figure 12, and its like
    for cells).
    """
    from matplotlib.figure import Figure

    rows = {row: [c for c in cases if c["row"] == row] for row in _BY_FRAGMENTS}
    if not all(len(found) > 1 for found in rows.values()):
        return []
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, (row, found) in zip(figure.subplots(1, 2), rows.items(), strict=True):
        names = [case["key"].removeprefix(f"{row}-") for case in found]
        drawn: dict[str, int] = {}
        for system in dict.fromkeys(entry["system"] for case in found for entry in case["systems"]):
            told = [next((e["seconds"]["median"] for e in c["systems"] if e["system"] == system), None) for c in found]
            at = [i for i, seconds in enumerate(told) if seconds is not None]
            # Variants of one system share its colour, and differ in line and mark.
            family = system.partition(",")[0]
            drawn[family] = drawn.get(family, 0) + 1
            line, mark = _VARIANTS[(drawn[family] - 1) % len(_VARIANTS)]
            axes.plot(at, [1e3 * (told[i] or 0.0) for i in at], marker=mark, ls=line, label=system,
                      color=_COLOURS.get(family))  # fmt: skip
        axes.set_xticks(range(len(names)), [n if n == "merged" else f"1 + {int(n):,}" for n in names])
        axes.set(yscale="log", xlabel="fragments", ylabel="milliseconds, log scale", title=_BY_FRAGMENTS[row])
        axes.grid(axis="y", alpha=0.3)
        axes.legend(fontsize=7)
    path = folder / "fragments.png"
    figure.savefig(path, dpi=110)
    return [path]


def _ratio(case: dict[str, Any]) -> float | None:
    own = next((row for row in case["systems"] if row["role"] == "gridstone"), None)
    return None if own is None else own["times_best_peer"]


def _ratios(folder: Path, cases: list[dict[str, Any]]) -> Path:
    """How many times as fast as the best peer Gridstone is, case by case."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 1.2 + 0.22 * len(cases)), layout="constrained")
    axes = figure.subplots()
    ratios = [_ratio(case) or 1.0 for case in cases]
    colours = [_COLOURS["gridstone"] if ratio >= 1 else _COLOURS["parquet"] for ratio in ratios]
    axes.barh(range(len(cases)), [ratio - 1 for ratio in ratios], left=1, color=colours)
    axes.axvline(1, color="black", lw=0.8)
    axes.set(
        xscale="log", xlabel="best peer's time over Gridstone's, log scale; left of 1: slower", ylim=(len(cases), -1)
    )
    axes.set_yticks(range(len(cases)), [f"{case['key']}: {case['title']}" for case in cases], fontsize=7)
    axes.grid(axis="x", alpha=0.3)
    path = folder / "ratios.png"
    figure.savefig(path, dpi=110)
    return path
