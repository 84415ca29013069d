"""What a chat counts: its requests, the context meter, whether reported usage can be true."""
