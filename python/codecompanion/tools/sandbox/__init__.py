"""The sandbox for commands of a model (issue 20 §3): which files, networks and processes a command reaches."""
