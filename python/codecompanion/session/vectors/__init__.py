"""Implements semantic search: makes, prices and compares the vectors of a code index (R-232, R-239)."""
