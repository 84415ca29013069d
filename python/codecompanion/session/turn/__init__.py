"""One turn: the agent loop, and the work before each request."""
