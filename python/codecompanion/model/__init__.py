"""Models a conversation as values: messages, cycles, invariants, the event log and its view, transcripts."""
