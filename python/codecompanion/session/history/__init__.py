"""The log of a chat and what is done with it: undo, recall, branches, showing it."""
