"""Context management: pure functions that decide what the next request contains."""
