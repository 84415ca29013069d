"""Carries out edits and compactions: the summariser, commits, effects, events."""
