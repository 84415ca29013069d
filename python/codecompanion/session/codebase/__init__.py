"""Gathered code as a message of a chat, and the requests for code in a message."""
