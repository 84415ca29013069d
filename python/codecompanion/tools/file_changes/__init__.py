"""Changing a file as the user sees it: the proposal, then the change."""
