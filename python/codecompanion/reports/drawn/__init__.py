"""Figures drawn with characters."""
