"""Finds prompts in Markdown files and reads their front matter. Nothing is executed here."""
