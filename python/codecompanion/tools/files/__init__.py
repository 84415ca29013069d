"""Changing files for the model: what is proposed, shown, accepted and written."""
