"""The commands that draw."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from . import options
from .output import bytes_text, emit_json, emit_table, note, on_terminal, seconds_text

_COUNTERS = ("cells", "cells_returned", "tiles_read", "tiles_considered", "blocks_decoded", "requests", "bytes_fetched")


@click.command()
@click.argument("uri")
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
@options.within_box
@click.option("--attr", help="Dense: the attribute to show.  [default: the first]")
@click.option("--dims", help="The dimensions of the x and y axes, parted by a comma.")
@click.option(
    "--at",
    multiple=True,
    metavar="DIM=PLACE",
    help="Dense: where the plane lies along a dimension that is not drawn: a label, a coordinate, a date; again for "
    "more.  [default: the newest written]",
)
@click.option("--mbrs", is_flag=True, help="Draw the bounding rectangles of the data tiles.")
@click.option("--fragments", is_flag=True, help="Draw the boxes of the fragments.")
@click.option(
    "--placement", is_flag=True, help="Dense: draw where cells lie: in the store, in attached files, nowhere."
)
@click.option("--title", help="Above the picture.")
@click.option("--theme", type=click.Choice(["dark", "light"]), default="dark", show_default=True, help="The colours.")
@options.at_path
@options.at_version
@options.as_json
def plot(
    uri: str,
    target: Path,
    box: Sequence[str],
    dims: str | None,
    at: Sequence[str],
    path: str,
    version: int | None,
    timestamp: str | None,
    json_out: bool,
    **rest: Any,
) -> None:
    """Draw a dense array as an image or a line, a sparse one as a density map or bars of counts.

    gridstone plot air.gs air.png --attr t --at day=2026-03-01

    The end of the file's name says the format: .png, .svg, .pdf, .jpg, .tif or .webp. An array of
    three and more dimensions is drawn in one plane, and the picture says which; one of one
    dimension as a line, or as bars.
    """
    from ..pictures.target import checked_target
    from ..plot import plot as draw

    checked_target(target)
    places = options.pairs_of(at, "--at")
    names: Any = None if dims is None else tuple(name.strip() for name in dims.split(","))
    array = options.opened(uri, path, "r", version, timestamp)
    if names is not None and len(names) != min(array.ndim, 2):
        told = "two dimensions: --dims x,y" if array.ndim > 1 else f"the dimension of the array: --dims {array.dims[0]}"
        raise click.UsageError(f"--dims names {told}")
    made = draw(array, target, dims=names, box=options.box_of(array, box), at=places, **rest)
    if json_out:
        emit_json({"picture": str(made)})
    else:
        click.echo(str(made))


@click.command()
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="The folder to fill.")
@click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="A CSV with LON, LAT and more, or a folder of them. Several are loaded one after the other.",
)
@click.option("--cells", type=click.IntRange(min=1_000), default=1_000_000, show_default=True, help="Without --data.")
@click.option("--seed", type=int, default=7, show_default=True, help="Of what is made up.")
@options.as_json
def demo(out: Path, data: Sequence[Path], cells: int, seed: int, json_out: bool) -> None:
    """Load ship positions of several days, read a harbour and the sea, update a chart at random cells, append from
    several processes, and draw it all."""
    from ..demo import run

    def tell(step: str) -> None:
        if on_terminal():
            note(f"… {step}")

    found = run(out, data=data or None, cells=cells, seed=seed, progress=True if on_terminal() else None, tell=tell)
    if json_out:
        emit_json({"steps": found.steps, "found": found.found, "pictures": found.pictures, "stores": found.stores})
        return
    rows = [(s["step"], seconds_text(s["seconds"]), s.get("cells"), _size(s)) for s in found.steps]
    emit_table("what it took", ("step", "time", "cells", "bytes"), rows)
    reads = [s for s in found.steps if "cells_returned" in s]
    names = [name for name in _COUNTERS if any(name in s for s in reads) and name != "cells"]
    emit_table("counters of the reads", ("read", *names), [(s["step"], *(s.get(n) for n in names)) for s in reads])
    for sentence in found.found:
        click.echo(sentence)
    for picture in found.pictures:
        click.echo(picture)


def _size(step: dict[str, Any]) -> str:
    size = step.get("bytes", step.get("bytes_written", step.get("bytes_fetched")))
    return "" if size is None else bytes_text(size)


COMMANDS: tuple[click.Command, ...] = (plot, demo)
