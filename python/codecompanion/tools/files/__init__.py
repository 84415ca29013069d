"""Files as tools see them: open in the editor or on disk, edits of their text, diffs."""
