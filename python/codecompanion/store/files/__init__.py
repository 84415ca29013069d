"""The files kept beside the database."""
