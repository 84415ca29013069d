"""Vectors of texts, from an OpenAI-compatible endpoint or a local model (R-239)."""
