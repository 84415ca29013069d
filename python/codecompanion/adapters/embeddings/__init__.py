"""Vectors of texts, from an OpenAI-compatible endpoint or a model on this machine (R-239)."""
