"""The sandbox for a model's commands, which limits the files, networks and processes that they can reach."""
