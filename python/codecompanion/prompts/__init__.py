"""Prompts, one Markdown file each, and the tables that belong to them; the files are part of the package."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


@cache
def load(name: str) -> str:
    """Return the prompt `name` (file name without `.md`), without its final newline.

    Raises:
        FileNotFoundError: the prompt does not exist.
    """
    return _FOLDER.joinpath(f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


@cache
def load_all() -> str:
    """Return the text of all prompts."""
    return "\n\n".join(load(path.stem) for path in sorted(_FOLDER.glob("*.md")))


@cache
def load_table(name: str) -> dict[str, Any]:
    """Return the table `name` (file name without `.toml`). It is shared: do not change it."""
    return tomllib.loads(_FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8"))
