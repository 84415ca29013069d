"""Draws charts with characters."""
