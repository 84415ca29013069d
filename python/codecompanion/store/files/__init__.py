"""Stores files beside the database: blobs, checkpoints, memory and logs."""
