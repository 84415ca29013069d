"""Readers of other programs' transcripts: each returns message objects of our format (design.md, Command line)."""
