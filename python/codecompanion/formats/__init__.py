"""External texts and files: times, JSON, files as lines, untrusted text."""
