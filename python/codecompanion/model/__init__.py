"""A conversation as values: messages, cycles, invariants, the log of events and its view, transcripts."""
