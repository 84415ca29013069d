"""Readers of other programs' transcripts: each returns message objects of our format (`:help codecompanion-cli`)."""
