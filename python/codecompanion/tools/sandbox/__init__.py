"""The sandbox for commands of a model: which files, networks and processes a command reaches."""
