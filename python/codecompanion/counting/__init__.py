"""Counts tokens, learns from reported usage, parses sizes as people write them, and finds models' context windows."""
