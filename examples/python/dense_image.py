"""An image as a dense array: written, corrected in two places, read in part, and as it was before.

Run it in an empty folder: it makes `image.gs` there.
"""

import numpy as np

import gridstone as gs


def main() -> None:
    # Rows and columns in tiles of 256 x 256: a box that is read touches as few of them as possible.
    schema = gs.Schema(
        dims=[gs.Dim("row", (0, 999), tile=256), gs.Dim("column", (0, 1499), tile=256)],
        attrs=[gs.Attr("brightness", "uint8")],
    )
    rows, columns = np.mgrid[0:1000, 0:1500]
    picture = ((rows + columns) // 10 % 256).astype("uint8")

    image = gs.create("image.gs", schema)
    image[...] = picture
    written = image.version

    # A box, aligned to nothing, and single cells anywhere. Each statement is a commit of its own.
    image[100:200, 50:80] = 255
    image.write_cells(([5, 999], [7, 1499]), {"brightness": [1, 2]})

    assert (image[100:200, 50:80] == 255).all()
    assert image[5, 7] == 1 and image[999, 1499] == 2
    print(f"version {image.version}: the mean of the box is {image[90:210, 40:90].mean():.2f}")

    before = image.at(version=written)
    assert (before[...] == picture).all()
    print(f"version {written}: the mean of the box is {before[90:210, 40:90].mean():.2f}")

    # Every second pixel of a strip, and the brightest pixel of each row, computed by the engine.
    assert (image[0:10:2, 0:1500:2] == picture[0:10:2, 0:1500:2]).all()
    brightest = image.max(axis=1)
    assert brightest.shape == (1000,) and brightest[150] == 255
    print(f"{image.shape[0]} x {image.shape[1]} pixels, {len(image.fragments)} fragments")


if __name__ == "__main__":
    main()
