"""The memory of a project: all that is remembered, as one list."""
