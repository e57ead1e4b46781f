"""Helpers that know no array: checks of arguments, texts for messages, progress, interrupts, optional libraries."""
