"""Finds, parses and groups project rules (R-549)."""
