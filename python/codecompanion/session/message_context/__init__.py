"""Context that is sent before a message: changed files, mentions of the editor, gathered code."""
