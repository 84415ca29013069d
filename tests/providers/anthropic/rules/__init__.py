"""The rules by which the Messages endpoint refuses requests, by subject."""
