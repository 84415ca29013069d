"""Strategies that decide which messages stay and which become the subject of a summary."""
