"""Programs that run in the sandbox, or build it: the standard library alone."""
