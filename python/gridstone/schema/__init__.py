"""Dimensions, attributes and schemas, their Arrow form, and filters of the user."""
