"""Prompts in Markdown files: finding them, and reading their front matter. Nothing is executed here."""
