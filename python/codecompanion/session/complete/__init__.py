"""Carries out completion at the cursor: one request per editor at a time (R-261)."""
