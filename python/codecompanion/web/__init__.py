"""Pages of the web as text (architecture.md)."""
