"""Requests code completions at the cursor: renders requests, and reads the code in replies (R-261)."""
