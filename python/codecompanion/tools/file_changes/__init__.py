"""Changes files: first the proposal that the user sees, then the change."""
