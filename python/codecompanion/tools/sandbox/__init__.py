"""Where commands of a model run (issue 20 §3): which files, networks and processes they reach, and how that is kept."""
