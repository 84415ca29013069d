"""Detects, keeps and restores a database that was damaged, deleted or replaced."""
