"""Implements workspace trust, which decides whether a folder's files may run or instruct the model."""
