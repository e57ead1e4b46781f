"""Files of NumPy: loading and writing them."""
