"""The ten figures of the README: their table, and their chart in docs/pictures/speed.png.

`front.json` holds the figures, with the names that a visitor understands beside the cases of the benchmark. A full run
with `--write-docs` renews them; `python benches/compare/front.py` writes the table and the chart again. `alone` marks a
figure that a later run of its row alone has renewed.
"""

import json
from pathlib import Path
from typing import Any

import publish
import report

HERE = Path(__file__).parent
_ROOT = HERE.parents[1]
_PEERS = {
    "tiledb": "TileDB",
    "duckdb": "DuckDB",
    "tensorstore": "TensorStore",
    "zarr": "Zarr",
    "parquet": "Parquet",
}

Row = dict[str, Any]


def rows() -> list[Row]:
    """The recorded figures, in the order of the README."""
    recorded: list[Row] = json.loads((HERE / "front.json").read_text(encoding="utf-8"))["rows"]
    return recorded


def renew(results: dict[str, Any]) -> list[Row]:
    """The same rows with the figures of a run; a case that the run lacks keeps what is recorded."""
    cases = {case["key"]: case["systems"] for case in results["cases"]}
    return [_renewed(row, cases.get(row["case"], [])) for row in rows()]


def _renewed(row: Row, systems: list[dict[str, Any]]) -> Row:
    own = next((s for s in systems if s["role"] == "gridstone"), None)
    peers = [s for s in systems if s["role"] == "peer"]
    if own is None or not peers:
        return row
    best = min(peers, key=lambda s: float(s["seconds"]["median"]))
    figures = {"seconds": own["seconds"]["median"], "ratio": own["times_best_peer"], "peer": best["family"]}
    return {**row, **figures, "alone": False}


def table(figures: list[Row]) -> str:
    """One line for each workload, in Markdown."""
    lines = ["| workload | Gridstone | best peer | times as fast |", "|---|---:|---|---:|"]
    lines += [
        f"| {row['workload']}{' ¹' if row['alone'] else ''} | {report.seconds_text(row['seconds'])} | {_peer(row)} "
        f"| {row['ratio']:.2f} |"
        for row in figures
    ]
    return "\n".join(lines)


def cases(figures: list[Row]) -> str:
    """Which row of the benchmark each workload is, in Markdown."""
    return "\n".join(["| in the README | row |", "|---|---|", *(f"| {r['workload']} | {r['case']} |" for r in figures)])


def draw(figures: list[Row], target: Path) -> None:
    """A bar for each workload: how many times as fast as the best peer, on a log scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 0.42 * len(figures) + 0.9), layout="constrained")
    axes = figure.subplots()
    ratios = [row["ratio"] for row in figures]
    colours = ["#1c7293" if ratio >= 1 else "#c26d3f" for ratio in ratios]
    axes.barh(range(len(figures)), [ratio - 1 for ratio in ratios], left=1, color=colours, height=0.66)
    for at, row in enumerate(figures):
        ahead = row["ratio"] >= 1
        axes.annotate(f"{row['ratio']:.2f} × {_peer(row)}", (row["ratio"], at), (5 if ahead else -5, 0), fontsize=9,
                      textcoords="offset points", va="center", ha="left" if ahead else "right")  # fmt: skip
    axes.axvline(1, color="#333333", lw=0.9)
    axes.set(xscale="log", xlim=(0.26, 9), ylim=(len(figures) - 0.4, -0.6))
    axes.set_xticks([0.5, 1, 2, 4], ["half as fast", "as fast", "2 times", "4 times"])
    axes.minorticks_off()
    axes.set_yticks(range(len(figures)), [row["workload"] for row in figures])
    axes.set_title("Gridstone's speed beside the best peer's", loc="left", fontsize=11)
    axes.tick_params(left=False)
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(target, dpi=120)


def write(figures: list[Row], root: Path = _ROOT) -> list[Path]:
    """Writes the table into README.md, the list of cases into docs/performance.md, and the chart."""
    readme, page = root / "README.md", root / "docs" / "performance.md"
    chart = root / "docs" / "pictures" / "speed.png"
    readme.write_text(publish.replace(readme.read_text(encoding="utf-8"), table(figures), readme.name), "utf-8")
    page.write_text(publish.replace(page.read_text(encoding="utf-8"), cases(figures), page.name, "front"), "utf-8")
    draw(figures, chart)
    return [readme, page, chart]


def record(figures: list[Row]) -> None:
    """Writes front.json."""
    lines = ",\n".join(f"  {json.dumps(row)}" for row in figures)
    (HERE / "front.json").write_text(f'{{\n "rows": [\n{lines}\n ]\n}}\n', encoding="utf-8")


def _peer(row: Row) -> str:
    return _PEERS.get(row["peer"], str(row["peer"]))


if __name__ == "__main__":
    write(rows())
