"""Columns of texts as dimensions: loads, what is inferred and refused, exports and back, the command line."""

import gzip
import os
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from places import Stores

import gridstone as gs
from gridstone import cli, errors, io

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("GRIDSTONE_TEST_DATA") or ROOT.parent / "shared" / "data")

TABLE = pa.table(
    {
        "gene": ["BRCA1", "TP53", "", "漢字漢字漢字漢字", "BRCA1"],
        "cell": [3, 7, 7, 1, 4],
        "n": [5, 8, 1, 2, 9],
    }
)


def rows(a: gs.Array) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in a.read().to_pandas().itertuples(index=False)]


WANTED = sorted(zip(*TABLE.to_pydict().values(), strict=True))


@pytest.mark.parametrize("kind", ["arrow", "parquet", "feather", "csv", "pandas"])
def test_tables_in_and_out(kind: str, tmp_path: Path, stores: Stores) -> None:
    uri, file = stores("a"), tmp_path / f"t.{kind}"
    frame = TABLE.to_pandas()
    if kind == "arrow":
        a = io.from_arrow(uri, TABLE, ["gene", "cell"])
    elif kind == "pandas":
        a = io.from_pandas(uri, frame, ["gene", "cell"])
    elif kind == "parquet":
        pq.write_table(TABLE, file)
        a = io.from_parquet(uri, file, ["gene", "cell"])
    elif kind == "feather":
        pa.feather.write_feather(TABLE, file)
        a = io.from_feather(uri, file, ["gene", "cell"])
    else:
        frame.to_csv(file, index=False)
        a = io.from_csv(uri, file, ["gene", "cell"])
    assert rows(a) == WANTED
    gene = a.schema.dim("gene")
    assert (gene.dtype, gene.max_bytes, gene.domain) == ("string", 48, None)
    assert a.schema.dim("cell").domain == (1, 7)
    back = {
        "parquet": (io.to_parquet, io.from_parquet),
        "csv": (io.to_csv, lambda u, f: io.from_csv(u, f, ["gene", "cell"])),
        "feather": (io.to_feather, io.from_feather),
    }
    for name, (write, read) in back.items():
        out = tmp_path / f"out.{name}"
        write(a, out)
        again = read(stores(str(name)), out)
        assert rows(again) == WANTED, name
        if name != "csv":
            assert again.schema == a.schema, name
    assert io.to_arrow(a).read_all().num_rows == 5


def test_texts_that_a_schema_has_no_room_for_are_named(tmp_path: Path, stores: Stores) -> None:
    dims = [gs.Dim("gene", dtype="string", max_bytes=8), gs.Dim("cell", (0, 9))]
    schema = gs.Schema(dims, [gs.Attr("n", "int64")], sparse=True)
    with pytest.raises(errors.InputError, match=r"row 3, column 'gene'.*24 bytes.*max_bytes"):
        io.from_arrow(stores("a"), TABLE, schema=schema)
    file = tmp_path / "t.csv"
    file.write_text("gene,cell,n\nA,1,1\nABCDEFGHIJ,2,2\nB,3,3\n")
    with pytest.raises(errors.InputError, match=r"line 3.*gene.*10 bytes.*max_bytes"):
        io.from_csv(stores("b"), file, schema=schema)
    a = io.from_csv(stores("c"), file, schema=schema, on_error="skip")
    assert rows(a) == [("A", 1, 1), ("B", 3, 3)]
    nul = pa.table({"gene": ["a\0b"], "cell": [1], "n": [1]})
    with pytest.raises(errors.InputError, match=r"row 0, column 'gene'.*NUL"):
        io.from_arrow(stores("d"), nul, schema=schema)
    null = pa.table({"gene": ["a", None], "cell": [1, 2], "n": [1, 2]})
    with pytest.raises(errors.InputError, match=r"row 1, column 'gene'.*null"):
        io.from_arrow(stores("e"), null, schema=schema)


def test_numbers_with_a_mistake_among_them_do_not_become_texts(tmp_path: Path, stores: Stores) -> None:
    file = tmp_path / "t.csv"
    file.write_text("x,v\n1,1\n2,2\n3a,3\n4,4\n")
    with pytest.raises(errors.UnsupportedError, match=r"'x' has numbers and other texts.*dtype='string'"):
        io.from_csv(stores("a"), file, ["x"])
    schema = gs.Schema([gs.Dim("x", dtype="string")], [gs.Attr("v", "int64")], sparse=True)
    assert len(io.from_csv(stores("b"), file, schema=schema).read()) == 4
    with pytest.raises(errors.UnsupportedError, match="only sparse"):
        io.from_arrow(stores("c"), TABLE, ["gene"], sparse=False)


def test_the_command_line(tmp_path: Path, stores: Stores, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    uri, file = stores("a"), tmp_path / "t.csv"

    def run(*args: str, code: int = 0) -> str:
        ended = cli.run(list(args))
        found = capfdbinary.readouterr()
        assert ended == code, found
        return (found.err if code else found.out).decode()

    TABLE.to_pandas().to_csv(file, index=False)
    run("create", uri, "--sparse", "--dim", "gene:string:24", "--dim", "cell:int64:0:9", "--attr", "n:int64")
    run("load", uri, str(file))
    assert len(rows(gs.open(uri))) == 5
    text = run("read", uri, "--box", "gene=A:C")
    assert "BRCA1" in text and "TP53" not in text
    assert "TP53" in run("read", uri, "--box", "gene=TP53")
    text = run("read", uri, "--box", "gene=C..")
    assert "TP53" in text and "BRCA" not in text
    shown = run("info", uri)
    assert "string" in shown and "24 bytes" in shown
    assert '"max_bytes": 24' in run("info", uri, "--json")
    run("delete", uri, "--box", "gene=BRCA1:BRCA1")
    run("delete", uri, "--coord", "gene=TP53,cell=7")
    assert sorted(r[0] for r in rows(gs.open(uri))) == ["", "漢字漢字漢字漢字"]
    assert "two dimensions" in run("plot", uri, str(tmp_path / "p.png"), code=1)
    assert "gene" in run("create", stores("b"), "--dim", "gene:string", "--attr", "n:int64", code=2)


# Real tables.


def path_of(name: str) -> Path:
    file = DATA / name
    if not file.is_file():
        pytest.skip(f"no file {file}")
    return file


def test_zip_codes_by_state_and_city(stores: Stores) -> None:
    file = path_of("points/us_zipcodes.csv.gz")
    a = io.from_csv(stores("a"), file, ["state", "city"], context=gs.Context("8MiB"))
    frame = pd.read_csv(file, dtype={"zip_code": str}, keep_default_na=False)
    assert len(a.read()) == len(frame)
    for state, low, high in [("CA", "San", "Santa Cruz"), ("NY", "A", "B"), ("TX", "Austin", "Austin")]:
        some = frame[(frame["state"] == state) & (frame["city"] >= low) & (frame["city"] <= high)]
        found = a.read({"state": state, "city": (low, high)})
        assert sorted(found["city"].tolist()) == sorted(some["city"].tolist())
        assert len(some) > 0
        where = f"state == '{state}' and city between '{low}' and '{high}'"
        assert a.read(where=where).to_pandas().equals(found.to_pandas())
    prefixes = [{"city": gs.prefix(p)} for p in ("San ", "Los ", "New ", "Saint")]
    wanted = frame[frame["city"].str.startswith(("San ", "Los ", "New ", "Saint"))]
    assert sorted(a.read(prefixes)["city"].tolist()) == sorted(wanted["city"].tolist())


def test_triples_by_subject_and_predicate(stores: Stores) -> None:
    """RDF as cells of an array: what is said of a thing lies together."""
    file = path_of("rdf/bsbm_pc284.nt.gz")
    triples = []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            found = re.fullmatch(r"(\S+) (\S+) (.*) \.\n", line)
            if found is not None and len(found[1].encode()) <= 120 and len(found[2].encode()) <= 80:
                triples.append(found.groups())
            if len(triples) == 30_000:
                break
    frame = pd.DataFrame(triples, columns=["s", "p", "o"])
    dims = [gs.Dim("s", dtype="string", max_bytes=120), gs.Dim("p", dtype="string", max_bytes=80)]
    schema = gs.Schema(dims, [gs.Attr("o", "string")], sparse=True, duplicates=True)
    a = gs.create(stores("a"), schema, context=gs.Context("64MiB"))
    with a.writer(order="any") as w:
        for start in range(0, len(frame), 7_000):
            part = frame[start : start + 7_000]
            w.append(
                {"s": part["s"].to_numpy(object), "p": part["p"].to_numpy(object)}, {"o": part["o"].to_numpy(object)}
            )
    assert len(a.read()) == len(frame)
    wanted = frame.sort_values(["s", "p"], kind="stable", key=lambda c: c.map(lambda v: v.encode()))
    got = a.read(order="row").to_pandas()
    assert got["s"].tolist() == wanted["s"].tolist()
    assert sorted(map(tuple, got.to_numpy().tolist())) == sorted(triples)
    for subject in frame["s"].sample(5, random_state=1):
        some = frame[frame["s"] == subject]
        read = a.read({"s": subject})
        assert sorted(read["o"].tolist()) == sorted(some["o"].tolist())
        assert read.stats["tiles_read"] <= 4
    label = frame["p"].iloc[0]
    assert len(a.read({"p": label})) == (frame["p"] == label).sum()


def test_words_for_nulls_are_no_texts(tmp_path: Path, stores: Stores) -> None:
    """Beside an empty field, which is a text where nothing else means null."""
    file = tmp_path / "a.csv"
    file.write_text("g,v\nNA,1\n,2\nb,3\n")
    plain = io.from_csv(stores("plain"), file, dims=["g"])
    assert sorted(plain.read()["g"].tolist()) == ["", "NA", "b"]
    rejected: list[io.Rejected] = []
    some = io.from_csv(stores("some"), file, dims=["g"], nulls=("NA", ""), on_error="collect", rejected=rejected)
    assert some.read()["g"].tolist() == ["b"] and [row.line for row in rejected] == [2, 3]
    with pytest.raises(errors.InputError, match=r"a\.csv, line 2, column 'g'"):
        io.from_csv(stores("none"), file, dims=["g"], nulls=("NA", ""))
