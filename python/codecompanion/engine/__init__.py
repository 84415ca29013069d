"""Builds everything once, owns the loop, and is the only door to the editor."""
