"""An embedding endpoint for tests only: `server` answers, `rules` refuse requests, `hashing` creates vectors."""
