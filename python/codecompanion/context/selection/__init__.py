"""Strategies that select the messages to keep and the messages to summarise."""
