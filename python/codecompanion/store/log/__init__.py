"""The event log of the chats, and the rows derived from it."""
