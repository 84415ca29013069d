"""Finds the files of a folder that wait for the user's trust."""
