"""Searches all messages."""
