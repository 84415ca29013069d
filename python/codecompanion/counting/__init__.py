"""Tokens: counting text, learning from reported usage, sizes people write, the windows of models."""
