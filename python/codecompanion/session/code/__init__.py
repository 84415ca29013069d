"""The code of a project: its index, which is kept in sync with the disk, and searches in it."""
