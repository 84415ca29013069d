"""The refusals of the Messages endpoint, by subject."""
