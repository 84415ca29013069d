"""Implements the commands: one file each, with its arguments."""
