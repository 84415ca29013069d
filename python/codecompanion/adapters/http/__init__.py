"""Connects to one provider endpoint over HTTP: client, time limits, and reading of replies."""
