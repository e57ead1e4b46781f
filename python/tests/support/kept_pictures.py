"""Pictures made small, to be compared with kept ones."""

from typing import Any

import numpy as np


def small(figure: Any) -> Any:
    """A figure as a few blocks of colour, in which letters of another font do not count."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(48)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].astype(float)
    rows, columns = (size // 12 * 12 for size in pixels.shape[:2])
    blocks = pixels[:rows, :columns].reshape(rows // 12, 12, columns // 12, 12, 3)
    return blocks.mean(axis=(1, 3))
