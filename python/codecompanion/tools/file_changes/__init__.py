"""Changes files: first proposes the change to the user, then makes it."""
