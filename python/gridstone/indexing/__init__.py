"""Positions of arrays: boxes with strides, lists and masks, as NumPy indexes."""
