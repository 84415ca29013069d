"""Finds keys, and keeps them out of every text."""
