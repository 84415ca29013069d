"""One chat: its state machine, queue and agent loop."""
