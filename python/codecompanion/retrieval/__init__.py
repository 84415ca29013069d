"""Finds the code that a question is about. Pure (R-201 … R-253)."""
