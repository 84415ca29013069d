"""Completion at the cursor: builds a code model's prompt from a file and a position (R-256 … R-261). Pure."""
