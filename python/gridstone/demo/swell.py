"""Swell as buoys measure it, and as a camera sees it; the same for the same numbers in every process."""

import numpy as np

from ..column.datatype import AnyArray

BUOYS, BLOCKS, ROWS, BINS = 3, 16, 16, 256
"""Each buoy sends so many blocks of so many spectra, each of so many frequencies."""
FRAMES, TOGETHER, HEIGHT, WIDTH = 90, 6, 72, 128
"""So many frames, of which so many are one commit."""


def block(buoy: int, number: int) -> AnyArray:
    """(ROWS, BINS) float32: power by frequency. The longest waves of a far storm arrive first, so the peak drifts.

    A spectrum has the form of Hasselmann et al., "Measurements of wind-wave growth and swell decay during the Joint
    North Sea Wave Project" (1973).
    """
    random = np.random.default_rng([buoy, number])
    hours = (number * ROWS + np.arange(ROWS)[:, None]) / (BLOCKS * ROWS)
    frequency = np.linspace(0.04, 0.30, BINS)[None, :]
    power = np.zeros((ROWS, BINS))
    for storm in range(2):
        peak = 0.06 + 0.055 * buoy + (0.045 + 0.01 * buoy) * (hours + 0.7 * storm - 0.35)
        growth = np.exp(-(((hours - 0.3 - 0.5 * storm) / 0.33) ** 2))
        steep = np.exp(-((frequency / peak - 1) ** 2) / (2 * 0.06**2))
        power += growth * (peak / frequency) ** 5 * np.exp(-1.25 * (peak / frequency) ** 4) * 3.3**steep
    made: AnyArray = (power * random.gamma(18, 1 / 18, power.shape)).astype(np.float32)
    return made


def frame(number: int) -> AnyArray:
    """(HEIGHT, WIDTH) float32: the height of the water between two islands that waves run around."""
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float64)
    made = 0.55 * np.sin(0.21 * x + 0.05 * y - 0.35 * number)
    for row, column, strength in ((20.0, 44.0, 1.0), (54.0, 82.0, 0.8)):
        far = np.hypot(y - row, x - column)
        made += strength * np.sin(0.48 * far - 0.35 * number) / np.sqrt(1 + far / 5)
    return np.asarray(made, np.float32)
