"""Labels along dimensions: reading them, and the positions that they choose."""
