"""Wraps the official MCP SDK, which is imported only when a server is started."""
