"""Stores and what they hold: arrays, groups, transactions, copies."""
