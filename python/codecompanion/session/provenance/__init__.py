"""Tracks the sources of text in a chat, and the grants that they restrict."""
