"""Changes of project files by tools: requested, logged, and planned in reverse for a revert."""
