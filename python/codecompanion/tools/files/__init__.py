"""Files for tools: in the editor or on disk, edits of their text, and diffs."""
