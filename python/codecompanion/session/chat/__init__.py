"""A chat: its parts, what its buffer shows of the log, the queue of messages."""
