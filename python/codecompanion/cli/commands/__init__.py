"""One file for each command, with its arguments."""
