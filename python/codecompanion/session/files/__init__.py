"""Changes of project files: asked, logged, reverted."""
