"""Strategies that select the messages to keep and those to summarise."""
