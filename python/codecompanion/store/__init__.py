"""The session store: an append-only event log in SQLite."""
