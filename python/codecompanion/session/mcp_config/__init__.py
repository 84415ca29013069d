"""Reads the configuration of MCP servers: entries in the settings, server files, and the variables in both."""
