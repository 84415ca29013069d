"""How gathered code meets a chat: when it is gathered, the message it becomes, what is shown of it (issue 11)."""
