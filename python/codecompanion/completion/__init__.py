"""Completion at the cursor: from a file and a position to the prompt of a code model (R-256 … R-261). Pure."""
