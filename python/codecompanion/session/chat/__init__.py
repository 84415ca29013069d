"""A chat: its parts, the log as its buffer shows it, and the queue of messages."""
