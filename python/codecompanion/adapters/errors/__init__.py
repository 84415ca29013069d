"""The meaning of a provider's errors: its words and codes mapped to our error tree, and when to retry."""
