"""Gathered code as a message of a chat, and what the user asks of the project in a message."""
