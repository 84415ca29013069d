"""One chat: state machine, queue, agent loop."""
