"""Combines everything remembered about a project into one list."""
