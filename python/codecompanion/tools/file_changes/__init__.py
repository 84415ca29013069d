"""Changing a file: the proposal that the user sees, then the change."""
