"""Writes a summary without a model: code reads the facts from the log and formats them."""
