"""Prompt texts, one Markdown file each, read through `load`."""
