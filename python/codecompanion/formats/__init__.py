"""Texts and files as others write them: transcripts, times, files as lines, untrusted text."""
