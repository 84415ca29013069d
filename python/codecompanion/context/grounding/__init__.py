"""What a summary may claim: the names in it are checked against the log."""
