"""Reads and writes the text of a summary: its sections, the quoted user messages, recall keys."""
