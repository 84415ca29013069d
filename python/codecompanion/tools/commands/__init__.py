"""What a command line of a model does: its programs, its grants, its environment."""
