"""Chat Completions: the wire format of OpenAI and of compatible endpoints."""
