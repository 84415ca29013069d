"""Runs one turn: the agent loop, and the preparation of each request."""
