"""Charts drawn with characters."""
