"""Chat Completions: the wire format of OpenAI and of every endpoint that copies it."""
