"""Completes code at the cursor, with one request per editor at a time (R-261)."""
