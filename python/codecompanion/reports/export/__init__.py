"""A chat as a document that can be shared."""
