"""Ranks files by several signals with fitted weights: an addition to the document, because it measured better."""
