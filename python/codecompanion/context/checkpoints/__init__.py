"""Builds the stored state of a chat from its log, and chooses which state to restore."""
