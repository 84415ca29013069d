"""MCP servers at work: which there are, when they run, what of them joins a chat."""
