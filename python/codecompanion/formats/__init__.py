"""Texts and files as others write them: times, JSON, files as lines, untrusted text."""
