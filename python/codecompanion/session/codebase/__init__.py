"""Gathered code as a message in a chat, and requests for code in messages."""
