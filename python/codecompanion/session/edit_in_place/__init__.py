"""Edits in place as a chat carries them out: what is sent, and what its reply becomes."""
