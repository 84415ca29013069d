"""The memory of a project: everything remembered, as one list."""
