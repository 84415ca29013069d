"""Endpoints that complete code at the cursor: rendering requests, and reading the code in replies (R-261)."""
