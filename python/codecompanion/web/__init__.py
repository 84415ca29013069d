"""Web pages as text (architecture.md)."""
