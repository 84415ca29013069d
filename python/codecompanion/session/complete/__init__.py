"""Completion at the cursor, carried out: one request of an editor at a time (R-261)."""
