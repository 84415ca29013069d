"""Defines the messages between Lua and the host: typed events from the host, typed requests to it."""
