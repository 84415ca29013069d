"""MCP servers at work: started when wanted, their tools in chats, their questions."""
