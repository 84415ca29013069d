"""The configured MCP servers: entries, files that name servers, expansion."""
