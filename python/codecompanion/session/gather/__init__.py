"""Gathering code for a question: every gatherer at the same time, each with a deadline (R-201 … R-203)."""
