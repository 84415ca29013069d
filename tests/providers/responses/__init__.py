"""The fake Responses endpoint."""
