"""Programs that build the sandbox or run in it; they import only the standard library."""
