"""An endpoint for embeddings that exists only in tests: `server` answers, `rules` refuse, `hashing` makes vectors."""
