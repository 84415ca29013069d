"""Changes of project files by tools: asked for, logged, and worked out backwards for a revert."""
