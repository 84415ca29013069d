"""MCP servers: the edge towards the official SDK, which is imported only when a server is started."""
