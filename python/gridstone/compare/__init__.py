"""Differences between two arrays, or two versions of one."""
