"""The user's actions in a chat besides sending a message."""
