"""What the user may do with a chat besides sending a message."""
