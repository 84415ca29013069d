"""MCP servers: the edge towards the official SDK, imported by nothing before a server is started."""
