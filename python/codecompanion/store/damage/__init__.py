"""Detect, keep and restore a database that was damaged, deleted or replaced."""
