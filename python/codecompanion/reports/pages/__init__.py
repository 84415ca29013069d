"""Pages for a browser: one file each, which needs nothing else."""
