"""The tools of one chat: what the providers bring for its folder, in groups."""
