"""Runs the tool calls of a reply, with approval, grants and audit records."""
