"""A database that was damaged, deleted or replaced: noticed, kept, brought back."""
