"""The event log of the chats, its tables and their migrations, and the rows derived from it."""
