"""Writes a summary without a model: facts read from the log and written by code."""
