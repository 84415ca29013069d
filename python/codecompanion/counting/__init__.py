"""Tokens: counting text, learning from reported usage, sizes as people write them, the windows of models."""
