"""The fake Chat Completions endpoint."""
