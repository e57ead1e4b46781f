"""Helpers without arrays: checks of arguments, texts of messages, progress, interrupts, optional libraries."""
