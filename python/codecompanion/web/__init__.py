"""Fetches web pages as text (architecture.md)."""
