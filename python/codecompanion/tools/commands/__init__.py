"""Analyses a model's command lines: their programs, grants and environment."""
