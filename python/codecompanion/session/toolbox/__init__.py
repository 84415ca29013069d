"""The tools of one chat: those of the providers for its folder, in groups."""
