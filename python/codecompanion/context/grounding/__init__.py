"""Checks the names in a summary against the log."""
