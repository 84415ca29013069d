"""One turn: the agent loop, and what happens before each request."""
