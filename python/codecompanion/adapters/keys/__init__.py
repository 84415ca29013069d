"""The sources of keys, and keeping keys out of every text."""
