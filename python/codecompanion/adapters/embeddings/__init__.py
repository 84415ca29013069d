"""Computes embedding vectors with an OpenAI-compatible endpoint or a local model (R-239)."""
