"""Builds all services once, owns the event loop, and is the only connection to the editor."""
