"""Writes pages for a browser, each in one self-contained file."""
