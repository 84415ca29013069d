"""The text of a summary: its sections, the quoted user messages, recall keys."""
