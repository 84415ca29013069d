"""A conversation as values: messages, cycles, what must hold of them, the log of events and its view, transcripts."""
