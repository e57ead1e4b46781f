"""Loading from other formats and writing to them."""
