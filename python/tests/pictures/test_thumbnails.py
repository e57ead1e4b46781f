"""Promise: a notebook shows small pictures of arrays, groups and results, at a bounded cost, and never fails for it."""

import base64
import io
import re
import shutil
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from PIL import Image
from places import Stores

import gridstone as gs
from gridstone.context import showing
from gridstone.pictures import pixels, thumbnail

ODD = "<img src=x onerror=alert(1)>&'\"$v$"


class Tags(HTMLParser):
    """The tags with their attributes; what is opened is closed in its order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def images(shown: Any) -> list[np.ndarray]:
    """The pictures of a handle as pixels; nothing else in its HTML is a picture or acts."""
    html = shown._repr_html_()
    tags = Tags(html)
    found = []
    for tag, attrs in tags.found:
        assert tag in ("div", "b", "br", "small", "table", "thead", "tbody", "tr", "th", "td", "img", "svg", "path")
        assert not any(name.startswith("on") for name in attrs)
        if tag == "img":
            start, data = (attrs["src"] or "").split(",", 1)
            assert start == "data:image/png;base64"
            picture = Image.open(io.BytesIO(base64.b64decode(data)))
            picture.load()
            assert picture.mode == "RGBA" and max(picture.size) <= 160
            found.append(np.asarray(picture))
    return found


def only(shown: Any) -> np.ndarray:
    (picture,) = images(shown)
    return picture


def lines(shown: Any) -> str:
    """The path of the one line or row of bars."""
    assert images(shown) == []
    (path,) = re.findall(r"<path d='([^']*)'", shown._repr_html_())
    assert "nan" not in path and "inf" not in path
    return path


@pytest.fixture(autouse=True)
def usual() -> Any:
    with allowed(True):
        yield


def allowed(what: bool | int) -> Any:
    """The same is allowed in folders, in memory and in buckets."""
    return gs.set_options(pictures=what, remote_pictures=what)


def dense(uri: str, shape: tuple[int, ...], **attr: Any) -> gs.Array:
    dims = [gs.Dim(f"d{place}", (0, side - 1)) for place, side in enumerate(shape)]
    return gs.create(uri, gs.Schema(dims, [gs.Attr("v", **{"dtype": "float32", **attr})]))


def test_a_dense_array_shows_its_values_cell_by_cell(stores: Stores) -> None:
    a = gs.array(stores("a"), np.array([[0.0, 1.0, 2.0], [3.0, 4.0, np.nan]]))
    picture = only(a)
    assert picture.shape == (2, 3, 4)
    colours = pixels.ramp(pixels._VALUES)
    assert picture[0, 0].tolist() == colours[0].tolist() and picture[1, 1].tolist() == colours[255].tolist()
    assert picture[1, 2].tolist() == list(pixels._NONE)
    before = dict(a.stats)
    assert len(images(a)) == 1 and a.stats == before, "showing an array changes its counters"


def test_the_newest_plane_and_its_place_are_shown(stores: Stores) -> None:
    a = dense(stores("a"), (5, 4, 6))
    a[1] = 1.0
    a[3, 1:3, 2:4] = np.array([[1, 2], [3, 4]])
    picture = only(a)
    assert "d0 = 3" in a._repr_html_() and picture.shape == (4, 6, 4)
    assert (picture[..., 3] == 0).sum() == 20, "unwritten cells are transparent"
    assert len(np.unique(picture[1:3, 2:4].reshape(-1, 4), axis=0)) == 4
    a.delete({"d0": (3, 3)})
    assert "d0 = 1" in a._repr_html_() and (only(a)[..., 3] == 255).all()


def test_latitudes_have_north_up(stores: Stores) -> None:
    values = np.arange(12.0).reshape(4, 3)
    up = gs.array(stores("up"), values, dims=("lat", "lon"), coords={"lat": [50, 51, 52, 53], "lon": [1, 2, 3]})
    down = gs.array(
        stores("down"), values[::-1], dims=("lat", "lon"), coords={"lat": [53, 52, 51, 50], "lon": [1, 2, 3]}
    )
    plain = gs.array(stores("plain"), values)
    assert np.array_equal(only(up), only(down)) and np.array_equal(only(up), only(plain)[::-1])
    assert np.array_equal(only(up.read()), only(up)), "a result is shown as its array"


def test_large_planes_are_thinned(stores: Stores) -> None:
    a = gs.array(stores("a"), np.add.outer(np.arange(700.0), np.arange(1000.0)))
    picture = only(a)
    assert picture.shape[:2] == (-(-700 // 5), -(-1000 // 7)) and len(a._repr_html_()) < 60_000
    again = only(a.read({"d0": (0, 699)}))
    assert np.array_equal(picture, again)


@pytest.mark.parametrize(
    ("dtype", "values", "extra"),
    [
        ("bool", [[True, False]], {}),
        ("uint64", np.array([[0, 2**64 - 1]], "u8"), {}),
        ("int64", [[-(2**63), 2**63 - 1]], {}),
        ("float64", [[-1.7e308, 1.7e308], [np.inf, -np.inf]], {}),
        ("float64", [[np.nan, np.nan]], {}),
        ("float16", [[1.0, 2.0]], {}),
        ("datetime64[s]", np.array([["2026-01-01", "NaT"]], "M8[s]"), {}),
        ("timedelta64[ms]", np.array([[1, -5]], "m8[ms]"), {}),
        ("string", np.array([["a", "b"]], object), {"categories": ["a", "b", "c"]}),
        ("int32", np.ma.MaskedArray([[1, 2]], mask=[[True, False]]), {"nullable": True}),
        ("int32", np.ma.MaskedArray([[1, 2]], mask=True), {"nullable": True}),
        ("uint8[3]", np.full((1, 2, 3), 7, "u1"), {}),
        ("uint8[4]", np.full((1, 2, 4), 7, "u1"), {}),
    ],
    ids=str,
)
def test_every_type_with_colours_is_drawn(stores: Stores, dtype: str, values: Any, extra: dict[str, Any]) -> None:
    values = np.ma.concatenate([np.ma.asarray(values)] * 2)
    shape = values.shape[:2]
    a = dense(stores("a"), shape, dtype=dtype, **extra)
    a[...] = values
    with np.errstate(all="raise"):
        assert only(a).shape == (*shape, 4) and np.array_equal(only(a.read()), only(a))
    row = dense(stores("row"), shape[1:], dtype=dtype, **extra)
    row[...] = values[0]
    assert row._repr_html_() and Tags(row._repr_html_())


def test_what_has_no_colours_has_no_picture(stores: Stores) -> None:
    for number, dtype in enumerate(("string", "complex64", "bytes", "float32[2]", "list[int8]")):
        a = dense(stores(str(number)), (2, 2), dtype=dtype)
        assert images(a) == []
    text_and_number = gs.create(
        stores("both"),
        gs.Schema([gs.Dim("x", (0, 1)), gs.Dim("y", (0, 1))], [gs.Attr("s", "string"), gs.Attr("n", "int8")]),
    )
    text_and_number.write({"s": np.array([["a", "b"]] * 2, object), "n": np.arange(4, dtype="int8").reshape(2, 2)})
    assert len(np.unique(only(text_and_number).reshape(-1, 4), axis=0)) == 4


def test_arrays_of_one_dimension_and_of_none(stores: Stores) -> None:
    a = gs.array(stores("a"), np.array([0.0, 1.0, np.nan, np.inf, 2.0]))
    path = lines(a)
    assert path.count("M") == 2 and path.count("L") == 1, "a gap where there is no value"
    assert lines(gs.array(stores("one"), np.array([5.0]))).startswith("M80.0 30.0")
    wide = gs.array(stores("wide"), np.array([-1.7e308, 1.7e308]))
    assert lines(wide) == "M2.0 58.0h0L158.0 2.0h0"
    nothing = gs.array(stores("nan"), np.full(4, np.nan))
    scalar = gs.array(stores("scalar"), np.array(3.0))
    for one in (nothing, scalar):
        assert "<svg" not in one._repr_html_() and images(one) == []
    many = gs.array(stores("many"), np.sin(np.arange(100_000) / 9_000))
    assert len(many._repr_html_()) < 8_000


def sparse(uri: str, *dims: gs.Dim, **options: Any) -> gs.Array:
    return gs.create(uri, gs.Schema([*dims], [gs.Attr("v", "int32")], sparse=True, **options))


def test_sparse_arrays_show_where_cells_lie(stores: Stores) -> None:
    a = sparse(stores("a"), gs.Dim("x", (0, 9)), gs.Dim("y", (0, 9)), duplicates=True)
    a.write_cells({"x": [0, 0, 3], "y": [0, 0, 4]}, [1, 2, 3])
    picture = only(a)
    ground = pixels.ramp(thumbnail.density.theme.DARK.colours)[0].tolist()
    lit = [(int(y), int(x)) for y, x in np.argwhere((picture != ground).any(axis=2))]
    assert picture.shape == (5, 4, 4) and lit == [(0, 3), (4, 0)], "the greatest y is above"
    assert picture[4, 0].sum() > picture[0, 3].sum() and "3 cells by x, y" in a._repr_html_()
    assert np.array_equal(only(a.read()), picture)


def test_sparse_arrays_of_times_texts_and_one_dimension(stores: Stores) -> None:
    times = sparse(stores("t"), gs.Dim("t", ("2026-01-01", "2026-12-31"), dtype="datetime64[D]"))
    times.write_cells([np.arange("2026-02-01", "2026-03-01", dtype="M8[D]")], np.arange(28))
    assert lines(times).count("z") == 28
    assert lines(times.read()) == lines(times)
    text = sparse(stores("s"), gs.Dim("gene", dtype="string"), gs.Dim("x", (-5, 5)))
    text.write_cells([["a", "b"], [-5, 5]], [1, 2])
    assert lines(text).count("z") == 2
    only_text = sparse(stores("o"), gs.Dim("gene", dtype="string"))
    only_text.write_cells([["a"]], [1])
    assert "<svg" not in only_text._repr_html_() and images(only_text) == []
    whole = sparse(
        stores("w"), gs.Dim("x", (-1.7e308, 1.7e308), dtype="float64"), gs.Dim("y", (0.0, 1.0), dtype="float64")
    )
    whole.write_cells([[-1.7e308, 1.7e308], [0.0, 0.0]], [1, 2])
    assert isinstance(images(whole), list)


def test_many_cells_are_shown_by_their_tiles_unread(stores: Stores) -> None:
    rng = np.random.default_rng(3)
    a = sparse(
        stores("a"), gs.Dim("x", (0.0, 1.0), 0.1, dtype="float64"), gs.Dim("y", (0.0, 1.0), 0.1, dtype="float64"),
        capacity=100, duplicates=True,
    )  # fmt: skip
    x, y = rng.beta(2, 5, 20_000), rng.uniform(0, 1, 20_000)
    a.write_cells([x, y], np.arange(20_000))
    exact = only(a).astype(int).sum(axis=2)
    with allowed(200_000):
        assert "by tiles" in a._repr_html_()
        about = only(a).astype(int).sum(axis=2)
    left, right = about[:, :50].mean(), about[:, 78:].mean()
    assert left > 1.2 * right and exact[:, :50].mean() > 1.2 * exact[:, 78:].mean()
    with allowed(100):
        assert images(a) == []


def test_what_costs_more_than_is_allowed_is_not_read(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    a = gs.array(stores("a"), np.zeros((400, 400)), tile=100)
    asked: list[int] = []
    cost = thumbnail.dense_cost
    monkeypatch.setattr(thumbnail, "dense_cost", lambda *given: asked.append(cost(*given)) or asked[-1])
    assert len(images(a)) == 1 and asked == [16 * 100 * 100 * 8]
    monkeypatch.setattr(gs.Array, "__getitem__", lambda *_: pytest.fail("cells were read"))
    with allowed(asked[0] - 1):
        assert images(a) == []
    with allowed(False):
        assert images(a) == [] and len(asked) == 2, "nothing is reckoned where pictures are off"


@pytest.mark.parametrize("order", ["row", "col"])
@pytest.mark.parametrize("tile", [(1, 120, 120), (12, 32, 32), (4, 120, 15), (3, 1, 120), (12, 120, 120)], ids=str)
def test_the_reckoned_cost_is_about_what_is_unpacked_at_most(stores: Stores, tile: Any, order: str) -> None:
    sides = (12, 120, 120)
    dims = [gs.Dim(n, (0, side - 1), extent) for n, side, extent in zip("tyx", sides, tile, strict=True)]
    a = gs.create(stores("a"), gs.Schema(dims, [gs.Attr("v", "float32")], cell_order=order))
    a[...] = np.random.default_rng(0).normal(size=sides)
    a[11, 40:80, 5:100] = 1
    cut, steps = ((11, 11), (0, 119), (0, 119)), {1: 2, 2: 2}
    boxes = [(row, box, False) for row, box in thumbnail.plane.written_boxes(a, "v")]
    reckoned = thumbnail.dense_cost(a.schema, a.schema.attrs[0], boxes, cut, steps)
    fresh = gs.open(a.uri, context=gs.Context(cache=0))
    fresh[11, ::2, ::2]
    # Blocks that two threads need are unpacked twice.
    assert 0 < fresh.stats["bytes_decoded"] <= 1.25 * reckoned <= 1.25 * 4 * (np.prod(sides) + 40 * 95)


def test_remote_stores_have_none_unless_asked(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [showing.is_remote(uri) for uri in ("s3://b/k", "az://c/k", "gs://b/k", "https://x")] == [True] * 4
    assert [showing.is_remote(uri) for uri in ("/a/b", "file:///a", "mem://a", "c:\\a", "a b")] == [False] * 5
    a = gs.array(stores("a"), np.eye(3))
    monkeypatch.setattr(gs.Array, "uri", "s3://bucket/key")
    with gs.set_options(remote_pictures=False):
        assert images(a) == []
    with gs.set_options(remote_pictures="1MiB"):
        assert len(images(a)) == 1


def test_attached_files_count_as_whole_chunks(stores: Stores, tmp_path: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file.create_dataset("e", data=np.arange(40_000.0).reshape(200, 200), chunks=(100, 100), compression="gzip")
    a = gs.attach(str(tmp_path / "store.gs"), str(tmp_path / "run.h5"), "/e")
    assert only(a).shape[:2] == (100, 100)
    with gs.set_options(pictures=4 * 100 * 100 * 8 - 1):
        assert images(a) == []
    far = gs.open(a.uri, context=gs.Context(sources=[tmp_path, "https://example.org/data"]))
    with gs.set_options(remote_pictures=False):
        assert images(far) == [], "a file may lie beyond a network"
    (tmp_path / "run.h5").unlink()
    assert images(gs.open(a.uri, context=gs.Context(sources=[tmp_path]))) == [] and "run.h5" not in a._repr_html_()


def test_groups_show_their_arrays(stores: Stores) -> None:
    root = gs.group(stores("g"), mode="a")
    assert images(root) == [] and "<table>" in root._repr_html_()
    for number in range(14):
        gs.array(root.uri, np.arange(4.0).reshape(2, 2) + number, path=f"/a{number:02}")
    root.group("sub")
    assert len(images(root)) == 12
    with allowed(2 * 4 * 8):
        assert len(images(root)) == 2, "what is allowed is for all of them together"
    assert len(images(gs.open(root.uri, version=4))) in (1, 2, 3)
    with allowed(False):
        assert images(root) == [] and ">a13<" in root._repr_html_()


def test_a_group_of_very_many_children_is_cut(stores: Stores) -> None:
    root = gs.group(stores("g"), mode="a")
    with gs.transaction(root.uri) as made:
        for number in range(203):
            made.group(f"/n{number:03}")
    shown = root._repr_html_()
    assert ">n199<" in shown and ">n200<" not in shown and "… and 3 more" in shown


def test_results_show_what_they_hold(stores: Stores) -> None:
    a = gs.array(stores("a"), np.arange(24.0).reshape(2, 3, 4))
    last = only(a.read())
    assert last.shape == (3, 4, 4) and np.array_equal(last, only(a.read({"d0": (1, 1)})))
    assert "<svg" in a.read({"d0": (0, 0), "d1": (1, 1)})._repr_html_()
    assert images(a.read({"d0": (0, 0)}, order="global")) == []
    assert images(a.aggregate({"n": "count(*)"}, by=["d0"])) == []
    assert only(a.read(where="value > 3")).shape[:2] == (3, 2)
    assert images(a.read(where="value > 99")) == []
    with allowed(8):
        assert images(a.read()) == []


def test_names_are_escaped(stores: Stores) -> None:
    dims = [gs.Dim(f"{ODD}{n}", (0, 2)) for n in range(3)]
    a = gs.create(stores("a"), gs.Schema(dims, [gs.Attr(ODD, "int8")]))
    a[...] = np.arange(27).reshape(3, 3, 3)
    assert only(a).shape == (3, 3, 4) and "onerror=alert(1)&gt;" in a._repr_html_()
    assert len(images(a.read())) == 1
    s = gs.create(stores("s"), gs.Schema(dims, [gs.Attr(ODD, "int8")], sparse=True))
    s.write_cells([[0, 1], [0, 1], [0, 1]], [1, 2])
    assert len(images(s)) == len(images(s.read())) == 1
    root = gs.group(stores("g"), mode="a")
    gs.array(root.uri, np.eye(2), path=f"/{ODD.replace('/', '')}")
    assert len(images(root)) == 1


def test_nothing_fails_in_a_notebook(stores: Stores, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "lost.gs")
    a = gs.array(place, np.random.default_rng(0).normal(size=(300, 300)))
    root = gs.group(stores("g"), mode="a")
    gs.array(root.uri, np.eye(2), path="/a")
    assert len(images(a)) == 1
    monkeypatch.setattr(thumbnail, "_of_dense", lambda *_: 1 / 0)
    for one in (a, root, a.read()):
        assert "gridstone" in one._repr_html_()
    monkeypatch.undo()
    with gs.transaction(root.uri) as both:
        both["/a"][...] = 7
        assert images(both["/a"]) == []
    fresh = gs.open(place, context=gs.Context(cache=0))
    shutil.rmtree(tmp_path / "lost.gs" / "_data", ignore_errors=True)
    assert images(fresh) == [] and "300" in fresh._repr_html_()
    shutil.rmtree(place)
    assert "gridstone.Array" in fresh._repr_html_()
    fresh.close()
    assert fresh._repr_html_().endswith("(closed)</div>")


def test_fragments_beyond_the_limit_are_not_looked_through(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    a = dense(stores("a"), (8, 8))
    for row in range(4):
        a[row] = row
    assert len(images(a)) == 1
    monkeypatch.setattr(thumbnail, "FRAGMENTS_MAX", 3)
    assert images(a) == []


def test_an_empty_array_has_no_picture(stores: Stores) -> None:
    for number, made in enumerate(((0, 3), (3, 0))):
        assert images(gs.array(stores(f"e{number}"), np.zeros(made))) == []
    assert images(dense(stores("d"), (4, 4))) == []
    assert images(sparse(stores("s"), gs.Dim("x", (0, 9)), gs.Dim("y", (0, 9)))) == []
    endless = gs.create(
        stores("o"), gs.Schema([gs.Dim("x", (0, None), 10), gs.Dim("y", (0, 3))], [gs.Attr("v", "int8")])
    )
    assert images(endless) == []
    endless.append(np.arange(8, dtype="int8").reshape(2, 4))
    assert only(endless).shape[:2] == (4, 2)


def test_matplotlib_is_not_needed(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert len(images(gs.array(stores("a"), np.eye(3)))) == 1


def test_options_hold_until_the_end_of_a_block() -> None:
    before = showing.current()
    with gs.set_options(pictures="4MiB", remote_pictures=True) as nothing:
        assert nothing is None and showing.current() == showing.Showing(4 * 2**20, showing.USUAL_BYTES)
        with pytest.raises(ZeroDivisionError), gs.set_options(pictures=0):
            assert showing.current().pictures == 0 and showing.current().remote_pictures == showing.USUAL_BYTES
            raise ZeroDivisionError
        assert showing.current().pictures == 4 * 2**20
    assert showing.current() == before
    kept = gs.set_options(pictures=7)
    assert showing.current().pictures == 7 and "pictures=7" in repr(kept)
    for wrong in (1.5, "many", -1, [1], b"1"):
        with pytest.raises(gs.InputError, match="pictures"):
            gs.set_options(pictures=wrong)
    assert showing.current().pictures == 7, "a mistake changes nothing"
