"""Consolidation, checks and repair, tags and vacuum."""
