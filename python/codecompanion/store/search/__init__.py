"""Search over all messages."""
