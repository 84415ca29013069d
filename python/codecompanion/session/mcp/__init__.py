"""Running MCP servers: started on demand, their tools in chats, their questions."""
