"""Context that is sent before a message: changed files, editor mentions, gathered code."""
