"""`plot()` of arrays."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base import drawer
from ..base.arguments import checked, file, flag, mapping, several, text
from ..query.box import BoxLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Drawable:
    """Pictures of an array."""

    @checked(target=file, dims=several, at=mapping, mbrs=flag, fragments=flag, placement=flag, title=text, theme=text)
    def plot(
        self,
        target: str | os.PathLike[str] | None = None,
        *,
        attr: str | None = None,
        dims: tuple[str, str] | None = None,
        box: BoxLike = None,
        at: Mapping[str, Any] | None = None,
        mbrs: bool = False,
        fragments: bool = False,
        placement: bool = False,
        title: str | None = None,
        theme: str = "dark",
    ) -> "Figure | Any":
        """Draws a sparse array as a density map, a dense one as an image: `a.plot(at={"day": "2026-03-01"})`.

        A dense array of one dimension is drawn as a line with gaps, a sparse one as bars that count cells.

        An image shows one plane. The picture says which, and which cells are unwritten, null or NaN.

        Args:
            target: the file: .png, .svg, .pdf, .jpg, .tif or .webp; None: no file is written.
            attr: dense: the attribute to show; None: the first that can be drawn.
            dims: the dimensions of the x and y axes.
            box: the part to show, in coordinates.
            at: dense: the place of the plane along dimensions that are not drawn, a label or a coordinate each; None:
                the newest written one.
            mbrs: draw the bounding rectangles of the data tiles over it.
            fragments: draw the boxes of the fragments over it.
            placement: dense: draw where the cells lie, in the store or in attached files, in place of their values.
            title: above the picture.
            theme: "dark" or "light".

        Returns:
            The path of the file; without one a figure of matplotlib, which a notebook shows.

        Raises:
            UnsupportedError: an attribute or a dimension that cannot be drawn; matplotlib is missing.
            InputError: an unknown format or theme, no such folder, `at` of a drawn dimension, or several places.
            BoundsError: there is nothing at a place of `at`.
        """
        told = {"attr": attr, "dims": dims, "box": box, "at": at, "title": title, "theme": theme}
        more = {"mbrs": mbrs, "fragments": fragments, "placement": placement}
        return drawer.draw("array", self, target, **told, **more)
