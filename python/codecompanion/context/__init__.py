"""Manages the context: pure functions that decide what the next request contains."""
