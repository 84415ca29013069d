"""One turn: what is queued, the agent loop, the reply, its tools and their approval."""
