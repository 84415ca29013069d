"""Finds keys, and keeps them out of all output."""
