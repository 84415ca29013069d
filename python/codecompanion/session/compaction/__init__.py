"""Carrying edits and compactions out: asking, committing, effects, telling; or only trying."""
