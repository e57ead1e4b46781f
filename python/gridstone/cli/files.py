"""Loading files of any known format, and exporting to them."""

import contextlib
import glob
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import click
from click.core import ParameterSource

from ..arrays.array import Array
from ..io import content
from ..io.files import compression_of, ending_of
from ..result.damage import Damaged
from ..schema.array_schema import Schema
from ..stores import store
from . import options, report
from .output import bytes_text, emit_json, note, on_terminal

_FILE = options.InputFile()
_ENDS = {
    **dict.fromkeys(("", ".csv", ".tsv", ".tab", ".txt", ".dat"), "csv"),
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
    ".arrow": "feather",
    ".arrows": "feather",
    ".feather": "feather",
    ".ipc": "feather",
    ".npy": "npy",
    ".npz": "npz",
    ".mtx": "mtx",
}
FORMATS = ("csv", "parquet", "feather", "npy", "npz", "mtx")

_CSV_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--delimiter", help='What separates values; "\\t" is a tab.  [default: , or a tab for .tsv]'),
    click.option("--null", "nulls", multiple=True, help="Text that means null, besides the empty field."),
    click.option("--quote", help='What values may stand between; "" for nothing.  [default: "]'),
    click.option("--escape", help="What takes the meaning from the next character."),
    click.option("--decimal", help="The decimal point.  [default: .]"),
    click.option("--comment", help="Lines that begin with it are left out."),
    click.option("--no-header", is_flag=True, help="The files have no line of names."),
    click.option("--names", help="Names of the columns, parted by commas, in place of the header's."),
    click.option("--skip-lines", type=click.IntRange(min=0), help="Lines to leave out before the header."),
    click.option("--true", "true_words", multiple=True, help="A word for true."),
    click.option("--false", "false_words", multiple=True, help="A word for false."),
    click.option("--time-format", "times", multiple=True, help='How times are written: "%d.%m.%Y %H:%M".'),
    click.option("--timezone", help="The zone of times without an offset.  [default: UTC]"),
    click.option("--encoding", help="Of the text.  [default: utf8]"),
    click.option(
        "--on-error",
        type=click.Choice(["fail", "skip", "collect"]),
        help="What becomes of rows that cannot be loaded; collect puts them into --rejected.  [default: fail]",
    ),
    click.option("--rejected", type=click.Path(dir_okay=False), help="The CSV file for rows that were left out."),
)
_CSV_NAMES = [
    *("delimiter", "nulls", "quote", "escape", "decimal", "comment", "no_header", "names", "skip_lines"),
    *("true_words", "false_words", "times", "timezone", "encoding", "on_error", "rejected"),
]


_TABLE_KINDS = ("csv", "parquet", "feather")
_TABLE_NAMES = ["domain", "evolve", "grow", "union"]


def _csv_options(command: Any) -> Any:
    for option in reversed(_CSV_OPTIONS):
        command = option(command)
    return command


def kind_of(files: Sequence[str | Path], form: str | None) -> str:
    """The format of files, by the ends of their names unless it is given; without an end they are CSV."""
    if form is not None:
        return form
    kinds = {_kind_of(found) for file in files for found in _matches(file)}
    if len(kinds) > 1:
        raise click.UsageError(f"files of several formats ({', '.join(sorted(kinds))}); load them one by one")
    return kinds.pop()


def _matches(file: str | Path) -> list[Path]:
    """The files that a pattern names; what names none as it stands."""
    found = [Path(name) for name in glob.glob(str(file), recursive=True)] if glob.has_magic(str(file)) else []
    return [path for path in found if path.is_file()] or [Path(file)]


def _kind_of(file: Path) -> str:
    kind = _ENDS.get(ending_of(file))
    if kind is None:
        known = " ".join(end for end in _ENDS if end)
        raise click.UsageError(
            f"{file}: no format is known by {ending_of(file)!r}; name it by one of {known}, for text also "
            f"compressed as in .csv.gz, or say what it is: --format {'|'.join(FORMATS)}"
        )
    return kind


@contextlib.contextmanager
def _files_of(sources: Sequence[str]) -> Iterator[list[str]]:
    """The sources, with what pipes hold ("-" is standard input) in files for as long as the block goes on."""
    if list(sources).count("-") > 1:
        raise click.UsageError("- is standard input, which can be read once; give it once")
    with tempfile.TemporaryDirectory(prefix="gridstone-", ignore_cleanup_errors=True) as folder:
        files = []
        for number, source in enumerate(sources):
            path = Path(source)
            if source != "-" and (path.is_file() or path.is_dir() or not path.exists()):
                files.append(source)
                continue
            with contextlib.ExitStack() as stack:
                raw: IO[bytes] = sys.stdin.buffer if source == "-" else stack.enter_context(path.open("rb"))
                head = raw.read(64)
                name = "standard-input" if source == "-" else f"{path.name}-{number}"
                kept = Path(folder) / f"{name}{content.ending_of(head)}"
                with kept.open("wb") as out:
                    out.write(head)
                    shutil.copyfileobj(raw, out, 1 << 20)
            files.append(str(kept))
        yield files


@click.command()
@click.argument("uri")
@click.argument("sources", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option("--format", "form", type=click.Choice(FORMATS), help="Of the files.  [default: by their names]")
@click.option("--dims", help="The columns that are the dimensions (npy: their names), parted by commas.")
@click.option("--attrs", help="The columns to load as attributes, parted by commas.  [default: all others]")
@click.option("--name", help="Of the attribute that a npy or mtx file makes.  [default: value]")
@click.option("--offset", help="Where the first row of a matrix goes (mtx, npz): ROW, or ROW,COL.")
@click.option("--schema", "schema_file", type=_FILE, help="The schema of a new array, as JSON.")
@click.option(
    "--sparse/--dense", default=None, help="What a new array is.  [default: sparse; npy, npz: as the file says]"
)
@click.option("--duplicates/--no-duplicates", default=None, help="Whether cells of a table may share a place.")
@click.option("--dedup", type=click.Choice(["error", "first", "last"]), default="error", show_default=True)
@click.option("--capacity", type=int, default=10_000, show_default=True, help="Cells per data tile of a new array.")
@click.option("--overwrite", is_flag=True, help="Replace an array that is there.")
@click.option("--domain", multiple=True, metavar="DIM=LOW:HIGH", help="The domain of a dimension of a new array.")
@click.option(
    "--grow/--no-grow", default=None, help="Whether the domain of an array that is there grows by what is loaded."
)
@click.option("--evolve", is_flag=True, help="Columns that an array lacks become nullable attributes of it.")
@click.option(
    "--union/--no-union", default=None, help="Whether the files may have different columns.  [default: union]"
)
@click.option("--message", "-m", help="Kept with the version.")
@_csv_options
@options.with_memory
@options.at_path
@options.as_json
@click.pass_context
def load(
    context: click.Context,
    /,
    uri: str,
    sources: Sequence[str],
    form: str | None,
    dims: str | None,
    attrs: str | None,
    name: str | None,
    offset: str | None,
    schema_file: Path | None,
    sparse: bool | None,
    duplicates: bool | None,
    memory: str,
    threads: int | None,
    json_out: bool,
    **rest: Any,
) -> None:
    """Load files into a new array, or append them to one: CSV, Parquet, Arrow (Feather), NumPy, Matrix Market; "-" is
    standard input."""
    sources = context.with_resource(_files_of(sources))
    kind = kind_of(sources, form)
    csv = {key: rest.pop(key) for key in _CSV_NAMES}
    _check_use(context, kind)
    fresh = not store.exists(uri) or rest["overwrite"]
    if kind == "csv" and fresh and dims is None and schema_file is None:
        raise click.UsageError(f"{uri} is a new array: name its dimensions, --dims lat,lon, or give --schema FILE")
    rest |= {"dims": _names(dims), "attrs": _names(attrs), "context": options.context_of(memory, threads)}
    rest |= {} if name is None else {"name": name}
    rest |= {} if offset is None else {"offset": _offset(offset)}
    rest |= {} if sparse is None else {"sparse": sparse}
    rest |= {} if duplicates is None else {"duplicates": duplicates}
    rest |= _csv_arguments(csv) if kind == "csv" else {}
    rest |= _table_arguments({key: rest.pop(key) for key in _TABLE_NAMES})
    schema = None if schema_file is None else Schema.from_json(schema_file.read_text())
    array = loaded(kind, uri, sources, schema=schema, **rest)
    if json_out:
        emit_json({**report.summary(array), **array.stats})
        return
    stats = array.stats
    click.echo(f"{stats.get('cells_written', 0):,} cells, {bytes_text(stats.get('bytes_written', 0))}: {array!r}")
    if fresh and array.schema.duplicates:
        note("duplicates are allowed: cells at the same coordinates are all kept (--no-duplicates forbids them)")


def loaded(kind: str, uri: str, files: Sequence[str | Path], **arguments: Any) -> Array:
    """The array that files of a kind were loaded into."""
    from .. import io

    functions: Mapping[str, Callable[..., Array]] = {
        "csv": io.from_csv,
        "parquet": io.from_parquet,
        "feather": io.from_feather,
        "npy": io.from_npy,
        "npz": io.from_npz,
        "mtx": io.from_mtx,
    }
    progress = True if on_terminal() else None
    return functions[kind](uri, list(files), progress=progress, **arguments)


def _check_use(context: click.Context, kind: str) -> None:
    """Options of another format are a mistake."""
    own = {**dict.fromkeys(_TABLE_KINDS, _TABLE_NAMES), "npy": ["name"], "npz": ["offset"], "mtx": ["name", "offset"]}
    own["csv"] = [*_CSV_NAMES, *_TABLE_NAMES]
    tables = (_TABLE_NAMES, ", ".join(_TABLE_KINDS))
    for names, forms in ((_CSV_NAMES, "CSV"), tables, (["name"], "npy and mtx"), (["offset"], "mtx and npz")):
        for name in names:
            given = context.get_parameter_source(name) not in (ParameterSource.DEFAULT, None)
            if given and name not in own.get(kind, []):
                option = next(p.opts[0] for p in context.command.params if p.name == name)
                raise click.UsageError(f"{option} is for {forms} files; these are {kind}")


def _offset(text: str) -> list[int]:
    """The numbers of `--offset`."""
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--offset is the number of a row, or ROW,COL; found {text!r}") from None


def _csv_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The options of CSV as the arguments of `from_csv`."""
    made = {key: value for key, value in given.items() if value not in (None, (), False)}
    if given["delimiter"]:
        made["delimiter"] = _mark(given["delimiter"])
    if given["quote"] is not None:
        made["quote"] = given["quote"] or None
    if made.pop("no_header", False):
        made["header"] = False
    if given["names"] is not None:
        made["names"] = _names(given["names"])
    if (given["rejected"] is not None) != (given["on_error"] == "collect"):
        raise click.UsageError("--on-error collect and --rejected FILE go together")
    return made


def _table_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The options of tables as the arguments of `from_csv` and its kin."""
    made = {key: value for key, value in given.items() if value not in (None, (), False)}
    made |= {key: given[key] for key in ("union", "grow") if given[key] is not None}
    return {**made, "domain": options.domains_of(given["domain"])} if given["domain"] else made


def _mark(text: str) -> str:
    """A delimiter, of which a shell gives a tab best as two characters."""
    return text.replace("\\t", "\t")


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


@click.command()
@click.argument("uri")
@click.argument("target", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option("--format", "form", type=click.Choice(FORMATS), help="Of the file.  [default: by its name]")
@options.within_box
@click.option("--attr", "attrs", multiple=True, help="An attribute; may be given again.  [default: all]")
@click.option("--where", metavar="CONDITION", help="Tables: cells for which it is true, as for read.")
@click.option("--order", type=click.Choice(["row", "col", "global", "any"]), default="row", show_default=True)
@click.option("--compression", help="parquet: zstd, snappy, gzip, brotli, lz4, none; feather: zstd, lz4, none.")
@click.option("--delimiter", help="What separates the values of CSV.  [default: , or a tab for .tsv]")
@click.option("--null", help="The text of nulls in CSV.  [default: empty]")
@click.option("--nat", help="parquet, feather: NaT of nullable attributes, error or null.  [default: error]")
@click.option("--fill", help="npy, npz: the value of nulls and empty cells.")
@options.around_damage
@options.with_memory
@options.at_path
@options.at_version
@options.as_json
def export(
    uri: str,
    target: Path,
    form: str | None,
    box: Sequence[str],
    attrs: Sequence[str],
    order: str,
    damaged: Damaged,
    memory: str,
    threads: int | None,
    path: str,
    version: int | str | None,
    timestamp: str | None,
    json_out: bool,
    **some: str | None,
) -> None:
    """Write the cells of a box to a file: CSV, Parquet, Arrow (Feather), NumPy, Matrix Market; "-" is CSV on standard
    output."""
    piped = str(target) == "-"
    if compression_of(target) == "zip":
        raise click.UsageError(f"{target}: zip archives are read, not written; for text name it .csv.gz")
    kind = "csv" if piped and form is None else kind_of([target], form)
    _check_export(kind, piped, json_out, some)
    array = store.open_array(
        uri, path=path, version=version, timestamp=timestamp, context=options.context_of(memory, threads)
    )
    if kind in ("npy", "mtx") and len(attrs) > 1:
        raise click.UsageError(f"a {kind} file holds one attribute; give --attr once")
    cells = {"box": options.box_of(array, box), "order": order, "damaged": damaged}
    with options.telling_losses():
        counts = _exported(kind, array, None if piped else target, cells, list(attrs), some)
    if json_out:
        emit_json({"file": str(target), "format": kind, **counts})
    elif not piped:
        shown = ", ".join(
            f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}" for key, value in counts.items()
        )
        click.echo(f"{target}: {shown}, {bytes_text(target.stat().st_size)}")


def _check_export(kind: str, piped: bool, json_out: bool, some: Mapping[str, str | None]) -> None:
    """Options of another format are a mistake, and so is more than one thing on standard output."""
    for name, kinds in (
        ("where", ("csv", "parquet", "feather")),
        ("compression", ("parquet", "feather")),
        ("delimiter", ("csv",)),
        ("null", ("csv",)),
        ("nat", ("parquet", "feather")),
        ("fill", ("npy", "npz")),
    ):
        if some[name] is not None and kind not in kinds:
            raise click.UsageError(f"--{name} is for {' and '.join(kinds)} files; this is {kind}")
    if piped and kind != "csv":
        raise click.UsageError(f"standard output takes CSV alone, not {kind}; give the name of a file")
    if piped and json_out:
        raise click.UsageError("--json and - both write to standard output; give one of them")


def _exported(
    kind: str,
    array: Array,
    target: Path | None,
    cells: Mapping[str, Any],
    attrs: list[str],
    some: Mapping[str, str | None],
) -> dict[str, Any]:
    """Writes the file (None: standard output), and tells how much there is in it."""
    from .. import io

    progress = True if on_terminal() else None
    one, fill = attrs[0] if attrs else None, some["fill"]
    if target is None:
        from .export import csv_to_standard_output

        stream = array.scan(cells["box"], attrs or None, some["where"], cells["order"], damaged=cells["damaged"])
        return {"rows": csv_to_standard_output(stream, _mark(some["delimiter"] or ","), some["null"] or "", progress)}
    if kind in ("npy", "npz", "mtx"):
        where = {key: cells[key] for key in ("box", "damaged")}
        if kind == "mtx":
            return {"values": io.to_mtx(array, target, attr=one, **where)}
        value = None if fill is None else options.value_of(array, one, fill)
        if kind == "npy":
            return {"shape": list(io.to_npy(array, target, attr=one, fill=value, progress=progress, **where))}
        return {"arrays": io.to_npz(array, target, attrs=attrs or None, fill=value, progress=progress, **where)}
    table = {**cells, "attrs": attrs or None, "where": some["where"], "progress": progress}
    if kind == "csv":
        mark = None if some["delimiter"] is None else _mark(some["delimiter"])
        return {"rows": io.to_csv(array, target, delimiter=mark, null=some["null"] or "", **table)}
    write: Callable[..., int] = io.to_parquet if kind == "parquet" else io.to_feather
    chosen = {"compression": some["compression"] or "zstd", "nat": some["nat"] or "error"}
    return {"rows": write(array, target, **chosen, **table)}


COMMANDS: tuple[click.Command, ...] = (load, export)
