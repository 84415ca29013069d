"""Reads external text and files: times, JSON, files as lines, untrusted text."""
