"""Formats messages as text: for a summariser, in chunks, or in place of a summary."""
