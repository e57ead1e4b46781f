"""The programs of `examples/c` and `examples/cpp`: compiled by each compiler, run, and what they stored compared."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from c_programs import ALL, COMPILERS, CPP, CPP_COMPILERS, EXAMPLES, C, Installed, run, tool

import gridstone as gs

both = pytest.mark.parametrize("compiler", COMPILERS)


@pytest.fixture
def built(installed: Installed, tmp_path: Path) -> Callable[..., Path]:
    """Compiles an example."""

    def build(compiler: str, name: str, *options: str) -> Path:
        more = options if name.endswith(".cpp") else (*C, *options)
        return installed.compile(compiler, EXAMPLES / name, tmp_path / Path(name).stem, more)

    return build


def image() -> np.ndarray:
    """What the flow stores."""
    light = (np.arange(800_000) % 977).astype(np.float32).reshape(1000, 800)
    light[[3, 500, 999], [7, 400, 799]] = [-3, -500, -999]
    return light


def check_points(points: gs.Array, nullable: bool) -> None:
    found = points.read(order="any").to_numpy()
    place = np.asarray(found["x"]) if nullable else found["y"] // 10_000 * 1000 + found["x"]
    assert sorted(place.tolist()) == list(range(100_000))
    assert [str(text) for text in found["name"]] == [f"n{i}" for i in place.tolist()]
    weight = np.ma.masked_array(place / 2, place % 10 == 0) if nullable else place / 2
    assert np.array_equal(np.ma.getmaskarray(found["weight"]), np.ma.getmaskarray(weight))
    assert np.ma.allequal(found["weight"], weight)


@both
def test_flow(compiler: str, built: Callable[..., Path], installed: Installed, tmp_path: Path) -> None:
    program = built(compiler, "c/flow.c")
    said = run([program, "flow.gs"], tmp_path, env=installed.environment()).stdout.decode()
    assert "99800 points in" in said
    store = str(tmp_path / "flow.gs")
    stored = gs.open(store, path="/image")
    assert np.array_equal(stored.read()["light"], image()) and len(stored.fragments) == 1
    assert f"at version {stored.version}\n" in said
    check_points(gs.open(store, path="/points"), nullable=False)
    gs.verify(store)


@both
def test_threads(compiler: str, built: Callable[..., Path], installed: Installed, tmp_path: Path) -> None:
    program = built(compiler, "c/threads.c", "-fopenmp")
    said = run([program, "threads.gs"], tmp_path, env=installed.environment()).stdout.decode()
    assert said == "8 threads, 16 tiles, 1 commit\n"
    stored = gs.open(str(tmp_path / "threads.gs"))
    rows, columns = np.ogrid[:512, :512]
    assert np.array_equal(stored.read()["v"], rows * 1000 + columns) and stored.version == 2


@both
def test_fork(compiler: str, built: Callable[..., Path], installed: Installed, tmp_path: Path) -> None:
    program = built(compiler, "c/fork.c")
    said = run([program, "fork.gs"], tmp_path, env=installed.environment()).stdout.decode()
    assert said == "4 processes, 1 commit\n"
    stored = gs.open(str(tmp_path / "fork.gs"))
    assert np.array_equal(stored.read()["v"], np.arange(100_000) * 3) and stored.version == 2


@both
def test_ships(compiler: str, built: Callable[..., Path], installed: Installed, tmp_path: Path) -> None:
    program = built(compiler, "c/ships.c")
    dims = [gs.Dim("LON", (-180, 180), dtype="float64"), gs.Dim("LAT", (-90, 90), dtype="float64")]
    array = gs.create(tmp_path / "ais.gs", gs.Schema(dims, [gs.Attr("name", "string")], sparse=True, duplicates=True))
    lon, lat = np.linspace(-75, 4.25, 50_001), np.linspace(51.5, -40, 50_001)
    array.write_cells({"LON": lon, "LAT": lat}, {"name": np.full(50_001, "Ada")})
    said = run([program, "ais.gs", "LON", "LAT"], tmp_path, env=installed.environment()).stdout.decode()
    assert (
        said == "C: 50001 positions of version 2 through buffers of 64 KiB, LON -75.00 to 4.25, LAT -40.00 to 51.50\n"
    )


@both
def test_stencil(compiler: str, built: Callable[..., Path], installed: Installed, tmp_path: Path) -> None:
    program = built(compiler, "c/stencil.c")
    environment = installed.environment()

    def step(*arguments: str) -> str:
        return run([program, *arguments], tmp_path, env=environment).stdout.decode()

    assert step("whole.gs", "100") == "from step 0\nat step 100\n"
    stopped = f"'{program}' stopped.gs 100 70 2>/dev/null; test $? -gt 128"
    run(["sh", "-c", f"ulimit -c 0; {stopped}"], tmp_path, env=environment)
    before = gs.open(str(tmp_path / "stopped.gs"))
    assert before.read()["step"][0, 0] == 60
    assert step("stopped.gs", "100") == "from step 60\nat step 100\n"
    whole, stopped_once = (gs.open(str(tmp_path / name)).read() for name in ("whole.gs", "stopped.gs"))
    assert whole["heat"].tobytes() == stopped_once["heat"].tobytes() and (whole["step"] == 100).all()
    assert np.allclose(whole["heat"], heat(100), rtol=1e-12, atol=0)
    # A run that was stopped before its first checkpoint left an empty array.
    made = gs.open(str(tmp_path / "whole.gs"), version=1)
    gs.create(str(tmp_path / "empty.gs"), made.schema)
    assert step("empty.gs", "100") == "from step 0\nat step 100\n"
    assert gs.open(str(tmp_path / "empty.gs")).read()["heat"].tobytes() == whole["heat"].tobytes()


def heat(steps: int) -> np.ndarray:
    """The same equation in NumPy."""
    plate = np.zeros((128, 128))
    plate[40:60, 50:90] = 100.0
    for _ in range(steps):
        middle = plate[1:-1, 1:-1]
        around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        following = plate.copy()
        following[1:-1, 1:-1] = middle + 0.2 * (around - 4 * middle)
        plate = following
    return plate


def test_mpi(installed: Installed, tmp_path: Path) -> None:
    compiler, launcher = tool("mpicc"), tool("mpiexec")
    program = installed.compile(compiler, EXAMPLES / "c" / "mpi.c", tmp_path / "mpi", C)
    # Open MPI asks for both where it runs as root, or where there are few cores.
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    allowed |= {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
    said = run([launcher, "-n", "4", program, "mpi.gs"], tmp_path, env=installed.environment(allowed)).stdout.decode()
    assert said == "4 ranks, 2 commits together, 4 alone\n"
    rows, columns = np.ogrid[:256, :256]
    for path, reach in (("/disjoint", 0), ("/overlapping", 16), ("/alone", 0)):
        rank = np.minimum((rows + reach) // 64, 3)
        stored = gs.open(str(tmp_path / "mpi.gs"), path=path)
        assert np.array_equal(stored.read()["v"], rank * 1_000_000 + rows * 1000 + columns), path
    # Three arrays are created; two commits are of all ranks together, and each rank has one alone.
    assert stored.version == 3 + 2 + 4


@pytest.mark.parametrize("compiler", CPP_COMPILERS)
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_flow_in_cpp(
    compiler: str, standard: str, built: Callable[..., Path], installed: Installed, tmp_path: Path
) -> None:
    program = built(compiler, "cpp/flow.cpp", f"-std={standard}", *CPP, "-pthread")
    said = run([program, "flow.gs"], tmp_path, env=installed.environment()).stdout.decode()
    assert said.startswith("100000 points\n")
    light = image()
    light[:800] = np.repeat(np.arange(8), 100)[:, None]
    store = str(tmp_path / "flow.gs")
    assert np.array_equal(gs.open(store, path="/image").read()["light"], light)
    check_points(gs.open(store, path="/points"), nullable=True)


@pytest.mark.parametrize("static", ["OFF", "ON"])
def test_all_of_them_with_cmake(static: str, installed: Installed, tmp_path: Path) -> None:
    prefix = f"-DCMAKE_PREFIX_PATH={installed.prefix}"
    run([tool("cmake"), "-S", EXAMPLES / "c", "-B", tmp_path / "build", prefix, f"-DSTATIC={static}"])
    run([tool("cmake"), "--build", tmp_path / "build"])
    made = {path.stem for path in (EXAMPLES / "c").glob("*.c") if (tmp_path / "build" / path.stem).exists()}
    wanted = {path.stem for path in (EXAMPLES / "c").glob("*.c")}
    assert made == wanted if ALL else made >= wanted - {"mpi", "threads"}
    run([tmp_path / "build" / "flow", "flow.gs"], tmp_path, env={"PATH": os.environ["PATH"]})
    assert np.array_equal(gs.open(str(tmp_path / "flow.gs"), path="/image").read()["light"], image())


def test_the_page_names_each_of_them() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    programs = [*(EXAMPLES / "c").glob("*.c"), *(EXAMPLES / "cpp").glob("*.cpp"), *(EXAMPLES / "r").iterdir()]
    assert len(programs) >= 6
    for program in programs:
        assert f"]({program.relative_to(EXAMPLES)})" in page, program


def test_r(installed: Installed, tmp_path: Path) -> None:
    command = tool("R")
    for name in ("gridstone.c", "matrix.R"):
        (tmp_path / name).write_bytes((EXAMPLES / "r" / name).read_bytes())
    flags = {"PKG_CFLAGS": " ".join(installed.flags("--cflags")), "PKG_LIBS": " ".join(installed.flags("--libs"))}
    run([command, "CMD", "SHLIB", "gridstone.c"], tmp_path, env=installed.environment(flags))
    said = run([command, "--vanilla", "--slave", "-f", "matrix.R"], tmp_path, env=installed.environment())
    assert said.stdout.decode() == "a matrix of 300 x 200 \n"
    rows, columns = np.ogrid[1:301, 1:201]
    stored = gs.open(str(tmp_path / "matrix.gs"))
    assert np.array_equal(stored.read()["value"], rows + columns / 1000)
