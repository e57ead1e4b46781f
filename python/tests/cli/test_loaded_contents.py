"""Files that are not what their names say, zip archives, and standard input."""

import gzip
import io as bytes_io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import gridstone as gs
from gridstone import io

TEXT = "x,v\n1,2.5\n3,4.5\n"


def parquet() -> bytes:
    out = bytes_io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"x": [1, 3], "v": [2.5, 4.5]}), out)
    return out.getvalue()


def feather() -> bytes:
    out = bytes_io.BytesIO()
    pyarrow.feather.write_feather(pa.table({"x": [1, 3], "v": [2.5, 4.5]}), out)
    return out.getvalue()


def archive(**members: bytes | str) -> bytes:
    out = bytes_io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, held in members.items():
            made.writestr(name.replace("__", "."), held)
    return out.getvalue()


STRANGE = {
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(100), "no text but a PNG picture"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "no text but HDF5; gridstone.attach"),
    "netcdf": (b"CDF\x01" + bytes(100), "no text but NetCDF"),
    "gzip": (gzip.compress(TEXT.encode()), r"no text but compressed by gzip; end its name in \.gz"),
    "zip": (archive(a__csv=TEXT), r"a zip archive, or an Excel workbook; end its name in \.zip"),
    "parquet": (parquet(), "no text but Parquet; load it with from_parquet"),
    "feather": (feather(), "no text but Arrow"),
    "pdf": (b"%PDF-1.7\n%...", "a PDF document"),
    "utf-16 with a mark": (TEXT.encode("utf-16"), r"text in UTF-16; pass encoding='utf-16' \(--encoding utf-16\)"),
    "utf-16 le": (TEXT.encode("utf-16-le"), "looks like text in UTF-16; pass encoding='utf-16-le'"),
    "utf-16 be": (TEXT.encode("utf-16-be"), "looks like text in UTF-16; pass encoding='utf-16-be'"),
    "numbers": (np.arange(100, dtype="int64").tobytes(), "holds binary data, not text"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_content_that_is_no_csv_is_named(tmp_path: Path, name: str) -> None:
    held, said = STRANGE[name]
    file = tmp_path / "data.csv"
    file.write_bytes(held)
    with pytest.raises(gs.InputError, match=rf"data\.csv .*{said}"):
        io.from_csv(tmp_path / "a.gs", file, dims=["x"])
    assert not gs.exists(tmp_path / "a.gs")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_in_the_encoding_that_is_named_loads(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "data.csv").write_bytes(TEXT.encode(encoding))
    a = io.from_csv(tmp_path / "a.gs", tmp_path / "data.csv", dims=["x"], encoding=encoding)
    assert a.read()["v"].tolist() == [2.5, 4.5]


def test_texts_that_begin_as_binary_files_do_not_are_texts(tmp_path: Path) -> None:
    for number, first in enumerate(("PK", "BZ", "GIF", "CDF", "MM", "PARI")):
        (tmp_path / "data.csv").write_text(f"{first},v\n1,2\n")
        names = io.from_csv(tmp_path / f"{number}.gs", tmp_path / "data.csv", dims=["v"]).schema.attrs
        assert [attr.name for attr in names] == [first]


def test_tables_of_another_format_are_named(tmp_path: Path) -> None:
    for name, load, held, said in (
        ("a.parquet", io.from_parquet, feather(), "no Parquet file but Arrow"),
        ("a.parquet", io.from_parquet, gzip.compress(parquet()), r"no Parquet file but compressed by gzip.*\.gz"),
        ("a.arrow", io.from_feather, parquet(), "no Arrow file but Parquet; load it with from_parquet"),
    ):
        (tmp_path / name).write_bytes(held)
        with pytest.raises(gs.InputError, match=said):
            load(tmp_path / "a.gs", tmp_path / name, dims=["x"])


def test_a_zip_of_one_file_is_read_as_it_is(tmp_path: Path, call) -> None:
    many = "x,v\n" + "".join(f"{n},{n}.5\n" for n in range(20_000))
    (tmp_path / "data.csv.zip").write_bytes(archive(data__csv=many))
    a = io.from_csv(tmp_path / "a.gs", tmp_path / "data.csv.zip", dims=["x"], block_bytes="8KiB")
    assert a.count() == 20_000 and a.aggregate({"s": "sum(v)"})["s"][0] == sum(range(20_000)) + 10_000
    mac = zipfile.ZipFile(tmp_path / "mac.zip", "w")
    with mac:
        mac.mkdir("data")
        mac.writestr("__MACOSX/._t.parquet", "junk")
        mac.writestr("data/t.parquet", parquet())
    assert io.from_parquet(tmp_path / "b.gs", tmp_path / "mac.zip", dims=["x"]).read()["v"].tolist() == [2.5, 4.5]
    code, out, err = call("load", tmp_path / "c.gs", tmp_path / "mac.zip", "--dims", "x")
    assert code == 0 and "2 cells" in out, err
    two = tmp_path / "two.zip"
    two.write_bytes(archive(a__csv=TEXT, b__csv=TEXT))
    (tmp_path / "none.csv.zip").write_bytes(archive())
    (tmp_path / "broken.csv.zip").write_bytes(archive(a__csv=many)[:200])
    for file, said in (
        (two, "two.zip holds 'a.csv', 'b.csv'; unpack it"),
        (tmp_path / "none.csv.zip", "holds nothing"),
        (tmp_path / "broken.csv.zip", "cannot be decompressed"),
    ):
        with pytest.raises(gs.InputError, match=said):
            io.from_csv(tmp_path / "d.gs", file, dims=["x"])
    assert call("load", tmp_path / "d.gs", two, "--dims", "x")[0] == 2
    member = tmp_path / "data.npy.zip"
    out_bytes = bytes_io.BytesIO()
    np.save(out_bytes, np.arange(6).reshape(2, 3))
    member.write_bytes(archive(data__npy=out_bytes.getvalue()))
    assert io.from_npy(tmp_path / "e.gs", member)[...].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("source", ["-", "/dev/stdin"])
@pytest.mark.parametrize("kind", ["text", "gzip", "parquet"])
def test_standard_input_is_loaded(tmp_path: Path, source: str, kind: str) -> None:
    held = {"text": TEXT.encode(), "gzip": gzip.compress(TEXT.encode()), "parquet": parquet()}[kind]
    command = [sys.executable, "-m", "gridstone", "load", str(tmp_path / "a.gs"), source, "--dims", "x"]
    command += ["--format", "parquet"] if kind == "parquet" else []
    done = subprocess.run(command, input=held, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert gs.open(tmp_path / "a.gs").read()["v"].tolist() == [2.5, 4.5]


def test_standard_input_that_cannot_be_loaded(tmp_path: Path, call) -> None:
    code, _, err = call("load", tmp_path / "a.gs", "-", "-", "--dims", "x")
    assert code == 2 and "once" in err
    command = [sys.executable, "-m", "gridstone", "load", str(tmp_path / "a.gs"), "-", "--dims", "x"]
    done = subprocess.run(command, input=parquet(), capture_output=True, text=False, check=False)
    assert done.returncode == 2 and b"no text but Parquet" in done.stderr
    with subprocess.Popen(["true"], stdout=subprocess.PIPE) as made:
        assert made.stdout is not None
        with pytest.raises(gs.InputError, match=r"is a pipe or a device.*gridstone load -"):
            io.from_csv(tmp_path / "a.gs", f"/dev/fd/{made.stdout.fileno()}", dims=["x"])


@pytest.mark.parametrize("name", ["o.zip", "o.csv.zip", "o.npy.zip"])
def test_zip_archives_are_not_written(tmp_path: Path, call, name: str) -> None:
    a = gs.array(tmp_path / "a.gs", np.arange(4))
    with pytest.raises(gs.InputError, match=r"read, not written; name it \.csv\.gz"):
        io.to_csv(a, tmp_path / name)
    code, _, err = call("export", tmp_path / "a.gs", tmp_path / name)
    assert code == 2 and "not written" in err and list(tmp_path.iterdir()) == [tmp_path / "a.gs"]
