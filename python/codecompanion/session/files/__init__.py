"""Changes to project files by tools: requests to the editor, the log, and plans for reverts."""
