"""Endpoints that fill in code at the cursor: what each is sent, and what of its reply is the code (R-261)."""
