"""What the Messages endpoint refuses, by what it is about."""
