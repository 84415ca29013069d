"""The project on disk, read-only: paths, files, ignore rules."""
