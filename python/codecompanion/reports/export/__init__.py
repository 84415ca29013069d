"""Exports a chat as a document to share."""
