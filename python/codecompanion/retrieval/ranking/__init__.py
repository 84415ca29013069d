"""Ranking that joins several signals by fitted weights: beyond the document, because it measured better."""
