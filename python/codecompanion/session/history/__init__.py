"""The log of a chat and its projections: the view, undo, titles."""
