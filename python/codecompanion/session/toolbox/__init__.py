"""Which tools a chat has: what providers bring, what was chosen in it."""
