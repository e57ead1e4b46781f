"""The systems that are compared, one file each."""
