"""A chat: its parts, the log as shown in its buffer, and the message queue."""
