"""Shapes the parts of a request that may be left out: facts, prompt fragments, schemas."""
