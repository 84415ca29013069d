"""Defines the messages between Lua and the host: typed events out, typed requests in."""
