"""Gathers code for a question: all gatherers run concurrently, each with a deadline (R-201 … R-203)."""
