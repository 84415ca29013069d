"""Reads the project on disk: paths, files, ignore rules. It never writes."""
