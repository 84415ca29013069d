"""Prompt texts, one Markdown file each. `load(name)` returns the text; the files are part of the package."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def load(name: str) -> str:
    """Return the prompt `name` (file name without `.md`), without its final newline.

    Raises:
        FileNotFoundError: there is no such prompt.
    """
    return resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").rstrip("\n")
