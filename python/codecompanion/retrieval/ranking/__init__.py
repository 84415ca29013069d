"""Ranks files by several signals with fitted weights; not in the document, but better in measurements."""
