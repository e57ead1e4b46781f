"""The command that proposes a schema."""

from dataclasses import asdict
from pathlib import Path

import click

from ..advice.advise import advise
from ..base.printable import printable
from ..errors import NotFoundError
from . import options
from .output import emit_json


@click.command("advise")
@click.argument("source")
@click.option("--dims", help="The columns that are dimensions: x,y.  [default: guessed]")
@click.option("--path", default="/", show_default=True, help="The array's place, if SOURCE is a store.")
@click.option("--sample", type=click.IntRange(min=1), default=100_000, show_default=True, help="Cells measured, about.")
@options.with_memory
@options.as_json
def advise_command(
    source: str, dims: str | None, path: str, sample: int, memory: str, threads: int | None, json_out: bool
) -> None:
    """Propose a schema for a CSV, Parquet, Arrow or .npy file, or look at how an array is stored.

    Every figure is measured on a sample. The Python that is printed creates the schema.
    """
    from ..stores import store

    context = options.context_of(memory, threads)
    is_store = store.exists(source, context=context)
    if not is_store and "://" not in source and not Path(source).exists():
        raise NotFoundError(f"there is neither a store nor a file {printable(source)!r}")
    data = store.open_array(source, path=path, context=context) if is_store else source
    names = None if dims is None else [name.strip() for name in dims.split(",")]
    found = advise(data, dims=names, sample=sample, context=context)
    if json_out:
        shown = {name: value for name, value in asdict(found).items() if name != "schema"}
        emit_json({"schema": found.schema._json(), "code": found.code, **shown})
    else:
        click.echo(str(found))


COMMANDS: tuple[click.Command, ...] = (advise_command,)
