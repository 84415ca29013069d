"""Export a chat as a document to share."""
