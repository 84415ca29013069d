"""Computes vectors of texts with an OpenAI-compatible endpoint or a local model (R-239)."""
