"""The code of a project: its index, kept in sync with the disk, and search."""
