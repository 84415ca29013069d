"""Runs MCP servers: starts them on demand, offers their tools to chats and relays their requests to the user."""
