"""Gathered code as a message of a chat, and a message's requests to the project."""
