"""The accounting of a chat: its requests, the context meter, whether reported usage can be true."""
