"""Reads other programs' transcripts; each reader returns message objects in our format (`:help codecompanion-cli`)."""
