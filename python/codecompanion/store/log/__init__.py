"""Stores the event log of the chats and the rows derived from it, and migrates its tables."""
